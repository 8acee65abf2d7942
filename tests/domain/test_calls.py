"""Everything that determines an answer is part of the call's key."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from auditor.domain import (
    Call,
    Capability,
    Cell,
    DeclaredCapabilities,
    LogprobMeasure,
    Message,
    Purpose,
    ReasoningSettings,
)

CALL = Call(
    name="m", model="openai/m", messages=(Message("user", "Is it?"),), purpose=Purpose.LOGPROB,
    measure=LogprobMeasure.ECHO, continuations=("yes",),
)  # fmt: skip
CHANGES: dict[str, Any] = {
    "model": "openai/n", "messages": (Message("user", "Is it not?"),), "purpose": Purpose.DIRECT, "sample": 1,
    "params": {"temperature": 0.5}, "schema": "MoralJudgement", "max_words": 60, "server": "http://localhost:1",
    "measure": LogprobMeasure.CHOICE, "continuations": ("no",), "reasoning": ReasoningSettings(effort="low"),
    "declared": DeclaredCapabilities(seed=False), "retake": 1, "is_repeat": True,
}  # fmt: skip
CHANGES_WITHOUT_EFFECT: dict[str, Any] = {
    "name": "n", "cell": Cell("Japan", "divorce"), "language": "de", "structure_instruction": "As JSON.",
    "base_model": "gpt-4o",
}  # fmt: skip
"""The model sees none of these, or the messages hold it."""


@pytest.mark.parametrize("name", [field.name for field in fields(Call)])
def test_a_field_is_part_of_the_key_or_has_no_effect_on_the_answer(name: str) -> None:
    changed = replace(CALL, **{name: (CHANGES | CHANGES_WITHOUT_EFFECT)[name]})
    assert changed != CALL
    assert (changed.key == CALL.key) == (name in CHANGES_WITHOUT_EFFECT)


def test_roles_are_part_of_the_key_and_the_order_of_parameters_is_not() -> None:
    assert replace(CALL, messages=(Message("system", "Is it?"),)).key != CALL.key
    first, second = {"seed": 1, "temperature": 0.5}, {"temperature": 0.5, "seed": 1}
    assert replace(CALL, params=first).key == replace(CALL, params=second).key


def test_ids_of_capabilities_without_streaming_are_those_of_earlier_versions() -> None:
    assert Capability().id == "fd923c91aa40"
    assert Capability(stream=True).id != Capability().id
