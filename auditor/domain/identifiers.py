"""What names a thing, the same in every run: canonical JSON, its hash, and seeds that are drawn from it."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def method_side_name(model: str, method: str) -> str:
    """What one side of a conflict between two methods of a model is called."""
    return f"{model} ({method})"


def parse_method_side(side: str) -> tuple[str, str]:
    """The model and the method behind one side of a conflict between two methods of a model."""
    model, _, method = side.removesuffix(")").rpartition(" (")
    return model, method


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN, so that equal values have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_hash(value: Any) -> str:
    """SHA-256, in hex, of the canonical JSON; lone surrogates are kept apart by their escapes."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def derive_seed(seed: int, *identity: object) -> int:
    """A seed in [0, 2**31) for one sample, from the audit's seed and what tells the sample from others."""
    digest = hashlib.sha256(canonical_json([seed, *map(str, identity)]).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
