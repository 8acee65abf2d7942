"""A gateway finds out what a model's server accepts, against servers that refuse; every request is counted."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from auditor.config import ModelSection
from auditor.domain import (
    Answer,
    AnswerForm,
    Call,
    Capability,
    CapabilityKey,
    DeclaredCapabilities,
    Message,
    Outcome,
    Purpose,
)
from auditor.errors import AuditorError, ModelSetupError
from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS, CapabilityRegistry, MemoryCapabilityStore
from auditor.models.failures import RequestFailure
from auditor.models.gateway import MAX_INCONCLUSIVE_CALLS
from auditor.models.provider_request import ProviderReply, failed_answer
from tests.support.fake_server import FakeServer, Reply, Request, Script, completion, error
from tests.support.gateway_calls import ask as ask_gateway, model_section, open_gateway
from tests.support.patience import PATIENCE_S

JUDGEMENT = json.dumps({"norms": "a", "reasoning": "b", "score": -0.5})
INSTRUCTION = "Answer as MoralJudgement in JSON."
Refuse = Callable[[dict[str, Any]], Reply | None]


def unsupported(param: str, kind: str = "parameter") -> Reply:
    return error(400, f"Unsupported {kind}: '{param}' is not supported with this model.", code=f"unsupported_{kind}")


def refuses(param: str) -> Refuse:
    return lambda body: unsupported(param) if param in body else None


def refuses_form(*forms: str) -> Refuse:
    """A server with DeepSeek's words for response formats that it does not know."""
    refusal = error(400, "This response_format type is unavailable now")
    return lambda body: refusal if (body.get("response_format") or {}).get("type") in forms else None


def refuses_keywords(*keywords: str) -> Refuse:
    def refuse(body: dict[str, Any]) -> Reply | None:
        sent = next((keyword for keyword in keywords if f'"{keyword}"' in json.dumps(body)), None)
        text = f"Invalid schema for response_format 'MoralJudgement': In context=('properties', 'norms'), '{sent}' is"
        return None if sent is None else error(400, f"{text} not permitted.")

    return refuse


def server_that(*refusals: Refuse, answer: Script = lambda request: completion(JUDGEMENT)) -> Script:
    """The script of a server that checks each request by these rules, in order, before it answers."""
    return lambda request: next((reply for refuse in refusals if (reply := refuse(request.body))), answer(request))


def call(server: FakeServer, sample: int = 0, schema: str | None = "MoralJudgement", **changes: Any) -> Call:
    params = {"temperature": 0.7, "max_tokens": 50, "seed": 3, **changes.pop("params", {})}
    model, max_words = changes.pop("model", "openai/x"), 9 if schema else None
    return Call("m", model, (Message("user", "hi"),), Purpose.DIRECT, sample, params, schema=schema,
                max_words=max_words, server=server.url, **changes)  # fmt: skip


class RecordingStore(MemoryCapabilityStore):
    """A store that keeps the evidence of each saved capability."""

    def __init__(self, capabilities: Mapping[CapabilityKey, Capability] | None = None) -> None:
        super().__init__(capabilities)
        self.evidence: list[str] = []

    async def save(self, key: CapabilityKey, capability: Capability, evidence: str) -> Capability:
        self.evidence.append(evidence)
        return await super().save(key, capability, evidence)


async def ask(
    model: ModelSection, *calls: Call, store: MemoryCapabilityStore | None = None, **limits: Any
) -> list[Answer]:
    """The answers to calls, one after the other, by a gateway with this store."""
    limits |= {"capability_store": store, "describe_structure": lambda schema, max_words, language: INSTRUCTION}
    return await ask_gateway(model, *calls, **limits)


def known(store: MemoryCapabilityStore) -> Capability:
    [capability] = store.load().values()
    return capability


