"""How models refuse, in each language."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources

from pydantic import BaseModel, ConfigDict, field_validator

FILE_NAME = "refusals.toml"


class RefusalPatterns(BaseModel):
    """One language's patterns of a refusal; matched in any case, with straight apostrophes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    refuses: tuple[re.Pattern[str], ...]

    @field_validator("refuses", mode="before")
    @classmethod
    def _compile_patterns(cls, value: list[str]) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern, re.IGNORECASE) for pattern in value)


@functools.cache
def load_refusal_patterns(language: str) -> RefusalPatterns:
    """The patterns of a language that there are prompts in."""
    text = (resources.files("auditor.prompts") / language / FILE_NAME).read_text(encoding="utf-8")
    return RefusalPatterns.model_validate(tomllib.loads(text))
