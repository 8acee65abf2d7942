"""Patterns of refusals, by language."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources

from pydantic import BaseModel, ConfigDict, field_validator

FILE_NAME = "refusals.toml"


class RefusalPatterns(BaseModel):
    """One language's patterns of a refusal; matched in any case, against text with straight apostrophes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    refuses: tuple[re.Pattern[str], ...]

    @field_validator("refuses", mode="before")
    @classmethod
    def _compile_patterns(cls, patterns: list[str]) -> tuple[re.Pattern[str], ...]:
        """Compile patterns that match in any case."""
        return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


@functools.cache
def load_refusal_patterns(language: str) -> RefusalPatterns:
    """Load the patterns of one of the `LANGUAGES`."""
    text = (resources.files("auditor.prompts") / language / FILE_NAME).read_text(encoding="utf-8")
    return RefusalPatterns.model_validate(tomllib.loads(text))