async def test_a_server_that_accepts_everything_is_sent_each_call_once_and_unchanged(server: FakeServer) -> None:
    server.script = server_that()
    store = RecordingStore()
    free_text, structured = await ask(model_section(server), call(server, schema=None), call(server), store=store)
    assert [len(free_text.attempts), len(structured.attempts), len(server.requests)] == [1, 1, 2]
    assert (free_text.form, structured.form) == (None, AnswerForm.JSON_SCHEMA)
    assert structured.altered == ""
    assert known(store) == Capability(form=AnswerForm.JSON_SCHEMA)
    assert structured.capability == known(store).id
    assert store.evidence == ["accepted as requested"] * 2


@pytest.mark.parametrize("model", ["openai/gpt-5", "openai/o3", "openai/o4-mini"])
async def test_a_refusal_by_litellm_is_no_attempt_and_costs_no_request(server: FakeServer, model: str) -> None:
    server.script = server_that(refuses("temperature"), refuses("max_tokens"))
    store = RecordingStore()
    [answer] = await ask(model_section(server, model), call(server, model=model), store=store)
    assert (answer.outcome, len(server.requests), len(answer.attempts)) == (Outcome.OK, 1, 1)
    assert answer.attempts[0].http_status == 200
    assert answer.altered == "temperature"
    assert "temperature" not in server.requests[0].body
    assert store.evidence == ["before sending: parameter temperature refused"]


async def test_a_refusal_by_litellm_that_cannot_be_avoided_has_no_attempt_status_or_cost(server: FakeServer) -> None:
    model, declared = "openai/o3", DeclaredCapabilities(temperature=True)
    sent = call(server, model=model, params={"seed": "none", "functions": []}, declared=declared)
    [answer] = await ask(model_section(server, model, price={"input": 1, "output": 1}), sent)
    assert (answer.outcome, answer.attempts, answer.cost_usd) == (Outcome.CLIENT_ERROR, (), 0.0)
    assert "temperature=0.7" in (answer.error or "")
    assert server.requests == []


async def test_a_refusal_by_the_server_costs_one_request_that_is_recorded(server: FakeServer) -> None:
    server.script = server_that(refuses("temperature"))
    store = RecordingStore()
    answers = await ask(model_section(server), call(server), call(server, 1), store=store)
    assert [[attempt.http_status for attempt in answer.attempts] for answer in answers] == [[400, 200], [200]]
    assert [attempt.number for attempt in answers[0].attempts] == [1, 2]
    assert [answer.altered for answer in answers] == ["temperature", "temperature"]
    assert "temperature" not in json.loads(answers[1].sent or "{}")
    assert known(store).dropped_params == ("temperature",)
    assert store.evidence == ["HTTP 400: parameter temperature refused"]


async def test_at_most_four_requests_find_out_what_a_server_accepts(server: FakeServer) -> None:
    server.script = server_that(*map(refuses, ("max_tokens", "temperature", "seed")), refuses_form("json_schema"))
    store = RecordingStore()
    first, second = await ask(model_section(server), call(server), call(server, 1), store=store)
    assert first.outcome is Outcome.OK
    assert [attempt.http_status for attempt in first.attempts] == [400] * MAX_DISCOVERY_REQUESTS + [200]
    assert len(second.attempts) == 1
    assert known(store) == Capability(AnswerForm.JSON_OBJECT, (), ("seed", "temperature"), "max_completion_tokens")
    assert first.altered == "seed, temperature"  # the limit arrived under its other name
    assert server.requests[-1].body["max_completion_tokens"] == 50


async def test_refusals_by_litellm_leave_all_requests_to_the_server(server: FakeServer) -> None:
    model = "openai/o3"
    params = {"top_p": 0.5, "presence_penalty": 0.1, "frequency_penalty": 0.1, "stop": ["x"]}
    server.script = server_that(*map(refuses, params))
    [answer] = await ask(model_section(server, model), call(server, model=model, params=params), max_attempts=1)
    assert [attempt.http_status for attempt in answer.attempts] == [400] * MAX_DISCOVERY_REQUESTS + [200]
    assert answer.altered == "frequency_penalty, presence_penalty, stop, temperature, top_p"


