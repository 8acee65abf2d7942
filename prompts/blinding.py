"""Language-specific data for blinding: word endings, demonyms, topic words, and phrases of self-reference."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources

from pydantic import BaseModel, ConfigDict, field_validator

FILE_NAME = "blinding.toml"


class BlindingTerms(BaseModel):
    """Contents of one language's `blinding.toml`.

    Attributes:
        strip: pattern of the ending that is removed from a term before matching.
        before, after: patterns of prefixes and endings that grammar may add to the stem.
        introduces: pattern of the words that introduce a name ("my name is "), including the space after them.
        short: ordinary words of two and three letters, folded to lower case without accents.
        myself: patterns of a model's descriptions of itself.
        countries: terms by alpha-3 code. A term that ends in `*` matches any ending.
        topics: terms by the topic's English label, likewise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strip: str
    before: str
    after: str
    introduces: str
    short: frozenset[str]
    myself: tuple[re.Pattern[str], ...]
    countries: Mapping[str, tuple[str, ...]]
    topics: Mapping[str, tuple[str, ...]] = {}

    @field_validator("countries", "topics", mode="before")
    @classmethod
    def _split_terms(cls, terms_by_keys: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Split keys and terms at `|`: each of the keys in one entry gets all its terms."""
        return {
            key: tuple(joined_terms.split("|"))
            for joined_keys, joined_terms in terms_by_keys.items()
            for key in joined_keys.split("|")
        }

    @field_validator("short", mode="before")
    @classmethod
    def _split_words(cls, joined_words: str) -> list[str]:
        """Split a text into its words."""
        return joined_words.split()

    @field_validator("myself", mode="before")
    @classmethod
    def _compile_patterns(cls, patterns: list[str]) -> tuple[re.Pattern[str], ...]:
        """Compile patterns that match in any case."""
        return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


@functools.cache
def load_blinding_terms(language: str) -> BlindingTerms:
    """Load the file of one of the `LANGUAGES`."""
    text = (resources.files("auditor.prompts") / language / FILE_NAME).read_text(encoding="utf-8")
    return BlindingTerms.model_validate(tomllib.loads(text))
