"""Parse and format filters of the queue, such as `kind:binary country:egypt gap:>0.5 is:todo sort:-gap divorce`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from auditor.domain import ConflictKind
from auditor.errors import UsageError, did_you_mean
from auditor.review.text_comparison import escape_unstorable
from auditor.storage.conflict_status import ConflictStatus, QueueFilter, QueueSort

EnumT = TypeVar("EnumT", bound=StrEnum)

# Field of `QueueFilter` by key of the filter; for an enum also its class; for `is:` by word, with the value to set.
LIST_FIELDS = {"country": "countries", "topic": "topics", "model": "models", "rater": "raters"}
ENUM_FIELDS: dict[str, tuple[str, type[StrEnum]]] = {
    "kind": ("kinds", ConflictKind),
}
STATE_WORDS = {
    "open": (ConflictStatus.OPEN,),
    "contested": (ConflictStatus.DISPUTED,),
    "settled": (ConflictStatus.MAJORITY, ConflictStatus.PERSON),
    "settled-by-judges": (ConflictStatus.MAJORITY,),
    "decided-by-people": (ConflictStatus.PERSON,),
}
FLAG_FIELDS = {
    "todo": ("todo", True),
    "done": ("todo", False),
    "flagged": ("flagged", True),
    "unflagged": ("flagged", False),
}
FILTER_KEYS = (*LIST_FIELDS, *ENUM_FIELDS, "state", "gap", "is", "sort")
MAX_SCORE_GAP = 2.0
"""Largest difference of two scores in [-1, 1]."""


def parse_filter(text: str) -> QueueFilter:
    """Parse a filter. Words without a key are searched in country, topic and rater's notes; repeated keys mean "or".

    Keys: `kind:` `state:` `country:` `topic:` `model:` `rater:` take a value (quoted where it has spaces),
    `gap:>0.5` and `gap:<1` bound the difference of scores, `is:` takes todo, done, flagged or unflagged, and
    `sort:` an order, reversed by a minus.

    Raises:
        UsageError: an unknown key or value; the message suggests a similar one.
    """
    filter_fields: dict[str, Any] = {}
    for token in _split_terms(escape_unstorable(text)):
        key, colon, value = token.partition(":")
        if not colon or not key.isalpha():
            filter_fields["words"] = (*filter_fields.get("words", ()), token)
            continue
        if not value:
            raise UsageError(f"the filter '{key}:' has no value.", f"Write {key}:value, without a space.")
        for field_name, field_value in _parse_term(key.lower(), value).items():
            filter_fields[field_name] = (
                (*filter_fields.get(field_name, ()), *field_value) if isinstance(field_value, tuple) else field_value
            )
    return QueueFilter(**filter_fields)


def format_filter(queue_filter: QueueFilter) -> str:
    """Format a filter as a text that `parse_filter` reads back."""
    parts = [
        f"{key}:{shlex.quote(value)}"
        for key, field_name in LIST_FIELDS.items()
        for value in getattr(queue_filter, field_name)
    ]
    parts += [
        f"{key}:{value}" for key, (field_name, _) in ENUM_FIELDS.items() for value in getattr(queue_filter, field_name)
    ]
    parts += [f"state:{word}" for word in _name_states(queue_filter.states)]
    if queue_filter.min_gap is not None:
        parts.append(f"gap:>{queue_filter.min_gap:g}")
    if queue_filter.max_gap is not None:
        parts.append(f"gap:<{queue_filter.max_gap:g}")
    parts += [
        f"is:{word}" for word, (field_name, value) in FLAG_FIELDS.items() if getattr(queue_filter, field_name) is value
    ]
    if queue_filter.sort is not QueueSort.INFORMATIVENESS or queue_filter.reverse:
        parts.append(f"sort:{'-' if queue_filter.reverse else ''}{queue_filter.sort}")
    return " ".join([*parts, *map(shlex.quote, queue_filter.words)])


def with_next_sort(queue_filter: QueueFilter) -> QueueFilter:
    """Return the filter with the next sort order of `QueueSort`, not reversed."""
    orders = list(QueueSort)
    return replace(queue_filter, sort=orders[(orders.index(queue_filter.sort) + 1) % len(orders)], reverse=False)


def matches_everything(queue_filter: QueueFilter) -> bool:
    """Whether the filter matches all conflicts; its sort order is ignored."""
    compared_fields = {field.name for field in fields(queue_filter)} - {"sort", "reverse"}
    return all(
        getattr(queue_filter, field_name) == getattr(QueueFilter(), field_name) for field_name in compared_fields
    )


def _split_terms(text: str) -> list[str]:
    """Split a filter at spaces outside quotes; raise UsageError for an unclosed quote."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.quotes = True, "", "\"'"
    try:
        return list(lexer)
    except ValueError:
        raise UsageError("a quotation mark is not closed.", 'Close it, as in country:"United States".') from None