async def test_a_server_that_refuses_ever_more_is_given_up_after_four_requests(server: FakeServer) -> None:
    params = {"temperature": 0.7, "top_p": 0.5, "presence_penalty": 0.1, "frequency_penalty": 0.1, "seed": 3}
    server.script = server_that(*map(refuses, params))
    answers = await ask(model_section(server), *(call(server, sample, params=params) for sample in range(3)))
    assert [answer.outcome for answer in answers] == [Outcome.CLIENT_ERROR] * 3
    assert [len(answer.attempts) for answer in answers] == [MAX_DISCOVERY_REQUESTS + 1, 1, 1]


async def test_a_second_run_with_a_filled_store_sends_nothing_extra(server: FakeServer) -> None:
    server.script = server_that(refuses("temperature"), refuses_form("json_schema"))
    store = MemoryCapabilityStore()
    await ask(model_section(server), call(server), store=store)
    server.requests.clear()
    [answer] = await ask(model_section(server), call(server, 1), store=store)
    assert (len(server.requests), len(answer.attempts), answer.form) == (1, 1, AnswerForm.JSON_OBJECT)


async def test_parameters_and_form_are_found_out_one_after_the_other(server: FakeServer) -> None:
    server.script = server_that(refuses("temperature"), refuses_form("json_schema"))
    store = RecordingStore()
    free_text, structured = await ask(model_section(server), call(server, schema=None), call(server), store=store)
    assert [len(free_text.attempts), len(structured.attempts)] == [2, 2]
    assert known(store) == Capability(AnswerForm.JSON_OBJECT, (), ("temperature",))


async def test_a_server_without_json_schema_is_asked_for_a_json_object_with_the_schema_in_words(
    server: FakeServer,
) -> None:
    server.script = server_that(refuses_form("json_schema"))
    [answer] = await ask(model_section(server, "deepseek/deepseek-chat"), call(server, model="deepseek/deepseek-chat"))
    assert (answer.outcome, answer.text, answer.form) == (Outcome.OK, JUDGEMENT, AnswerForm.JSON_OBJECT)
    body = server.requests[-1].body
    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"] == [{"role": "user", "content": f"hi\n\n{INSTRUCTION}"}]
    assert server.requests[0].body["messages"] == [{"role": "user", "content": "hi"}]


async def test_a_server_without_response_formats_is_asked_for_a_tool_and_one_without_tools_for_text(
    server: FakeServer,
) -> None:
    server.script = server_that(refuses_form("json_schema", "json_object"))
    [with_tool] = await ask(model_section(server), call(server))
    assert (with_tool.form, "tools" in server.requests[-1].body) == (AnswerForm.TOOL, True)
    server.script = server_that(refuses_form("json_schema", "json_object"), refuses("tools"))
    [as_text] = await ask(model_section(server), call(server))
    assert (as_text.form, as_text.altered) == (AnswerForm.TEXT, "response_format")
    assert server.requests[-1].text == f"hi\n\n{INSTRUCTION}"
    assert not {"tools", "response_format"} & server.requests[-1].body.keys()


async def test_refused_keywords_are_left_out_and_the_schema_stays(server: FakeServer) -> None:
    server.script = server_that(refuses_keywords("maxLength", "minLength"))
    store = RecordingStore()
    [answer] = await ask(model_section(server), call(server), store=store)
    assert (answer.form, len(answer.attempts)) == (AnswerForm.JSON_SCHEMA, 2)
    assert known(store).dropped_keywords == ("maxLength", "minLength")
    schema = server.requests[-1].body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["properties"]["score"]["minimum"] == -1


