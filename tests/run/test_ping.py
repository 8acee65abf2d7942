"""`auditor doctor CONFIG --ping` shows what each model accepts, and sends nothing that it should not."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig, ModelSection, Price
from auditor.domain import AnswerForm, Purpose
from auditor.errors import ConfigError
from auditor.models import provider_request
from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS
from auditor.run.ping import PingResult, ping_models, plan_pings
from tests.e2e.test_run import config_file
from tests.support.audit_configs import KEY, KEY_VARIABLE, config, with_models
from tests.support.cli_runner import run
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion, error
from tests.support.known import known

NO_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported."
)
NO_SCHEMA = "This response_format type is unavailable now"
LOGPROBS = {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": [{"token": "A", "logprob": -0.1},
            {"token": "B", "logprob": -2.5}]}]}  # fmt: skip


def reply(request: Request) -> Reply:
    """Model a accepts everything; b refuses the temperature and log-probabilities; c refuses JSON schemas."""
    letter = str(request.body["model"])[-1]
    if request.body.get("logprobs"):
        if letter == "b":
            return error(400, "logprobs are not supported by this model")
        body = completion("A").body
        body["choices"][0]["logprobs"] = LOGPROBS
        return Reply(body=body)
    if letter == "b" and "temperature" in request.body:
        return error(400, NO_TEMPERATURE)
    if letter == "c" and (request.body.get("response_format") or {}).get("type") == "json_schema":
        return error(400, NO_SCHEMA)
    if letter == "c":
        return completion(json.dumps({"norms": "Norms.", "reasoning": "So.", "score": 0.5}))
    return answer(request)


def priced_config(url: str, **changes: Any) -> AuditConfig:
    return with_models(config(url, **changes), price=Price(input=1.0, output=2.0))


def ping(audit_config: AuditConfig) -> dict[str, PingResult]:
    return {result.model: result for result in ping_models(audit_config, plan_pings(audit_config))}


def test_each_model_shows_what_it_accepts(server: FakeServer) -> None:
    server.script = reply
    audit_config = priced_config(server.url)
    plan = plan_pings(audit_config)
    assert server.requests == []
    results = {result.model: result for result in ping_models(audit_config, plan)}
    full, without_temperature, without_schema = (results[f"model-{letter}"] for letter in "abc")
    assert (full.reachable, full.form, full.temperature, full.seed, full.logprobs, full.problem) == (
        True, AnswerForm.JSON_SCHEMA, "0.7", "sent", "yes", None,
    )  # fmt: skip
    assert (without_temperature.temperature, without_temperature.seed, without_temperature.logprobs) == (
        "not sent", "sent", "no",
    )  # fmt: skip
    assert (without_schema.form, without_schema.problem) == (AnswerForm.JSON_OBJECT, None)
    assert full.key == f"{KEY_VARIABLE} is set"
    assert full.price == "$1 / $2"
    assert full.latency_s is not None
    requests_by_model = Counter(str(request.body["model"])[-1] for request in server.requests)
    assert requests_by_model == {"a": 2, "b": 3, "c": 3}
    assert {result.model[-1]: result.requests for result in results.values()} == requests_by_model
    total_usd = sum(result.cost_usd or 0.0 for result in results.values())
    assert 0 < total_usd <= plan.max_cost_usd
    assert len(server.requests) <= plan.max_requests == 3 * (MAX_DISCOVERY_REQUESTS + 1)


def test_a_judge_of_its_own_reviews_a_stand_in_trace(server: FakeServer) -> None:
    server.script = reply
    judge = {
        "name": "judge", "model": "openai/judge-a", "api_base": server.url, "api_key": f"os.environ/{KEY_VARIABLE}",
    }  # fmt: skip
    audit_config = config(server.url, 1, judges=[judge])
    model_ping, judge_ping = plan_pings(audit_config).pings
    assert (known(model_ping.call).purpose, known(judge_ping.call).purpose) == (Purpose.PREFLIGHT, Purpose.PREFLIGHT)
    results = ping(audit_config)
    assert (results["judge"].form, results["judge"].temperature) == (AnswerForm.JSON_SCHEMA, "0")


def test_a_peer_that_answers_in_free_text_is_asked_as_a_judge(server: FakeServer) -> None:
    pings = plan_pings(config(server.url, probes={"direct": {"mode": "text"}})).pings
    assert {planned.call.purpose for planned in pings if planned.call} == {Purpose.PREFLIGHT}


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "Incorrect API key provided"), (404, "`b` does not exist"), (429, "Rate limit reached"), (500, "boom")],
)
def test_an_unusable_model_is_named_others_are_asked(server: FakeServer, status: int, message: str) -> None:
    server.script = lambda request: (
        error(status, message) if str(request.body["model"]).endswith("b") else reply(request)
    )
    results = ping(config(server.url))
    failed = results["model-b"]
    assert message in known(failed.problem)
    assert failed.how_to_fix
    assert (failed.reachable, failed.form, failed.temperature, failed.logprobs) == (True, None, None, None)
    assert [results[name].problem for name in ("model-a", "model-c")] == [None, None]
    assert failed.requests <= MAX_DISCOVERY_REQUESTS


@pytest.mark.parametrize(
    ("text", "finish", "state", "words"),
    [
        (None, "length", "FAIL", "it reached its token limit before its answer was complete"),
        ("People there", "length", "FAIL", "it reached its token limit before its answer was complete (20 tokens)"),
        ("", "stop", "FAIL", ""),
        ("I talk about the weather.", "stop", "warn", "have the requested structure: “I talk about the weather.”"),
        ("I'm sorry, I can't help.", "stop", "warn", "refused to answer the question: “I'm sorry, I can't help.”"),
        ("", "content_filter", "warn", "it refused to answer"),
    ],
)
def test_a_model_without_a_complete_readable_answer_is_not_ok(
    server: FakeServer, tmp_path: Path, text: str | None, finish: str, state: str, words: str
) -> None:
    server.script = lambda request: completion(text, finish=finish)
    audit_config = config(server.url, 1, judges=[])
    result = ping(audit_config)["model-a"]
    assert (result.state, result.form, words in (result.problem or "-")) == (state, None, True), result
    assert result.how_to_fix or not words
    completed = run(["doctor", str(config_file(tmp_path, audit_config)), "--ping"])
    assert completed.returncode == (state == "FAIL")
    assert result.requests <= MAX_DISCOVERY_REQUESTS + 1


def test_each_result_is_passed_on_at_once(server: FakeServer) -> None:
    server.script = reply
    audit_config = config(server.url, 2, judges=[])
    results: list[PingResult] = []
    assert sorted(ping_models(audit_config, plan_pings(audit_config), results.append), key=str) == sorted(
        results, key=str
    )


@pytest.mark.parametrize(
    ("api_key", "key", "fix"),
    [(f"os.environ/{KEY_VARIABLE}", f"{KEY_VARIABLE} was refused", "Check the key in"),
     (None, "missing", 'Add api_key = "os.environ/…"')],
)  # fmt: skip
def test_refused_and_missing_keys_have_other_fixes(server: FakeServer, api_key: str | None, key: str, fix: str) -> None:
    server.script = lambda request: error(401, f"Incorrect API key provided: {KEY if api_key else None}")
    audit_config = config(server.url, 1, judges=[])
    result = ping(with_models(audit_config, api_key=api_key))["model-a"]
    assert (result.key, result.state) == (key, "FAIL")
    assert KEY not in str(result)
    assert fix in (result.how_to_fix or "")


def test_a_server_that_is_not_there_is_not_reachable(server: FakeServer) -> None:
    result = ping(config("http://127.0.0.1:9/v1", 1, judges=[]))["model-a"]
    assert (result.reachable, result.problem is None) == (False, False)


def test_a_model_without_its_key_is_not_asked(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    [result] = ping(config(server.url, 1, judges=[])).values()
    unset = f"{KEY_VARIABLE} is not set"
    assert (result.key, result.problem) == (unset, f"the environment variable {unset}.")
    assert result.how_to_fix == f"Set it: export {KEY_VARIABLE}=..."
    assert server.requests == []


def test_a_host_that_is_not_allowed_gets_nothing(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_TRUST", "")
    with pytest.raises(ConfigError, match="which you have not allowed"):
        plan_pings(config(server.url))
    assert server.requests == []


def test_the_greatest_cost_must_be_within_the_budget(server: FakeServer) -> None:
    limited = priced_config(server.url, limits={"budget_usd": 0.001})
    with pytest.raises(ConfigError, match="could cost up to") as refused:
        plan_pings(limited)
    assert "limits.budget_usd is 0.001" in str(refused.value)
    assert server.requests == []
    with pytest.raises(ConfigError, match="price of 'model-a'"):
        plan_pings(config(server.url, limits={"budget_usd": 5.0}))


def test_room_for_thinking_that_no_first_request_has_does_not_refuse_a_budget(server: FakeServer) -> None:
    unlimited = plan_pings(priced_config(server.url))
    first_usd = sum(ping.first_cost_usd or 0.0 for ping in unlimited.pings)
    assert first_usd < unlimited.max_cost_usd / 20
    limited = plan_pings(priced_config(server.url, limits={"budget_usd": 1.01 * first_usd}))
    assert limited.max_cost_usd == pytest.approx(1.01 * first_usd), "the budget holds for all requests"


def test_without_a_budget_unpriced_models_are_named(server: FakeServer) -> None:
    plan = plan_pings(config(server.url))
    assert (plan.max_cost_usd, plan.unpriced_models) == (0.0, ["model-a", "model-b", "model-c"])


def test_recorded_answers_are_no_model_to_ask(server: FakeServer, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("model,country,topic,sample,text\n", encoding="utf-8")
    audit_config = config(server.url, models=1, judges=[])
    replayed = ModelSection(name="old", model="replay/old", answers=str(file))
    results = ping(audit_config.model_copy(update={"models": [*audit_config.models, replayed]}))
    assert (results["old"].key, results["old"].requests, results["old"].problem) == ("answers from a file", 0, None)
    assert results["model-a"].requests > 0


def test_the_command_states_the_cost_first_and_prints_a_row_for_each_model(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server.script = lambda request: (
        error(401, "Incorrect API key provided") if str(request.body["model"]).endswith("b") else reply(request)
    )
    path = config_file(tmp_path, priced_config(server.url))
    completed = run(["doctor", str(path), "--ping"])
    assert completed.returncode == 1
    assert "Asking 3 of 3 models: at most 15 requests in all. Likely cost: $" in completed.stderr
    assert "at most 4 requests that test what its server accepts" in completed.stderr
    assert "Nothing was stored." in completed.stderr
    assert "model-a" in completed.stdout
    assert "Incorrect API" in completed.stdout  # the cell may be wrapped after these words
    assert not list(tmp_path.glob("*.db"))
    as_json = run(["doctor", str(path), "--ping", "--json"])
    document = json.loads(as_json.stdout)
    assert (as_json.returncode, document["max_requests"]) == (1, 15)
    assert 0 < document["likely_cost_usd"] < document["max_cost_usd"] / 20
    assert "Incorrect API key provided" in document["models"][1]["problem"]
    assert [model["form"] for model in document["models"]][::2] == ["json_schema", "json_object"]
    assert {"check", "state"} & {key for check in document["checks"] for key in check}


def test_the_exit_code_of_usable_models_is_0(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server.script = reply
    path = config_file(tmp_path, priced_config(server.url))
    assert run(["doctor", str(path), "--ping"]).returncode == 0
    without_config = run(["doctor", "--ping"])
    assert (without_config.returncode, "--ping needs a config" in without_config.stderr) == (2, True)


def test_the_latency_is_of_the_server_and_of_no_library(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.script = lambda request: replace(reply(request), delay_s=0.05)
    send = provider_request._send_and_repair

    async def start_and_send(*arguments: Any) -> Any:
        await asyncio.sleep(0.5)  # as litellm, which imports a provider's modules at its first request
        return await send(*arguments)

    monkeypatch.setattr(provider_request, "_send_and_repair", start_and_send)
    start_s = time.monotonic()
    latency_s = known(ping(config(server.url, 1, judges=[]))["model-a"].latency_s)
    assert 0.05 <= latency_s <= time.monotonic() - start_s - 0.5
