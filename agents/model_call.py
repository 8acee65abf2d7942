"""The fields of a call that follow from its model's section in the config."""

from __future__ import annotations

from typing import TypedDict

from auditor.config import ModelSection
from auditor.domain import DeclaredCapabilities, ReasoningSettings


class ModelFields(TypedDict):
    """Fields of `Call` that every call to one model shares."""

    name: str
    model: str
    server: str | None
    base_model: str | None
    reasoning: ReasoningSettings | None
    declared: DeclaredCapabilities | None


def model_fields(model: ModelSection, *, on_this_machine: bool = False) -> ModelFields:
    """The fields of a call that come from its model's section; every call is built with them.

    Args:
        model: the model's section.
        on_this_machine: whether the call is computed from local weights, which have no server and do not think.
    """
    return ModelFields(
        name=model.name,
        model=model.model,
        server=None if on_this_machine else model.api_base,
        base_model=model.base_model,
        reasoning=None if on_this_machine or model.reasoning is None else model.reasoning.settings,
        declared=None if on_this_machine or model.capabilities is None else model.capabilities.declared,
    )
