"""What a run, `auditor errors` and the report say of refusals, equal samples, unreadable texts and cached tokens."""

from __future__ import annotations

import json
from typing import Any

from auditor.config import Price
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from tests.support.audit_configs import config
from tests.support.cli_runner import run
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion


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
    errors = run(["errors", "scripted", "--storage", storage]).stderr
    assert "'model-a' refused 3 of 9 answers." in errors
    assert "'model-b'" not in errors
    [command] = [line.partition("To read them: auditor ")[2] for line in errors.splitlines() if "To read them" in line]
    shown = run(command.split())
    assert shown.returncode == 0
    assert shown.stdout.count("no score: refused") == 3
    assert "refused" not in run(["errors", "scripted", "--model", "model-b", "--storage", storage]).stderr
    assert "3 refused" in render(storage, is_brief=True)
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


def test_equal_samples_at_temperature_0_are_no_caution(server: FakeServer, storage: str) -> None:
    server.script = lambda request: completion(json.dumps({"norms": "a", "reasoning": "b", "score": 0.5}))
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
        assert isinstance(reply.body, dict)
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}}
        return Reply(body=reply.body | {"usage": usage})

    server.script = script
    audit = config(server.url, 1, judges=[], probes={"direct": {"samples": 1}})
    model = audit.models[0].model_copy(update={"price": Price(input=1.0, output=2.0)})
    run_audit(audit.model_copy(update={"models": [model]}), storage=storage)
    cost = open_audit("scripted", storage=storage).report().cost
    assert cost.total.lower_bound
    assert cost.total.excess_cached_tokens
    assert "The audit cost at least" in render(storage)
    assert "more cached tokens than prompt tokens" in render(storage)