async def test_azure_is_not_sent_the_keywords_that_it_refuses(server: FakeServer) -> None:
    server.script = server_that(refuses_keywords("maxLength", "minLength"))
    section = model_section(server, "azure/mine", params={"api_version": "2024-10-21"})
    [answer] = await ask(section, call(server, model="azure/mine"))
    assert (answer.outcome, len(server.requests), answer.form) == (Outcome.OK, 1, AnswerForm.JSON_SCHEMA)


async def test_what_the_config_declares_is_not_tried_out(server: FakeServer) -> None:
    server.script = server_that(refuses("temperature"), refuses_form("json_schema"))
    declared = DeclaredCapabilities(form=AnswerForm.TOOL, temperature=False, seed=False)
    [answer] = await ask(model_section(server), call(server, declared=declared))
    assert (answer.form, len(server.requests), answer.altered) == (AnswerForm.TOOL, 1, "seed, temperature")
    server.requests.clear()
    declared = DeclaredCapabilities(form=AnswerForm.JSON_SCHEMA, temperature=True)
    [refused] = await ask(model_section(server), call(server, declared=declared))
    assert (refused.outcome, len(server.requests)) == (Outcome.CLIENT_ERROR, 1)


# --- a schema that is accepted and ignored


def ignores_schema(*forms: str) -> Script:
    """A server that answers in prose to requests in these forms, with a 200."""

    def script(request: Request) -> Reply:
        form = (request.body.get("response_format") or {}).get("type", "tool" if "tools" in request.body else "text")
        return completion("I think so." if form in forms else JUDGEMENT)

    return script


async def test_a_server_that_ignores_the_schema_gets_the_next_form_if_that_reads_twice(server: FakeServer) -> None:
    server.script = ignores_schema("json_schema")
    store, model = RecordingStore(), model_section(server, price={"input": 1, "output": 1})
    first, second = await ask(model, call(server), call(server, 1), store=store)
    forms = [request.body["response_format"]["type"] for request in server.requests]
    assert forms == ["json_schema"] * 2 + ["json_object"] * 3
    assert (first.text, first.form, len(first.attempts)) == (JUDGEMENT, AnswerForm.JSON_OBJECT, 4)
    assert first.cost_usd == pytest.approx(4 * 120e-6)
    assert [attempt.number for attempt in first.attempts] == [1, 2, 3, 4]
    assert len(second.attempts) == 1
    assert store.evidence == ["two of two answers cannot be read as json_schema"]


async def test_a_server_that_also_refuses_the_next_form_gets_the_one_after(server: FakeServer) -> None:
    server.script = server_that(refuses_form("json_object"), answer=ignores_schema("json_schema"))
    store = RecordingStore()
    [answer] = await ask(model_section(server), call(server), store=store)
    assert (known(store).form, len(answer.attempts), answer.text) == (AnswerForm.TOOL, 5, JUDGEMENT)


async def test_a_poor_model_on_a_server_that_knows_schemas_keeps_them_and_its_first_answer(server: FakeServer) -> None:
    texts = iter(["first", "second", JUDGEMENT, "fourth", "fifth"])
    server.script = lambda request: completion(next(texts))
    store = RecordingStore()
    first, second = await ask(model_section(server), call(server), call(server, 1), store=store)
    assert (first.text, first.form, len(first.attempts)) == ("first", AnswerForm.JSON_SCHEMA, 4)
    assert (second.text, second.form, len(second.attempts)) == ("fifth", AnswerForm.JSON_SCHEMA, 1)
    assert known(store) == Capability(form=AnswerForm.JSON_SCHEMA)


async def test_one_unreadable_answer_of_two_changes_nothing(server: FakeServer) -> None:
    texts = iter(["prose", JUDGEMENT, "more prose"])
    server.script = lambda request: completion(next(texts))
    first, second = await ask(model_section(server), call(server), call(server, 1))
    assert (first.text, first.form, len(first.attempts)) == ("prose", AnswerForm.JSON_SCHEMA, 2)
    assert (second.text, len(second.attempts)) == ("more prose", 1)


