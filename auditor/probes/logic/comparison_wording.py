"""Wordings of the question that compares two items: ten frames, and the criteria to insert."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from auditor.domain import ENGLISH

N_WORDINGS = 10


class Criterion(BaseModel):
    """A criterion of comparison.

    Attributes:
        context: sentence about what the items have in common, with the placeholder `{context}`.
        standard, negated: the criterion in the two forms of the question ("more …", "less …").
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    context: str
    standard: str
    negated: str


class ComparisonWording(BaseModel):
    """One language's texts: `frames` are questions with the placeholder `{what}` for the criterion."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    frames: Annotated[list[str], Field(min_length=N_WORDINGS, max_length=N_WORDINGS)]
    criteria: Mapping[str, Criterion]


@functools.cache
def load_comparison_wording(language: str) -> ComparisonWording:
    """Load the comparison texts of a language."""
    file = resources.files("auditor.prompts") / language / "logic.toml"
    return ComparisonWording.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


@functools.cache
def load_english_criteria() -> Mapping[str, Criterion]:
    """Load the criteria that exist in English only, by name."""
    file = resources.files("auditor.prompts") / ENGLISH / "logic.criteria.toml"
    criteria = tomllib.loads(file.read_text(encoding="utf-8"))["criteria"]
    return {name: Criterion.model_validate(texts) for name, texts in criteria.items()}


def find_criterion(name: str, language: str) -> Criterion:
    """Find the texts of a criterion; those of a criterion without other languages are English."""
    return load_comparison_wording(language).criteria.get(name) or load_english_criteria()[name]