def _parse_term(key: str, value: str) -> dict[str, Any]:
    """Return the fields of `QueueFilter` that one `key:value` sets; tuples are to be appended to earlier ones."""
    if key in LIST_FIELDS:
        return {LIST_FIELDS[key]: (value,)}
    if key in ENUM_FIELDS:
        field_name, enum_class = ENUM_FIELDS[key]
        return {field_name: (_parse_enum(enum_class, key, value),)}
    if key == "state":
        return {"states": _parse_states(value)}
    if key == "gap":
        return _parse_gap(value)
    if key == "sort":
        return {"sort": _parse_enum(QueueSort, key, value.removeprefix("-")), "reverse": value.startswith("-")}
    if key != "is":
        raise UsageError(f"unknown filter '{key}:'.", _suggest_name(key, FILTER_KEYS))
    if value.lower() not in FLAG_FIELDS:
        raise UsageError(f"unknown value 'is:{value}'.", _suggest_name(value, FLAG_FIELDS))
    return dict([FLAG_FIELDS[value.lower()]])


def _parse_states(value: str) -> tuple[ConflictStatus, ...]:
    """Return the statuses that a word stands for; also accepts the stored names, which earlier versions used."""
    word = value.lower()
    if word in STATE_WORDS:
        return STATE_WORDS[word]
    if word == "settled-by-people":  # as versions up to 0.2 wrote
        return STATE_WORDS["decided-by-people"]
    if word in set(ConflictStatus):
        return (ConflictStatus(word),)
    raise UsageError(f"unknown value 'state:{value}'.", _suggest_name(value, STATE_WORDS))


def _name_states(states: Sequence[ConflictStatus]) -> list[str]:
    """Return the words for some statuses: one for those that judges and those that people decided, if both are in."""
    remaining, words = list(dict.fromkeys(states)), []
    for word, named_states in STATE_WORDS.items():
        if set(named_states) <= set(remaining):
            words.append(word)
            remaining = [state for state in remaining if state not in named_states]
    return words


def _parse_gap(value: str) -> dict[str, Any]:
    """Parse a bound on the difference of scores, such as `>0.5` or `<=1`; return it as `min_gap` or `max_gap`."""
    sign, number = value[0], value[1:].lstrip("=")
    try:
        bound = float(number)
    except ValueError:
        bound = -1.0  # outside the range, so that it is refused below
    if sign not in "<>" or not 0 <= bound <= MAX_SCORE_GAP:
        raise UsageError(f"'gap:{value}' has no valid limit.", "Write gap:>0.5 or gap:<1, with a number from 0 to 2.")
    return {"min_gap" if sign == ">" else "max_gap": bound}


def _parse_enum(enum_class: type[EnumT], key: str, value: str) -> EnumT:
    """Return the member of `enum_class` with this value, in any case; raise UsageError if there is none."""
    try:
        return enum_class(value.lower())
    except ValueError:
        raise UsageError(
            f"unknown value '{key}:{value}'.", _suggest_name(value, [str(member) for member in enum_class])
        ) from None


def _suggest_name(word: str, known: Iterable[str]) -> str:
    """Return a hint: the known name that is most similar to `word`, or all known names if none is similar."""
    names = list(known)
    return did_you_mean(word.lower(), names, f"Known: {', '.join(names)}.")