async def test_a_truncated_or_refused_answer_says_nothing_about_the_form(server: FakeServer) -> None:
    replies = iter([completion("{", finish="length"), completion(None, refusal="No."), *[completion("prose")] * 2])
    server.script = lambda request: next(replies, completion(JUDGEMENT))
    store = RecordingStore()
    answers = await ask(model_section(server), *(call(server, sample) for sample in range(4)), store=store)
    assert [len(answer.attempts) for answer in answers] == [1, 1, 4, 1]
    assert known(store).form is AnswerForm.JSON_OBJECT


async def test_json_validate_failed_never_steps_down(server: FakeServer) -> None:
    body = {"message": "Failed to validate JSON.", "type": "invalid_request_error", "code": "json_validate_failed",
            "failed_generation": "This model does not support response format `json_schema`"}  # fmt: skip
    server.script = lambda request: Reply(400, {"error": body})
    store = RecordingStore()
    answers = await ask(model_section(server), call(server), call(server, 1), store=store)
    assert [len(answer.attempts) for answer in answers] == [1, 1]
    assert (len(server.requests), store.load()) == (2, {})


async def test_groqs_error_for_a_cut_off_answer_gets_room_for_thinking(server: FakeServer) -> None:
    body = {"message": "Failed to generate JSON.", "type": "invalid_request_error", "code": "json_validate_failed",
            "failed_generation": "max completion tokens reached before generating a valid document"}  # fmt: skip
    is_cut_off = Reply(400, {"error": body})
    server.script = lambda request: completion(JUDGEMENT) if request.body["max_tokens"] > 50 else is_cut_off
    [answer] = await ask(model_section(server), call(server))
    assert (answer.outcome, len(answer.attempts)) == (Outcome.OK, 2)
    assert answer.altered == "max_tokens=4146"


# --- failures of other kinds


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_failures_of_other_kinds_are_retried_as_ever(server: FakeServer, status: int) -> None:
    replies = iter([error(status, "busy", headers={"retry-after": "0"}), unsupported("temperature")])
    server.script = lambda request: next(replies, completion(JUDGEMENT))
    store = RecordingStore()
    [answer] = await ask(model_section(server), call(server), store=store, max_attempts=2)
    assert [attempt.http_status for attempt in answer.attempts] == [status, 400, 200]
    assert known(store).dropped_params == ("temperature",)


@pytest.mark.parametrize("status", [402, 403, 410, 413])
async def test_words_of_a_refusal_count_only_with_the_status_of_one(server: FakeServer, status: int) -> None:
    replies = iter([completion("hi"), error(status, "Unsupported parameter: 'temperature' is not supported.")])
    server.script = lambda request: next(replies, completion(JUDGEMENT))
    _, refused = await ask(model_section(server), call(server, schema=None), call(server))
    assert (refused.outcome, len(refused.attempts)) == (Outcome.CLIENT_ERROR, 1)


async def test_a_model_that_litellm_has_no_entry_for_is_asked_for_a_schema_first(server: FakeServer) -> None:
    model = "groq/unlisted"
    server.script = server_that()
    [answer] = await ask(model_section(server, model), call(server, model=model))
    assert (answer.outcome, answer.form) == (Outcome.OK, AnswerForm.JSON_SCHEMA)
    assert "response_format" in server.requests[0].body


async def test_an_unknown_refusal_ends_the_call_and_the_next_one_tries_again(server: FakeServer) -> None:
    replies = iter([error(400, "no")])
    server.script = lambda request: next(replies, completion(JUDGEMENT))
    store = RecordingStore()
    first, second = await ask(model_section(server), call(server), call(server, 1), store=store)
    assert (first.outcome, second.outcome) == (Outcome.CLIENT_ERROR, Outcome.OK)
    assert known(store).form is AnswerForm.JSON_SCHEMA


