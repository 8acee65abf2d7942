"""Find the JSON in a text that holds more than JSON, in time that grows linearly with the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

MAX_TEXT_CHARS = 1024 * 1024
MAX_DEPTH = 128
MAX_READS_PER_CHAR = 16
"""Each failed attempt to decode may read the rest of the text, so only so many of them are made."""
MAX_FIELDS = 100
"""Fields of a structured answer; each one that its schema lacks costs time to report."""
MAX_UNCOUNTED_CHARS = 64 * 1024
_OPENING_BRACKET = re.compile(r"[{\[]")


def extract_last_json(text: str) -> str | None:
    """The last complete JSON object or array in a text; None if there is none, or if it takes too long to find.

    The last one is the answer: one before it may be part of the question, which the model repeats.
    """
    if len(text) > MAX_TEXT_CHARS:
        return None
    try:
        *_, last_span = _iter_json(text)
    except ValueError:  # there is none, or the limit of the search is reached
        return None
    return last_span


def has_too_many_fields(text: str) -> bool:
    """Whether a text is a JSON object with more fields than any structured answer has; False if it is short."""
    if len(text) <= MAX_UNCOUNTED_CHARS:
        return False
    try:
        node = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(node, dict) and len(node) > MAX_FIELDS


def _iter_json(text: str) -> Iterator[str]:
    """Yield all complete JSON objects and arrays in a text that are not inside another one.

    Raises:
        ValueError: the search takes too long, or one is nested too deeply.
    """
    decoder = json.JSONDecoder()
    end, remaining_reads = 0, MAX_READS_PER_CHAR * len(text)
    for bracket in _OPENING_BRACKET.finditer(text):
        start = bracket.start()
        if start < end:
            continue
        n_following = len(text) - start
        if remaining_reads < n_following:
            raise ValueError("too many brackets that begin no JSON")
        try:
            node, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            remaining_reads -= n_following
            continue
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if _depth(node) > MAX_DEPTH:
            raise ValueError("nested too deeply")
        remaining_reads -= end - start
        yield text[start:end]


def _depth(node: object) -> int:
    """Number of nested objects and arrays."""
    depth, layer = 0, [node]
    while layer:
        containers = [inner for inner in layer if isinstance(inner, (dict, list))]
        depth += bool(containers)
        layer = [child for inner in containers for child in (inner.values() if isinstance(inner, dict) else inner)]
    return depth
