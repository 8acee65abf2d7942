"""How two items are compared, in words: ten wordings of a question, and what it asks."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

N_WORDINGS = 10


class Criterion(BaseModel):
    """What items are compared by: `context` introduces what they have in common, with `{context}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    context: str
    standard: str
    negated: str


class ComparisonWording(BaseModel):
    """One language's words: `frames` are wordings with `{what}`, in whose place comes a criterion."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    frames: Annotated[list[str], Field(min_length=N_WORDINGS, max_length=N_WORDINGS)]
    criteria: Mapping[str, Criterion]


@functools.cache
def load_comparison_wording(language: str) -> ComparisonWording:
    """The words of a language."""
    file = resources.files("auditor.prompts") / language / "logic.toml"
    return ComparisonWording.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