async def test_a_refusal_after_discovery_changes_nothing(server: FakeServer) -> None:
    replies = iter([completion(JUDGEMENT), unsupported("temperature")])
    server.script = lambda request: next(replies, completion(JUDGEMENT))
    store = RecordingStore()
    _, refused, after = await ask(model_section(server), *(call(server, sample) for sample in range(3)), store=store)
    assert (refused.outcome, len(refused.attempts), len(after.attempts)) == (Outcome.CLIENT_ERROR, 1, 1)
    assert known(store) == Capability(form=AnswerForm.JSON_SCHEMA)


async def test_a_missing_model_is_no_refused_feature(server: FakeServer) -> None:
    server.script = lambda request: error(404, "The model `x` does not exist", code="model_not_found")
    with pytest.raises(ModelSetupError, match="does not exist"):
        await ask(model_section(server), call(server))
    assert len(server.requests) == 1


async def test_a_404_that_refuses_tools_does_not_block_the_model(server: FakeServer) -> None:
    prose, no_tools = (
        refuses_form("json_schema", "json_object"),
        error(404, "No endpoints found that support tool use."),
    )
    server.script = server_that(prose, lambda body: no_tools if "tools" in body else None)
    [answer] = await ask(model_section(server), call(server))
    assert (answer.outcome, answer.form) == (Outcome.OK, AnswerForm.TEXT)


async def test_an_answer_is_not_lost_if_its_capability_cannot_be_stored(server: FakeServer) -> None:
    class BrokenStore(MemoryCapabilityStore):
        async def save(self, key: CapabilityKey, capability: Capability, evidence: str) -> Capability:
            raise AuditorError("the disk is full.")

    server.script = server_that()
    with pytest.raises(AuditorError, match="disk") as caught:
        await ask(model_section(server), call(server), store=BrokenStore())
    assert caught.value.answer is not None
    assert caught.value.answer.text == JUDGEMENT


async def test_the_first_stored_capability_wins(server: FakeServer) -> None:
    winner = Capability(form=AnswerForm.TOOL)

    class SharedStore(MemoryCapabilityStore):
        async def save(self, key: CapabilityKey, capability: Capability, evidence: str) -> Capability:
            return winner

    server.script = server_that()
    first, second = await ask(model_section(server), call(server), call(server, 1), store=SharedStore())
    assert (first.form, second.form) == (AnswerForm.JSON_SCHEMA, AnswerForm.TOOL)


# --- many calls at once


async def test_of_a_hundred_calls_at_once_one_finds_out(server: FakeServer) -> None:
    server.script = server_that(refuses("temperature"), refuses_form("json_schema"))
    answers = await ask_gateway(model_section(server), *(call(server, i) for i in range(100)), at_once=True)
    assert {answer.outcome for answer in answers} == {Outcome.OK}
    assert sorted(len(answer.attempts) for answer in answers) == [1] * 99 + [3]
    assert len(server.requests) == 102


async def test_calls_do_not_wait_for_each_other_forever_if_all_fail(server: FakeServer) -> None:
    several_wait = threading.Event()

    def fail(request: Request) -> Reply:
        """Fail, after the first calls only once others have arrived at the same time."""
        if len(server.requests) > MAX_INCONCLUSIVE_CALLS + 1:
            several_wait.set()
        # Each failure has words of its own, so that the model is not stopped for equal failures in a row.
        reply = error(400, "no" + "o" * request.number)
        return reply if request.number <= MAX_INCONCLUSIVE_CALLS else replace(reply, after=several_wait)

    server.script = fail
    async with asyncio.timeout(PATIENCE_S):
        answers = await ask_gateway(model_section(server), *(call(server, i) for i in range(40)), at_once=True)
    assert {answer.outcome for answer in answers} == {Outcome.CLIENT_ERROR}
    assert len(server.requests) == 40
    assert several_wait.is_set()


