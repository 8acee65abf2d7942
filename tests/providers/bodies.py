"""Bodies of requests and responses: changes to them, values at a path, and the keywords of JSON schemas."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

Body = dict[str, Any]
REMOVED = object()
"""As a value of `Rule.example`: the key is removed."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def is_out_of_range(number: object, smallest: float, largest: float) -> bool:
    """Whether a parameter was sent and is out of its range."""
    return isinstance(number, (int, float)) and not smallest <= number <= largest


def changed(body: Mapping[str, Any], changes: Mapping[str, Any]) -> Body:
    """Copy a body with changes: objects are merged at every depth, `REMOVED` removes a key."""
    merged = copy.deepcopy(dict(body))
    for key, change in changes.items():
        if change is REMOVED:
            merged.pop(key, None)
        elif isinstance(change, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = changed(merged[key], change)
        else:
            merged[key] = copy.deepcopy(change)
    return merged


def has_field(body: Any, path: str) -> bool:
    """Whether a body has a value at a dotted path, `0` being a list's first element."""
    try:
        for key in path.split("."):
            body = body[int(key)] if isinstance(body, list) else body[key]
    except (KeyError, IndexError):
        return False
    return True


def schema_keywords(schema: Any) -> set[str]:
    """All keywords of a JSON schema, at every depth; names of properties are none."""
    if isinstance(schema, list):
        return set().union(*map(schema_keywords, schema))
    if not isinstance(schema, dict):
        return set()
    keywords = set(schema)
    for keyword, value in schema.items():
        parts = value.values() if keyword in ("properties", "$defs", "definitions") else [value]
        keywords |= set().union(*(schema_keywords(part) for part in parts))
    return keywords
