"""Model families: which models have the same maker, and which words in a text identify that maker."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources
from typing import NamedTuple


class ModelFamily(NamedTuple):
    """One maker's models.

    Attributes:
        id_patterns: patterns for the part of a model id after the provider, in lower case.
        maker_words: words that are masked in any case.
        capitalized_words: words that are masked only if capitalized, since in lower case they are ordinary words.
    """

    name: str
    id_patterns: tuple[re.Pattern[str], ...]
    maker_words: tuple[str, ...]
    capitalized_words: tuple[str, ...]


@functools.cache
def load_families() -> tuple[ModelFamily, ...]:
    """All known families, in the order of `families.toml`."""
    text = (resources.files("auditor.domain") / "families.toml").read_text(encoding="utf-8")
    return tuple(
        ModelFamily(name, tuple(map(re.compile, row["ids"])), tuple(row["words"]), tuple(row.get("proper", ())))
        for name, row in tomllib.loads(text).items()
    )


def split_model_id(model: str) -> tuple[str, str]:
    """The provider of a model's id, such as `openai/gpt-4o`, and the rest; both are the id if it names no provider."""
    parts = model.split("/", 1)
    return parts[0], parts[-1]


@functools.lru_cache(maxsize=4096)
def family_of(model: str) -> str:
    """Name of the family of a model id.

    Args:
        model: provider and model, such as `openai/gpt-4o`. The provider is ignored: it says which API is used, not who
            made the model.

    Returns:
        The family's name; for an unknown family the id without its provider, so that equal ids are one family.
    """
    model_id = split_model_id(model)[1].lower()
    return next(
        (family.name for family in load_families() if any(pattern.search(model_id) for pattern in family.id_patterns)),
        model_id,
    )
