"""Families of models: which models share a maker, and by which words a text gives its maker away."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources
from typing import NamedTuple


class ModelFamily(NamedTuple):
    """One maker's models.

    Attributes:
        ids: patterns over the part of a model's id after the provider, in lower case.
        words: replaced in any case.
        proper: replaced only with a capital, since in lower case they are words.
    """

    name: str
    id_patterns: tuple[re.Pattern[str], ...]
    maker_words: tuple[str, ...]
    capitalized_words: tuple[str, ...]


@functools.cache
def load_families() -> tuple[ModelFamily, ...]:
    """All families that are known, in the order of their file."""
    text = (resources.files("auditor.domain") / "families.toml").read_text(encoding="utf-8")
    return tuple(
        ModelFamily(name, tuple(map(re.compile, row["ids"])), tuple(row["words"]), tuple(row.get("proper", ())))
        for name, row in tomllib.loads(text).items()
    )


@functools.lru_cache(maxsize=4096)
def family_of(model: str) -> str:
    """The family of a model's id.

    Args:
        model: provider and model, such as `openai/gpt-4o`. The provider says how a model is reached and not who made
            it: many servers speak the protocol of another.

    Returns:
        A family's name; for an id of no known family, the id without its provider, so that equal ids are one family.
    """
    told = model.split("/", 1)[-1].lower()
    return next((f.name for f in load_families() if any(p.search(told) for p in f.id_patterns)), told)
