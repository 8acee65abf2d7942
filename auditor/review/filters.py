"""The queue's filter as one line of text, such as `kind:binary country:egypt gap:>0.5 is:todo sort:-gap divorce`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from auditor.domain import ConflictKind
from auditor.errors import UsageError, did_you_mean
from auditor.review.word_comparison import storable
from auditor.storage.conflict_status import QueueFilter, Sort, Standing

E = TypeVar("E", bound=StrEnum)

LISTS = {"country": "countries", "topic": "topics", "model": "models", "rater": "raters"}
ENUMS: dict[str, tuple[str, type[StrEnum]]] = {"kind": ("kinds", ConflictKind), "state": ("states", Standing)}
FLAGS = {"todo": ("todo", True), "done": ("todo", False), "flagged": ("flagged", True), "unflagged": ("flagged", False)}
KEYS = (*LISTS, *ENUMS, "gap", "is", "sort")
MAX_GAP = 2.0


def parse_filter(text: str) -> QueueFilter:
    """Read a filter. Bare words are searched in country, topic and your notes; a key given twice means either.

    Keys: `kind:` `state:` `country:` `topic:` `model:` `rater:` take a value (quoted where it has spaces),
    `gap:>0.5` and `gap:<1` bound the difference of scores, `is:` takes todo, done, flagged or unflagged, and
    `sort:` an order, reversed by a minus.

    Raises:
        UsageError: an unknown key or value; the message names the nearest known one.
    """
    found: dict[str, Any] = {}
    for token in _split(storable(text)):
        key, colon, value = token.partition(":")
        if not colon or not key.isalpha():
            found["words"] = (*found.get("words", ()), token)
            continue
        if not value:
            raise UsageError(f"'{key}:' has no value.", f"Write it as {key}:value, without a space.")
        for name, part in _read(key.lower(), value).items():
            found[name] = (*found.get(name, ()), *part) if isinstance(part, tuple) else part
    return QueueFilter(**found)


def format_filter(wanted: QueueFilter) -> str:
    """The line that `parse_filter` reads as this filter."""
    parts = [f"{key}:{shlex.quote(v)}" for key, name in LISTS.items() for v in getattr(wanted, name)]
    parts += [f"{key}:{v}" for key, (name, _) in ENUMS.items() for v in getattr(wanted, name)]
    if wanted.least_gap is not None:
        parts.append(f"gap:>{wanted.least_gap:g}")
    if wanted.most_gap is not None:
        parts.append(f"gap:<{wanted.most_gap:g}")
    parts += [f"is:{word}" for word, (name, value) in FLAGS.items() if getattr(wanted, name) is value]
    if wanted.sort is not Sort.TEACHES or wanted.reverse:
        parts.append(f"sort:{'-' if wanted.reverse else ''}{wanted.sort}")
    return " ".join([*parts, *map(shlex.quote, wanted.words)])


def next_sort(wanted: QueueFilter) -> QueueFilter:
    """The same filter in the next order."""
    orders = list(Sort)
    return replace(wanted, sort=orders[(orders.index(wanted.sort) + 1) % len(orders)], reverse=False)


def is_empty(wanted: QueueFilter) -> bool:
    """Whether the filter lets everything through; its order does not count."""
    shown = {f.name for f in fields(wanted)} - {"sort", "reverse"}
    return all(getattr(wanted, name) == getattr(QueueFilter(), name) for name in shown)


def _split(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.quotes = True, "", "\"'"
    try:
        return list(lexer)
    except ValueError:
        raise UsageError("a quote is not closed.", 'Close it, as in country:"United States".') from None


def _read(key: str, value: str) -> dict[str, Any]:
    """The fields of a filter that one `key:value` sets; tuples add to what is there."""
    if key in LISTS:
        return {LISTS[key]: (value,)}
    if key in ENUMS:
        name, kind = ENUMS[key]
        return {name: (_one_of(kind, key, value),)}
    if key == "gap":
        return _gap(value)
    if key == "sort":
        return {"sort": _one_of(Sort, key, value.removeprefix("-")), "reverse": value.startswith("-")}
    if key != "is":
        raise UsageError(f"unknown filter '{key}:'.", _hint(key, KEYS))
    if value.lower() not in FLAGS:
        raise UsageError(f"unknown value 'is:{value}'.", _hint(value, FLAGS))
    return dict([FLAGS[value.lower()]])


def _gap(value: str) -> dict[str, Any]:
    sign, number = value[0], value[1:].lstrip("=")
    try:
        bound = float(number)
    except ValueError:
        bound = -1.0
    if sign not in "<>" or not 0 <= bound <= MAX_GAP:
        raise UsageError(f"'gap:{value}' is not a bound.", "Write gap:>0.5 or gap:<1, between 0 and 2.")
    return {"least_gap" if sign == ">" else "most_gap": bound}


def _one_of(kind: type[E], key: str, value: str) -> E:
    try:
        return kind(value.lower())
    except ValueError:
        raise UsageError(f"unknown value '{key}:{value}'.", _hint(value, [str(v) for v in kind])) from None


def _hint(word: str, known: Iterable[str]) -> str:
    names = list(known)
    return did_you_mean(word.lower(), names, f"Known: {', '.join(names)}.")
