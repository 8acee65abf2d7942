"""What gives a text away in each language: endings, demonyms, words of topics, and how models speak of themselves."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources

from pydantic import BaseModel, ConfigDict, field_validator

FILE_NAME = "blinding.toml"


class BlindingTerms(BaseModel):
    """One language's file.

    Attributes:
        strip: pattern of the ending that is taken off a name before it is looked for.
        before, after: patterns of what grammar may put before and after what is left.
        joined: whether words are written together, so that they are looked for inside others.
        introduces: pattern of what stands before a name ("my name is "), the space after it included.
        short: ordinary words of two and three letters, folded to lower case without accents.
        myself: patterns of a model's descriptions of itself.
        countries: words by alpha-3 code; topics: words by the topic's English label. A word that ends in `*` is
            matched with any ending.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strip: str
    before: str
    after: str
    joined: bool
    introduces: str
    short: frozenset[str]
    myself: tuple[re.Pattern[str], ...]
    countries: Mapping[str, tuple[str, ...]]
    topics: Mapping[str, tuple[str, ...]] = {}

    @field_validator("countries", "topics", mode="before")
    @classmethod
    def _split_terms(cls, value: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        return {key: tuple(words.split("|")) for keys, words in value.items() for key in keys.split("|")}

    @field_validator("short", mode="before")
    @classmethod
    def _split_words(cls, value: str) -> list[str]:
        return value.split()

    @field_validator("myself", mode="before")
    @classmethod
    def _compile_patterns(cls, value: list[str]) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern, re.IGNORECASE) for pattern in value)


@functools.cache
def load_blinding_terms(language: str) -> BlindingTerms:
    """The file of a language that there are prompts in."""
    text = (resources.files("auditor.prompts") / language / FILE_NAME).read_text(encoding="utf-8")
    return BlindingTerms.model_validate(tomllib.loads(text))
