"""Models that cannot be used, or that fail in one way: what a run sends, says and exits with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain.decisions import SURVEY_REVIEW
from auditor.reports.data.failures import FailureGroup
from tests.e2e.test_run import config_file
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.cli_runner import CommandOutput, auditor
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion, error

KEY_ENV = {KEY_VARIABLE: KEY}


def run(tmp_path: Path, audit: AuditConfig, *options: str) -> CommandOutput:
    """The outcome of `auditor run` in a folder of its own."""
    return auditor("run", config_file(tmp_path, audit), *options, cwd=tmp_path, **KEY_ENV)


def provided_by(audit: AuditConfig, *providers: str) -> AuditConfig:
    """The audit with the providers of its models replaced, in their order."""
    models = [
        model.model_copy(update={"model": f"{provider}/scripted-{letter}"})
        for model, provider, letter in zip(audit.models, providers, "abcdefgh", strict=False)
    ]
    return audit.model_copy(update={"models": models})


# What providers send for a wrong key or model; the sources are in tests/models/test_failures.py.
UNUSABLE: dict[str, tuple[str, Reply, str]] = {
    "deepseek key": (
        "deepseek",
        Reply(401, {"error": {"message": "Authentication Fails, Your api key: ****cd15 is invalid"}}),
        "Authentication Fails, Your api key: ****cd15 is invalid",
    ),
    "deepseek model": ("deepseek", error(400, "Model Not Exist"), "Model Not Exist"),
    "mistral key": ("mistral", Reply(401, {"detail": "Unauthorized"}), "Unauthorized"),
    "mistral model": (
        "mistral",
        Reply(400, {"object": "error", "message": "Invalid model: nope", "type": "invalid_model", "code": "1500"}),
        "Invalid model: nope",
    ),
    "xai key": ("xai", Reply(400, {"error": "Incorrect API key provided: sk***gA."}), "Incorrect API key provided"),
    "balance": ("deepseek", error(402, "Insufficient Balance"), "Insufficient Balance"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_wrong_key_or_model_ends_the_run_after_one_request(server: FakeServer, tmp_path: Path, name: str) -> None:
    provider, reply, words = UNUSABLE[name]
    server.script = lambda _: reply
    output = run(tmp_path, provided_by(config(server.url, 1, judges=[]), provider))
    assert output.returncode == 1
    assert len(server.requests) == 1
    assert words in output.stderr
    assert '{"' not in output.stderr


def failing_model(**changes: Any) -> Any:
    """A script in which the model `scripted-a` fails in one way, with a new id each time."""

    def script(request: Request) -> Reply:
        if request.body["model"] != "scripted-a":
            return answer(request)
        return replace(error(400, f"Bad value {request.number}, request id: req_{request.number:09}"), delay_s=0.05)

    return script


def test_a_failing_model_is_stopped_the_other_finishes_and_the_exit_code_is_4(
    server: FakeServer, tmp_path: Path
) -> None:
    server.script = failing_model()
    audit = config(server.url, 2, judges=[], probes={"direct": {"samples": 15}})
    models = [model.model_copy(update={"concurrency": 100}) for model in audit.models]
    output = run(tmp_path, audit.model_copy(update={"models": models}))
    assert output.returncode == 4
    sent = [request.body["model"] for request in server.requests]
    assert 5 <= sent.count("scripted-a") <= 20
    assert sent.count("scripted-b") == 15 * 9
    n_unsent = 15 * 9 - sent.count("scripted-a")
    assert f"{n_unsent} further calls were not sent, since their model was stopped." in output.stderr
    for arguments in ("status", "errors"):
        assert f"{n_unsent} further calls were not sent" in auditor(arguments, cwd=tmp_path).stderr
    report = auditor("report", "scripted", "--format", "text", cwd=tmp_path).stdout
    assert f"{n_unsent} further calls were not sent" in " ".join(report.split())
    assert "'model-a' failed (direct, HTTP 400): Bad value" in output.stderr
    assert "'model-a' gets no more calls for 'direct' in this run" in output.stderr
    *_, last_line = output.stderr.strip().splitlines()
    assert last_line.startswith(
        "auditor: the run ended, but there is no usable answer from 'model-a' (HTTP 400: Bad val"
    )
    assert "'model-b'" not in last_line
    # A new run tries again, and the other model's answers are not asked again.
    server.requests.clear()
    server.script = answer
    assert run(tmp_path, audit).returncode == 0
    assert {request.body["model"] for request in server.requests} == {"scripted-a"}


def test_a_run_whose_answers_are_all_rate_limited_exits_with_4_and_resumes(server: FakeServer, tmp_path: Path) -> None:
    server.script = lambda _: error(429, "slow down", headers={"retry-after": "0"})
    audit = config(server.url, 2, judges=[], probes={"direct": {"samples": 10}}, limits={"deadline_s": 4})
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
    assert len(server.requests) == 2 * 9 * 10


def test_a_judge_without_a_usable_verdict_is_named(server: FakeServer, tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        is_bad = request.schema == SURVEY_REVIEW and request.body["model"] == "scripted-b"
        return completion("I cannot say.") if is_bad else answer(request)

    server.script = script
    output = run(tmp_path, config(server.url, 2, probes={"direct": {"samples": 1}}))
    assert output.returncode == 4
    assert "no usable answer from 'model-b' as a judge (9 of 9 are 'unparsed')" in output.stderr


def test_the_reasons_are_in_status_and_in_errors(server: FakeServer, tmp_path: Path) -> None:
    server.script = failing_model()
    run(tmp_path, config(server.url, 2, judges=[], probes={"direct": {"samples": 1}}))
    status = auditor("status", cwd=tmp_path)
    assert "calls to 'model-a' failed (HTTP 400): Bad value" in status.stderr
    assert "auditor errors scripted" in status.stderr
    listed = auditor("errors", cwd=tmp_path)
    assert listed.returncode == 0
    first_line, message, *_ = listed.stdout.splitlines()
    assert first_line.startswith("model-a (openai/scripted-a): HTTP 400, ")
    assert message.strip().startswith("Bad value")
    [group] = json.loads(auditor("errors", "scripted", "--json", cwd=tmp_path).stdout)
    assert FailureGroup.model_validate(group).requests == len(
        [request for request in server.requests if request.body["model"] == "scripted-a"]
    )
    assert json.loads(auditor("errors", "--json", "--model", "model-b", cwd=tmp_path).stdout) == []
    assert (
        "No request to 'model-b' failed in 'scripted'." in auditor("errors", "--model", "model-b", cwd=tmp_path).stderr
    )
    full = auditor("errors", "--full", cwd=tmp_path)
    assert 'Response: {"error": {"message": "Bad value' in full.stdout
    unknown = auditor("errors", "--model", "model-c", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "model-c" in unknown.stderr


def test_failures_that_a_retry_resolved_are_listed_but_end_no_run(server: FakeServer, tmp_path: Path) -> None:
    server.script = lambda request: error(500, "busy") if request.number % 5 == 1 else answer(request)
    output = run(tmp_path, config(server.url, 1, judges=[], probes={"direct": {"samples": 1}}))
    assert output.returncode == 0
    assert "busy" not in output.stderr
    [group] = json.loads(auditor("errors", "--json", cwd=tmp_path).stdout)
    assert (group["message"], group["unusable"]) == ("busy", 0)
    assert group["requests"] >= 2


def test_an_empty_database_has_no_errors_to_list(tmp_path: Path) -> None:
    output = auditor("errors", cwd=tmp_path)
    assert output.returncode == 1
    assert output.stderr.startswith("auditor: ")
