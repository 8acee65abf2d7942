"""The sentences of the log-probability score: beginnings, and pairs of opposite endings."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from auditor.domain import ENGLISH
from auditor.prompts.loader import PLACEHOLDER

REQUIRED_FIELDS = {"country", "topic"}


class SentencePairTemplates(BaseModel):
    """Beginnings of sentences, and pairs of endings (positive, negative); all combinations are used."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    version: int
    purpose: str
    beginnings: Annotated[tuple[str, ...], Field(min_length=1)]
    ends: Annotated[tuple[tuple[str, str], ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_placeholders(self) -> Self:
        """Raise a ValueError if a beginning lacks a placeholder or has an unknown one."""
        for text in self.beginnings:
            if set(PLACEHOLDER.findall(text)) != REQUIRED_FIELDS:
                raise ValueError(f"'{text}' must use {sorted(REQUIRED_FIELDS)}")
        return self

    @property
    def pairs_per_cell(self) -> int:
        """Number of sentence pairs per cell: every beginning with every pair of endings."""
        return len(self.beginnings) * len(self.ends)


@functools.cache
def load_sentence_pairs() -> SentencePairTemplates:
    """Load the built-in sentences, which are in English regardless of the language of the audit."""
    file = resources.files("auditor.prompts") / ENGLISH / "logprob.toml"
    return SentencePairTemplates.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
