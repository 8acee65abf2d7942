"""Models that cannot be used, fail in one way or refuse: what a run sends, what it exits with, and what is reported."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig, Price
from auditor.domain import Outcome
from auditor.domain.decisions import SURVEY_REVIEW
from auditor.reports.data.failures import FailureGroup
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from tests.e2e.test_run import config_file
from tests.support.audit_configs import KEY, KEY_VARIABLE, config, with_models
from tests.support.cli_runner import CommandOutput, auditor, fail, succeed
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion, error

KEY_ENV = {KEY_VARIABLE: KEY}


def run(tmp_path: Path, audit: AuditConfig, *options: str) -> CommandOutput:
    return auditor("run", config_file(tmp_path, audit), *options, cwd=tmp_path, **KEY_ENV)


def provided_by(audit: AuditConfig, *providers: str) -> AuditConfig:
    """The audit with the providers of its models replaced, in their order."""
    names = [f"{provider}/scripted-{letter}" for provider, letter in zip(providers, "abcdefgh", strict=False)]
    pairs = zip(audit.models, names, strict=True)
    return audit.model_copy(update={"models": [model.model_copy(update={"model": name}) for model, name in pairs]})


# What providers send for a wrong key or model, in each form of a body; more are in tests/models/test_failures.py.
UNUSABLE: dict[str, tuple[str, Reply, str]] = {
    "deepseek model": ("deepseek", error(400, "Model Not Exist"), "Model Not Exist"),
    "mistral key": ("mistral", Reply(401, {"detail": "Unauthorized"}), "Unauthorized"),
    "mistral model": ("mistral",
                      Reply(400, {"object": "error", "message": "Invalid model: nope", "type": "invalid_model"}),
                      "Invalid model: nope"),
    "xai key": ("xai", Reply(400, {"error": "Incorrect API key provided: sk***gA."}), "Incorrect API key provided"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_wrong_key_or_model_ends_the_run_after_one_request(server: FakeServer, tmp_path: Path, name: str) -> None:
    provider, reply, words = UNUSABLE[name]
    server.script = lambda _: reply
    output = run(tmp_path, provided_by(config(server.url, 1, judges=[]), provider))
    assert (output.returncode, len(server.requests)) == (1, 1)
    assert words in output.stderr
    assert '{"' not in output.stderr


def test_an_audit_can_be_finished_without_a_model_that_is_gone(server: FakeServer, tmp_path: Path) -> None:
    audit = config(server.url, 2, judges=[])
    server.script = answer
    assert run(tmp_path, audit).returncode == 0
    more = audit.model_copy(update={"probes": config(server.url, probes={"direct": {"samples": 2}}).probes})
    server.script = lambda r: error(404, "no such model") if r.body["model"] == "scripted-a" else answer(r)
    stopped = run(tmp_path, more)
    assert stopped.returncode == 1
    assert "To finish the audit without this model, remove it from the config" in stopped.stderr
    assert run(tmp_path, more.model_copy(update={"models": more.models[1:]})).returncode == 0
    # Its recorded answers are used again once it is back.
    server.script = answer
    server.requests.clear()
    assert run(tmp_path, more).returncode == 0
    assert [request.body["model"] for request in server.requests] == ["scripted-a"] * 9


def failing_model() -> Any:
    """A script in which the model `scripted-a` fails in one way, with a new id each time."""

    def script(request: Request) -> Reply:
        if request.body["model"] != "scripted-a":
            return answer(request)
        return replace(error(400, f"Bad value {request.number}, request id: req_{request.number:09}"), delay_s=0.05)

    return script


def test_a_failing_model_is_stopped_others_finish_and_the_exit_code_is_4(server: FakeServer, tmp_path: Path) -> None:
    server.script = failing_model()
    audit = config(server.url, 2, judges=[], probes={"direct": {"samples": 5}})
    output = run(tmp_path, with_models(audit, concurrency=100))
    assert output.returncode == 4
    sent = [request.body["model"] for request in server.requests]
    assert 5 <= sent.count("scripted-a") <= 20
    assert sent.count("scripted-b") == 5 * 9
    n_unsent = 5 * 9 - sent.count("scripted-a")
    assert f"{n_unsent} further calls were not sent, since their model was stopped." in output.stderr
    for arguments in ("status", "errors"):
        assert f"{n_unsent} further calls were not sent" in auditor(arguments, cwd=tmp_path).stderr
    report = auditor("report", "scripted", "--format", "text", cwd=tmp_path).stdout
    assert f"{n_unsent} further calls were not sent" in " ".join(report.split())
    assert "'model-a' failed (direct, HTTP 400): Bad value" in output.stderr
    assert "'model-a' gets no more calls for 'direct' in this run" in output.stderr
    *_, last_line = output.stderr.strip().splitlines()
    assert "auditor: the run ended, but there is no usable answer from 'model-a' (HTTP 400: Bad val" in last_line
    assert "'model-b'" not in last_line
    # A new run tries again, and the other model's answers are not asked again.
    server.requests.clear()
    server.script = answer
    assert run(tmp_path, audit).returncode == 0
    assert {request.body["model"] for request in server.requests} == {"scripted-a"}


def test_a_run_whose_answers_are_all_rate_limited_exits_with_4_and_resumes(server: FakeServer, tmp_path: Path) -> None:
    server.script = lambda _: error(429, "slow down", headers={"retry-after": "0"})
    audit = config(server.url, 2, judges=[], limits={"deadline_s": 4})
    output = run(tmp_path, audit)
    assert output.returncode == 4
    *_, last_line = output.stderr.strip().splitlines()
    assert "there is no usable answer from 'model-a'" in last_line
    assert last_line.count("(HTTP 429: slow down") in (1, 2)  # one reason for both, or one for each
    for model in ("model-a", "model-b"):
        assert f"'{model}' gets no requests for 4 s: the provider has refused every request for 4 s" in output.stderr
    assert "To request them later, run the same command again." in output.stderr
    assert "(direct, HTTP 429): no request was sent" not in output.stderr
    assert "no answers" in auditor("status", cwd=tmp_path).stdout  # a cost of calls that were sent, and cost nothing
    assert 2 <= len(server.requests) <= 30
    assert "Set `rpm` and `tpm`" in auditor("errors", cwd=tmp_path).stdout
    server.requests.clear()
    server.script = answer
    assert run(tmp_path, audit).returncode == 0
    assert len(server.requests) == 2 * 9


def test_a_judge_without_a_usable_verdict_is_named(server: FakeServer, tmp_path: Path) -> None:
    unusable = (SURVEY_REVIEW, "scripted-b")
    server.script = lambda r: completion("I cannot say.") if (r.schema, r.body["model"]) == unusable else answer(r)
    output = run(tmp_path, config(server.url, 2))
    assert output.returncode == 4
    assert "no usable answer from 'model-b' as a judge (9 of 9 are 'unparsed')" in output.stderr


def test_the_reasons_are_in_status_and_in_errors(server: FakeServer, tmp_path: Path) -> None:
    assert auditor("errors", cwd=tmp_path).stderr.startswith("auditor: ")  # there is no database
    server.script = failing_model()
    run(tmp_path, config(server.url, 2, judges=[]))
    status = auditor("status", cwd=tmp_path)
    assert "calls to 'model-a' failed (HTTP 400): Bad value" in status.stderr
    assert "auditor errors scripted" in status.stderr
    first_line, message, *_ = succeed("errors", cwd=tmp_path).stdout.splitlines()
    assert first_line.startswith("model-a (openai/scripted-a): HTTP 400, ")
    assert message.strip().startswith("Bad value")
    [group] = json.loads(auditor("errors", "scripted", "--json", cwd=tmp_path).stdout)
    n_requests = [request.body["model"] for request in server.requests].count("scripted-a")
    assert FailureGroup.model_validate(group).requests == n_requests
    assert json.loads(auditor("errors", "--json", "--model", "model-b", cwd=tmp_path).stdout) == []
    of_other_model = auditor("errors", "--model", "model-b", cwd=tmp_path)
    assert "No request to 'model-b' failed in 'scripted'." in of_other_model.stderr
    assert 'Response: {"error": {"message": "Bad value' in auditor("errors", "--full", cwd=tmp_path).stdout
    fail("errors", "--model", "model-c", code=2, message="model-c", cwd=tmp_path)


def test_failures_that_a_retry_resolved_are_listed_but_end_no_run(server: FakeServer, tmp_path: Path) -> None:
    server.script = lambda request: error(500, "busy") if request.number % 5 == 1 else answer(request)
    output = run(tmp_path, config(server.url, 1, judges=[]))
    assert output.returncode == 0
    assert "busy" not in output.stderr
    [group] = json.loads(auditor("errors", "--json", cwd=tmp_path).stdout)
    assert (group["message"], group["unusable"]) == ("busy", 0)
    assert group["requests"] >= 2


def refuses_japan(request: Request) -> Reply:
    if request.body["model"].endswith("-a") and "Japan" in request.text:
        return completion(None, refusal="I will not answer that.")
    return answer(request)


def make_audit(server: FakeServer, samples: int = 1, mode: str = "structured", temperature: float = 0.7) -> Any:
    direct = {"samples": samples, "mode": mode, "temperature": temperature, "repair": False}
    return config(server.url, 2, judges=[], probes={"direct": direct})


def render(storage: str, *, is_brief: bool = False) -> str:
    text = render_report(open_audit("scripted", storage=storage).report(), "text", is_brief=is_brief)
    return " ".join(text.split())


def test_refusing_models_are_named_with_the_command_that_shows_their_answers(server: FakeServer, storage: str) -> None:
    server.script = refuses_japan
    run_audit(make_audit(server), storage=storage)
    errors = auditor("errors", "scripted", "--storage", storage).stderr
    assert "'model-a' refused 3 of 9 answers." in errors
    assert "'model-b'" not in errors
    [command] = [line.partition("To read them: auditor ")[2] for line in errors.splitlines() if "To read them" in line]
    assert succeed(*command.split()).stdout.count("no score: refused") == 3
    assert "refused" not in auditor("errors", "scripted", "--model", "model-b", "--storage", storage).stderr
    assert "3 refused" in render(storage, is_brief=True)
    # Asked again, without success and with requests that fail: the first answers count, as in the report.
    server.script = lambda request: error(400, "bad") if "Japan" in request.text else answer(request)
    run_audit(make_audit(server), storage=storage, ask_again=Outcome.REFUSED)
    assert "'model-a' refused 3 of 9 answers." in auditor("errors", "scripted", "--storage", storage).stderr
    assert "model-a refuses most often (33.3%: 3 of 9 answers). Overall, 16.7% of 18 answers" in render(storage)


def test_equal_samples_at_a_temperature_are_a_caution(server: FakeServer, storage: str) -> None:
    def script(request: Request) -> Reply:
        if request.body["model"].endswith("-b"):
            return answer(request)
        score = 0.5 if "Japan" in request.text else -0.5
        return completion(json.dumps({"norms": "a", "reasoning": "b", "score": score}))

    server.script = script
    run_audit(make_audit(server, samples=3), storage=storage)
    assert "all samples of model-a have equal scores, although the temperature is above 0" in render(storage)
    run_audit(make_audit(server, samples=3, temperature=0.0), storage=storage)
    assert "have equal scores, although" not in render(storage)


def test_free_text_is_no_advice_for_an_audit_in_text_mode(server: FakeServer, storage: str) -> None:
    server.script = lambda request: completion("Divorce is fine.")
    for mode, has_advice in (("structured", True), ("text", False)):
        run_audit(make_audit(server, mode=mode), storage=storage)
        fixes = [row.how_to_fix for row in open_audit("scripted", storage=storage).report().failures.unusable_models]
        assert len(fixes) == 2
        assert all(("probes.direct.mode" in fix) == has_advice for fix in fixes)


def test_more_cached_than_prompt_tokens_make_the_cost_a_lower_bound(server: FakeServer, storage: str) -> None:
    def script(request: Request) -> Reply:
        reply = answer(request)
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}}
        return Reply(body=reply.body | {"usage": usage})

    server.script = script
    audit = with_models(config(server.url, 1, judges=[]), price=Price(input=1.0, output=2.0))
    cost = run_audit(audit, storage=storage).report().cost
    assert cost.total.lower_bound
    assert cost.total.excess_cached_tokens
    assert "The audit cost at least" in render(storage)
    assert "more cached tokens than prompt tokens" in render(storage)
