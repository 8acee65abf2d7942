"""The steps of discovery: what a capability begins with, and what follows a refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from auditor.domain import (
    AnswerForm,
    Call,
    Capability,
    DeclaredCapabilities,
    LogprobMeasure,
    Message,
    Purpose,
    ReasoningSettings,
)
from auditor.models.capability_discovery import (
    FORM_STEPS,
    apply_declared,
    initial_capability,
    less_thinking_room,
    more_thinking_room,
    next_capability,
    next_form,
)
from auditor.models.refused_features import Feature, Refusal

SERVER = "http://127.0.0.1:9/v1"
BOUNDS = ("maxLength", "maximum", "minLength", "minimum")
RICHEST = Capability(form=AnswerForm.JSON_SCHEMA)


def call(schema: str | None = "MoralJudgement", **changes: Any) -> Call:
    params = {"temperature": 0.7, "max_tokens": 50, "seed": 3, "top_p": 0.9, **changes.pop("params", {})}
    return Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT, params=params, schema=schema, max_words=9,
                **changes)  # fmt: skip


def after(*refusals: tuple[str, str], capability: Capability = RICHEST, sent: Call | None = None) -> Capability | None:
    return next_capability(capability, sent or call(), [Refusal(Feature(feature), name) for feature, name in refusals])


@pytest.mark.parametrize(
    ("model", "server", "expected"),
    [
        ("openai/x", SERVER, RICHEST),
        ("openai/unlisted", None, replace(RICHEST, dropped_keywords=("maxLength", "minLength"))),
        ("openai/o3", None, replace(RICHEST, dropped_keywords=("maxLength", "minLength"))),
        ("azure/mine", SERVER, replace(RICHEST, dropped_keywords=("maxLength", "minLength"))),
        ("anthropic/claude-new", None, replace(RICHEST, dropped_keywords=BOUNDS, dropped_params=("seed",))),
        ("groq/unlisted", None, RICHEST),
        ("cohere_chat/command-a", None, Capability(form=AnswerForm.TOOL)),
        ("replicate/meta/llama", None, Capability(form=AnswerForm.TOOL)),
        ("triton/x", SERVER, Capability(form=AnswerForm.TEXT, dropped_params=("seed",))),
        ("embedded/smollm2-135m", None, RICHEST),
    ],
)  # fmt: skip
def test_discovery_begins_with_the_richest_form_that_litellm_can_send(
    model: str, server: str | None, expected: Capability
) -> None:
    assert initial_capability(model, server) == expected


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [
        ([("param", "temperature")], {"dropped_params": ("temperature",)}),
        ([("param", "topP")], {"dropped_params": ("top_p",)}),
        ([("param", "seed"), ("param", "temperature")], {"dropped_params": ("seed", "temperature")}),
        ([("param", "inferenceConfig.temperature")], {"dropped_params": ("temperature",)}),
        ([("param", "max_tokens")], {"token_limit_param": "max_completion_tokens"}),
        ([("param", "response_format")], {"form": AnswerForm.JSON_OBJECT}),
        ([("param", "response_format.type")], {"form": AnswerForm.JSON_OBJECT}),
        ([("param", "outputConfig.textFormat")], {"form": AnswerForm.JSON_OBJECT}),
        ([("param", "tool_choice")], {"form": AnswerForm.JSON_OBJECT}),
        ([("form", "any")], {"form": AnswerForm.JSON_OBJECT}),
        ([("form", "json_schema")], {"form": AnswerForm.JSON_OBJECT}),
        ([("keyword", "minLength")], {"dropped_keywords": ("maxLength", "minLength")}),
        ([("keyword", "min_length")], {"dropped_keywords": ("maxLength", "minLength")}),
        ([("keyword", "maximum")], {"dropped_keywords": ("maximum", "minimum")}),
        ([("keyword", "additionalProperties")], {"dropped_keywords": ("additionalProperties",)}),
        ([("keyword", "strict")], {"dropped_keywords": ("strict",)}),
        ([("keyword", "*")], {"dropped_keywords": BOUNDS}),
        ([("keyword", "type")], {"form": AnswerForm.JSON_OBJECT}),
        ([("keyword", "minLength"), ("param", "response_format")], {"dropped_keywords": ("maxLength", "minLength")}),
    ],
)  # fmt: skip
def test_what_a_refusal_names_is_left_out(refusals: list[tuple[str, str]], expected: dict[str, Any]) -> None:
    assert after(*refusals) == replace(RICHEST, **expected)


@pytest.mark.parametrize(
    ("refusals", "capability", "sent"),
    [
        ([], RICHEST, call()), ([("param", "store")], RICHEST, call()),
        ([("param", "temperature")], replace(RICHEST, dropped_params=("temperature",)), call()),
        ([("param", "reasoning_effort")], RICHEST, call()), ([("param", "max_completion_tokens")], RICHEST, call()),
        ([("param", "logprobs"), ("param", "top_logprobs")], RICHEST, call(params={"logprobs": True})),
        ([("form", "json_object")], RICHEST, call()), ([("form", "any")], Capability(), call(schema=None)),
        ([("keyword", "minLength")], Capability(), call(schema=None)),
        ([("form", "any")], Capability(form=AnswerForm.TEXT), call()),
        ([("form", "tool")], Capability(form=AnswerForm.TEXT), call()),
        ([("form", "json_schema")], Capability(form=AnswerForm.TOOL), call()),
        ([("keyword", "minLength")], Capability(form=AnswerForm.JSON_OBJECT), call()),
    ],
)  # fmt: skip
def test_a_refusal_of_what_was_not_sent_changes_nothing(
    refusals: list[tuple[str, str]], capability: Capability, sent: Call
) -> None:
    assert after(*refusals, capability=capability, sent=sent) is None


def test_the_name_of_the_token_limit_is_changed_back_where_a_server_says_so() -> None:
    renamed = replace(RICHEST, token_limit_param="max_completion_tokens")
    assert after(("param", "max_completion_tokens"), capability=renamed) == RICHEST
    assert after(("param", "max_tokens"), capability=renamed) is None


def test_a_keyword_that_is_left_out_already_ends_in_the_next_form() -> None:
    without_bounds = replace(RICHEST, dropped_keywords=BOUNDS)
    poorer = after(("keyword", "*"), capability=without_bounds)
    assert poorer == replace(without_bounds, form=AnswerForm.JSON_OBJECT)


def test_an_effort_that_the_config_sets_can_be_refused() -> None:
    sent = call(reasoning=ReasoningSettings(effort="low"))
    assert after(("param", "reasoning_effort"), sent=sent) == replace(RICHEST, dropped_params=("reasoning_effort",))


def test_forms_are_tried_from_the_richest_to_the_poorest() -> None:
    forms, capability = [RICHEST.form], next_form(RICHEST)
    while capability is not None:
        forms.append(capability.form)
        capability = next_form(capability)
    assert tuple(forms) == FORM_STEPS == tuple(sorted(AnswerForm, key=list(AnswerForm).index))


def test_what_the_config_declares_replaces_what_was_found() -> None:
    discovered = Capability(
        AnswerForm.TOOL, ("minLength",), ("seed", "temperature", "top_p"), "max_completion_tokens", 4096
    )
    assert apply_declared(discovered, None) == discovered
    assert apply_declared(discovered, DeclaredCapabilities()) == discovered
    declared = DeclaredCapabilities(AnswerForm.TEXT, temperature=True, seed=False, dropped_keywords=("b", "a"))
    assert apply_declared(discovered, declared) == Capability(
        AnswerForm.TEXT, ("a", "b"), ("seed", "top_p"), "max_completion_tokens", 4096
    )
    assert (
        apply_declared(discovered, DeclaredCapabilities(token_limit_param="max_tokens")).token_limit_param
        == "max_tokens"
    )


def test_room_for_thinking_grows_in_steps_up_to_what_the_model_can_write() -> None:
    first = more_thinking_room(RICHEST, call())
    assert first == replace(RICHEST, thinking_tokens=4096)
    second = more_thinking_room(first, call())
    assert second == replace(RICHEST, thinking_tokens=16384)
    assert more_thinking_room(second, call()) is None
    # litellm lists 8,192 tokens of output for it.
    listed_call = replace(call(), model="deepseek/deepseek-chat", params={"max_tokens": 4000})
    capped = more_thinking_room(first, listed_call)
    assert capped is not None
    assert capped.thinking_tokens + 4000 == 8192
    assert more_thinking_room(capped, listed_call) is None
    assert less_thinking_room(second) == first
    assert less_thinking_room(first) == RICHEST


def test_room_for_thinking_that_the_config_sets_is_kept() -> None:
    assert more_thinking_room(RICHEST, call(reasoning=ReasoningSettings(max_tokens=100))) is None
    assert more_thinking_room(RICHEST, call(measure=LogprobMeasure.CHOICE)) is None
    assert more_thinking_room(RICHEST, replace(call(), params={})) is None