# --- thinking that takes up the answer's tokens


def thinks_for(n_tokens: int) -> Script:
    def script(request: Request) -> Reply:
        limit = request.body["max_tokens"]
        reply = completion(JUDGEMENT) if limit > n_tokens else completion("", finish="length")
        reply.body["usage"] = {"prompt_tokens": 100, "completion_tokens": min(limit, n_tokens + 20)}
        return reply

    return script


async def test_an_answer_cut_off_while_thinking_gets_room_that_later_calls_have_too(server: FakeServer) -> None:
    server.script = thinks_for(6000)
    store, model = RecordingStore(), model_section(server, price={"input": 0, "output": 1})
    first, second = await ask(model, call(server), call(server, 1), store=store)
    assert [request.body["max_tokens"] for request in server.requests] == [50, 4146, 16434, 16434]
    assert [attempt.outcome for attempt in first.attempts] == [Outcome.TRUNCATED, Outcome.TRUNCATED, Outcome.OK]
    assert first.cost_usd == pytest.approx((50 + 4146 + 6020) / 1e6)
    assert first.altered == second.altered == "max_tokens=16434"
    assert known(store).thinking_tokens == 16384


async def test_room_is_part_of_the_reserved_budget_and_of_the_limit_that_cuts_off(server: FakeServer) -> None:
    key = CapabilityKey("openai/x", server.url, None)
    store = MemoryCapabilityStore({key: Capability(form=AnswerForm.JSON_SCHEMA, thinking_tokens=4096)})
    model = model_section(server, price={"input": 0, "output": 1})
    server.script = thinks_for(10)
    [over_budget] = await ask(model, call(server), store=store, budget_usd=0.004)
    assert (over_budget.outcome, server.requests) == (Outcome.OVER_BUDGET, [])
    # 60 tokens are more than the call's 50 and fewer than the 4,146 that were sent; the provider gives no reason.
    server.script = lambda request: (
        completion(JUDGEMENT, finish=None) if request.body["max_tokens"] == 4146 else Reply(500)
    )
    [answer] = await ask(model, call(server), store=store, budget_usd=0.005)
    assert answer.outcome is Outcome.OK


@pytest.mark.parametrize(
    "words", ["Invalid max_tokens value, the valid range is [1, 8192]", "This model's maximum context length is 8192."]
)
async def test_a_server_that_refuses_the_room_keeps_the_smaller_limit(server: FakeServer, words: str) -> None:
    script = thinks_for(6000)
    server.script = lambda request: error(400, words) if request.body["max_tokens"] > 8192 else script(request)
    store = RecordingStore()
    first, second = await ask(model_section(server), call(server), call(server, 1), store=store)
    assert [attempt.http_status for attempt in first.attempts] == [200, 200, 400]
    assert (first.outcome, second.outcome, len(second.attempts)) == (Outcome.TRUNCATED, Outcome.TRUNCATED, 1)
    assert first.error == second.error
    assert known(store).thinking_tokens == 4096


async def test_a_cut_off_answer_is_not_lost_if_the_request_with_more_room_fails(server: FakeServer) -> None:
    script, n_failures = thinks_for(2000), 2
    server.script = lambda request: Reply(503) if 0 < request.number <= n_failures else script(request)
    store = RecordingStore()
    first, second = await ask(model_section(server), call(server), call(server, 1), store=store, max_attempts=2)
    assert [attempt.http_status for attempt in first.attempts] == [200, 503, 503]
    assert (first.outcome, second.outcome, len(second.attempts)) == (Outcome.TRUNCATED, Outcome.OK, 1)
    assert known(store).thinking_tokens == 4096
    assert len(store.evidence) == 1, "room that no answer has shown to be accepted is not saved"


