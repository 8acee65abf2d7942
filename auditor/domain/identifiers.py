"""Reproducible identifiers: canonical JSON, its hash, and seeds derived from it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

MAX_ID_LENGTH = 120
_SHORTENED_ID = re.compile(r".{0,60} … [0-9a-f]{10}", re.DOTALL)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def method_side_name(model: str, method: str) -> str:
    """Name of one side of a conflict between two methods of a model, such as `gpt (direct)`."""
    return f"{model} ({method})"


def parse_method_side(side: str) -> tuple[str, str]:
    """Split the name made by `method_side_name` into model and method."""
    model, _, method = side.removesuffix(")").rpartition(" (")
    return model, method


def canonical_json(value: Any) -> str:
    """Serialize to JSON with sorted keys, without spaces or NaN, so that equal values have equal text."""
    return _ENCODER.encode(value)


def canonical_hash(value: Any) -> str:
    """SHA-256, in hex, of the canonical JSON; different lone surrogates give different hashes."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def hash_rows(rows: Iterable[Sequence[str | float | None]]) -> str:
    """SHA-256, in hex, of rows of texts and numbers, of which one is in memory at a time."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def derive_seed(seed: int, *identity: object) -> int:
    """Derive a seed in [0, 2**31) from the audit's seed and the values that identify one sample."""
    digest = hashlib.sha256(canonical_json([seed, *map(str, identity)]).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


def short_id(text: str) -> str:
    """Make an id of at most `MAX_ID_LENGTH` characters from a text: the text, or its beginning and part of its hash."""
    if len(text) <= MAX_ID_LENGTH:
        return text
    return f"{' '.join(text[:60].split())} … {canonical_hash(text)[:10]}"


def is_shortened(id_: str) -> bool:
    """Whether `short_id` made an id from a longer text."""
    return _SHORTENED_ID.fullmatch(id_) is not None
