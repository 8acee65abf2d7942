"""What needs no discovery, what a call is prepared with, and that nothing is dropped behind the user's back."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.domain import (
    AnswerForm,
    Call,
    Capability,
    CapabilityKey,
    DeclaredCapabilities,
    LogprobMeasure,
    Message,
    Purpose,
)
from auditor.models import capability_registry, litellm_client
from auditor.models.batches.provider import PreparedRequest, prepare_request
from auditor.models.capability_registry import CapabilityRegistry, MemoryCapabilityStore, describe_schema, prepare_call
from auditor.models.dispatch import REQUESTS_ADAPTER, WorkerRequest
from auditor.models.endpoint import Endpoint
from auditor.models.refused_features import ANY_FORM, Feature, Refusal

DISCOVERED = Capability(AnswerForm.JSON_OBJECT, ("minLength",), ("temperature",), "max_completion_tokens", 4096)


def call(**changes: Any) -> Call:
    fields: dict[str, Any] = {
        "params": {"temperature": 0.7, "max_tokens": 50}, "schema": "MoralJudgement", "max_words": 9,
        "server": "http://127.0.0.1:9/v1", **changes,
    }  # fmt: skip
    return Call(fields.pop("name", "m"), fields.pop("model", "openai/x"), (Message("user", "hi"),), Purpose.DIRECT,
                **fields)  # fmt: skip


def registry(*known: Call) -> CapabilityRegistry:
    return CapabilityRegistry(MemoryCapabilityStore({one.capability_key: DISCOVERED for one in known}))


@pytest.mark.parametrize(
    ("one", "needs_discovery"),
    [(call(), True), (call(schema=None), True), (call(measure=LogprobMeasure.CHOICE, schema=None), True),
     (call(measure=LogprobMeasure.ECHO, schema=None), False),
     (call(measure=LogprobMeasure.CONTINUATION, schema=None), False),
     (call(model="embedded/smollm2-135m", server=None), False)],
)  # fmt: skip
def test_only_chats_with_other_peoples_servers_need_discovery(one: Call, needs_discovery: bool) -> None:
    assert registry().needs_discovery(one) is needs_discovery
    assert not registry(one).needs_discovery(one)


def test_a_form_is_open_until_a_structured_call_or_the_config_settles_it() -> None:
    free_text = CapabilityRegistry(MemoryCapabilityStore({call().capability_key: Capability()}))
    assert not free_text.needs_discovery(call(schema=None))
    assert free_text.needs_discovery(call())
    assert not free_text.needs_discovery(call(declared=DeclaredCapabilities(form=AnswerForm.TOOL)))


def test_only_a_form_that_does_not_carry_the_schema_is_described() -> None:
    def describe(schema: str, max_words: int, language: str) -> str:
        return f"{schema} {max_words} {language}"

    for form in AnswerForm:
        prepared = prepare_call(call(language="de"), Capability(form), describe)
        expected = "MoralJudgement 9 de" if form in (AnswerForm.JSON_OBJECT, AnswerForm.TEXT) else None
        assert prepared.structure_instruction == expected
        assert prepared.key == call(language="de").key
    assert prepare_call(call(schema=None), DISCOVERED, describe).structure_instruction is None
    assert '"score"' in describe_schema("MoralJudgement", 9, "en")


async def test_workers_and_batches_send_what_was_found_out() -> None:
    prepared = prepare_call(call(), DISCOVERED, lambda schema, max_words, language: "In JSON.")
    requests = [WorkerRequest(1, prepared, 1, 2.0, DISCOVERED)]
    assert REQUESTS_ADAPTER.validate_json(REQUESTS_ADAPTER.dump_json(requests)) == requests
    endpoint = Endpoint(model="openai/x", base_url="http://127.0.0.1:9/v1", price=None, api_key="k")
    litellm_client.open_http_clients()
    try:
        batch_line = await prepare_request(endpoint, prepared, 5.0, DISCOVERED)
    finally:
        await litellm_client.close_http_clients()
    assert isinstance(batch_line, PreparedRequest)
    body = ast.literal_eval(batch_line.body.decode())
    assert body == {
        "model": "x",
        "messages": [{"role": "user", "content": "hi\n\nIn JSON."}],
        "max_completion_tokens": 4146,
        "response_format": {"type": "json_object"},
    }


def test_litellm_drops_no_parameter_on_its_own() -> None:
    """What is left out is in a capability, and named in `altered`; litellm's `drop_params` would leave no trace."""
    assert litellm_client.load_litellm().drop_params is False
    for path in Path(auditor.__path__[0]).rglob("*.py"):
        if "drop_params" not in (text := path.read_text(encoding="utf-8")):  # parsing all modules takes seconds
            continue
        for node in ast.walk(ast.parse(text)):
            is_keyword = isinstance(node, ast.keyword) and node.arg in ("drop_params", "additional_drop_params")
            is_text = isinstance(node, ast.Constant) and node.value in ("drop_params", "additional_drop_params")
            assert not is_keyword, path
            assert not is_text, path
    endpoint = Endpoint(model="openai/o3", base_url=None, price=None, api_key="k")
    for form in AnswerForm:
        kwargs = endpoint.request_kwargs(call(), 5.0, Capability(form))
        assert not {"drop_params", "additional_drop_params"} & kwargs.keys()


def test_evidence_is_english_and_has_a_repeated_phrase_once() -> None:
    refusals = [Refusal(Feature.FORM, ANY_FORM), Refusal(Feature.PARAM, "seed"), Refusal(Feature.KEYWORD, "maxLength")]
    assert [capability_registry._describe_refusal(refusal) for refusal in refusals] == [
        "response format",
        "parameter seed",
        "schema keyword maxLength",
    ]
    phrases = ["cut off while thinking", "HTTP 400: parameter seed refused", "cut off while thinking"]
    assert capability_registry._join_phrases(phrases) == (
        "cut off while thinking (2 times); HTTP 400: parameter seed refused"
    )


KEY = CapabilityKey("openai/x", None, None)


async def test_the_first_capability_is_kept_until_one_with_a_form_completes_it() -> None:
    store = MemoryCapabilityStore()
    free_text, tool = Capability(dropped_params=("seed",)), Capability(AnswerForm.TOOL, dropped_params=("seed",))
    assert await store.save(KEY, free_text, "") == free_text
    assert await store.save(KEY, Capability(), "") == free_text
    assert await store.save(KEY, tool, "") == tool
    assert await store.save(KEY, Capability(AnswerForm.TEXT), "") == tool
    assert store.load() == {KEY: tool}


async def test_models_servers_and_efforts_have_capabilities_of_their_own() -> None:
    store = MemoryCapabilityStore({KEY: Capability()})
    for key in (KEY._replace(model="openai/y"), KEY._replace(server="http://a"), KEY._replace(effort="low")):
        assert await store.save(key, Capability(AnswerForm.TEXT), "") == Capability(AnswerForm.TEXT)
    assert store.load()[KEY] == Capability()
    assert len(store.load()) == 4