async def test_a_prompt_that_a_filter_refuses_shows_nothing_about_the_server(server: FakeServer) -> None:
    accept_without_temperature = server_that(refuses("temperature"))
    filtered = error(400, "The response was filtered by content management policy.", code="content_filter")
    server.script = lambda r: filtered if r.number == 0 else accept_without_temperature(r)
    store = MemoryCapabilityStore()
    first, *others = await ask(model_section(server), *(call(server, i) for i in range(4)), store=store, max_attempts=1)
    assert first.outcome is Outcome.REFUSED
    assert [answer.outcome for answer in others] == [Outcome.OK] * 3
    assert [capability.dropped_params for capability in store.load().values()] == [("temperature",)]


async def test_models_of_one_server_find_out_once_what_it_accepts(server: FakeServer) -> None:
    server.script = server_that(refuses("temperature"), refuses("seed"))
    personas = [model_section(server, name=f"m{i}") for i in range(4)]
    async with open_gateway(*personas, max_attempts=1) as gateway:
        calls = [replace(call(server, sample=i), name=persona.name) for i, persona in enumerate(personas)]
        answers = await asyncio.gather(*map(gateway.complete, calls))
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 4
    assert len(server.requests) == 4 + 2


async def test_refusals_of_calls_under_way_are_sent_again_as_another_call_found_out(server: FakeServer) -> None:
    """After failed first calls the others no longer wait, so many are refused at once."""
    objects = server_that(refuses_form("json_schema"))
    server.script = lambda r: error(503, "overloaded") if r.number < 4 else replace(objects(r), delay_s=0.05)
    async with open_gateway(model_section(server, concurrency=100), max_attempts=1) as gateway:
        for sample in range(4):
            assert (await gateway.complete(call(server, sample))).outcome is Outcome.SERVER_ERROR
        answers = await asyncio.gather(*(gateway.complete(call(server, 4 + i)) for i in range(60)))
    assert Counter(answer.outcome for answer in answers) == {Outcome.OK: 60}


@pytest.mark.parametrize("status", [429, 503])
async def test_a_form_check_that_a_failure_interrupts_is_repeated(server: FakeServer, status: int) -> None:
    prose = ignores_schema("json_schema")
    server.script = lambda request: error(status, "later") if request.number == 1 else prose(request)
    store = MemoryCapabilityStore()
    answers = await ask(model_section(server), *(call(server, i) for i in range(3)), store=store, max_attempts=1)
    assert answers[0].text == "I think so."  # one unreadable answer and a failure show nothing
    assert [answer.text for answer in answers[1:]] == [JUDGEMENT] * 2
    assert [capability.form for capability in store.load().values()] == [AnswerForm.JSON_OBJECT]


def refusals_before_sending(registry: CapabilityRegistry, question: Call) -> Iterator[Capability]:
    """Yield what a call is sent under while a library refuses each name of the limit on output tokens in turn."""
    while True:
        capability = registry.capability(question)
        yield capability
        text = f"x does not support parameters: ['{capability.token_limit_param}'], for model=x"
        failure = RequestFailure(Outcome.CLIENT_ERROR, is_retryable=False, blocks_model=False, error=text)
        if not registry.step(question, capability, ProviderReply(failed_answer(question, failure), failure)):
            return


def test_two_names_that_are_both_refused_end_the_search(server: FakeServer) -> None:
    steps = list(refusals_before_sending(CapabilityRegistry(MemoryCapabilityStore()), call(server)))
    assert len(steps) <= len(set(steps)) + 1 <= 4


async def test_a_call_that_only_discovers_is_one_of_the_requests(server: FakeServer) -> None:
    parameters = ("temperature", "seed", "top_p", "presence_penalty", "frequency_penalty")
    server.script = server_that(*map(refuses, parameters))
    question = call(server, params=dict.fromkeys(parameters[2:], 0.5))
    await ask(model_section(server), replace(question, purpose=Purpose.PREFLIGHT), max_attempts=1)
    assert len(server.requests) == MAX_DISCOVERY_REQUESTS
