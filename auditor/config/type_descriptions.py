"""What a key of validated settings may be, in words, said from its type: "a whole number from 1 to 100"."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel
from pydantic.fields import FieldInfo

PLURALS = {"a text": "texts", "a table": "tables", "a whole number": "whole numbers", "a number": "numbers"}
SCALARS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", bytes: "a text"}


def describe(annotation: Any) -> str:
    """What a value of a type is, with the bounds that pydantic checks."""
    base, constraints = _unwrapped(annotation)
    if _is_union(base):
        return " or ".join(dict.fromkeys(describe(member) for member in _members(base)))
    origin, arguments = typing.get_origin(base), typing.get_args(base)
    if origin is Literal:
        return _one_of([f'"{value}"' for value in arguments])
    if base in SCALARS:
        return SCALARS[base] + _bounds(constraints, " characters" if base is str else "")
    if base is date:
        return "a date such as 2026-07-01"
    if origin is tuple and Ellipsis not in arguments:
        return f"a list of {len(arguments)} values, each {describe(arguments[0])}"
    if origin in (list, tuple, set, frozenset):
        item = describe(arguments[0])
        return f"a list of {PLURALS.get(item, f'values, each {item}')}" + _bounds(constraints, " items")
    if fields_of(base) or base is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return "a table"
    return "another value"


def inner(annotation: Any, part: str | int, rest: tuple[str | int, ...]) -> tuple[Any, bool]:
    """The type one step into a value.

    Args:
        part: a part of a location as pydantic has it: a key, a place in a list, or the name of a branch of a union.
        rest: the parts after it.

    Returns:
        The type, None where it is not known, and whether the part was a key or a place.
    """
    base, _ = _unwrapped(annotation)
    if _is_union(base):
        return (_branch(base, rest[0]) if rest else annotation), False
    if fields := fields_of(base):
        return fields.get(str(part)), True
    arguments = typing.get_args(base)
    if typing.get_origin(base) is tuple and isinstance(part, int) and part < len(arguments):
        return (arguments[0] if Ellipsis in arguments else arguments[part]), True
    return (arguments[-1] if arguments else None), True


def key_type(annotation: Any) -> Any:
    """The type of a table's keys."""
    return typing.get_args(_unwrapped(annotation)[0])[0]


def fields_of(annotation: Any) -> dict[str, Any]:
    """Types of the keys that a table may have, by name; empty where any key will do, or it is no table."""
    base, _ = _unwrapped(annotation)
    if isinstance(base, type) and issubclass(base, BaseModel):
        return {name: _with_bounds(field) for name, field in base.model_fields.items()}
    if dataclasses.is_dataclass(base) and isinstance(base, type):
        return typing.get_type_hints(base, include_extras=True)
    return {}


def field_of(annotation: Any, key: str | int) -> FieldInfo | None:
    """The field behind a key: its default and its description."""
    base, _ = _unwrapped(annotation)
    is_model = isinstance(base, type) and issubclass(base, BaseModel)
    return base.model_fields.get(str(key)) if is_model else None


def _with_bounds(field: FieldInfo) -> Any:
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def _unwrapped(annotation: Any) -> tuple[Any, list[Any]]:
    """A type without `Annotated` and without None, and the constraints that it had."""
    constraints: list[Any] = []
    while True:
        if typing.get_origin(annotation) is Annotated:
            annotation, *more = typing.get_args(annotation)
            constraints += [c for m in more for c in (m.metadata if isinstance(m, FieldInfo) else [m])]
            continue
        members = _members(annotation)
        if len(members) != 1 or members[0] is annotation:
            return annotation, constraints
        annotation = members[0]


def _members(annotation: Any) -> list[Any]:
    """The types that a value may be of, but for None; a type that is no union is its own only member."""
    if typing.get_origin(annotation) not in (Union, types.UnionType):
        return [annotation]
    return [member for member in typing.get_args(annotation) if member is not types.NoneType]


def _is_union(annotation: Any) -> bool:
    return len(_members(annotation)) > 1


def _branch(union: Any, following: str | int) -> Any:
    """The member that the part after a branch's name leads into: a list for a place, a table for a key."""
    for member in _members(union):
        base, _ = _unwrapped(member)
        is_list = typing.get_origin(base) in (list, tuple)
        if is_list if isinstance(following, int) else not is_list and describe(base) == "a table":
            return member
    return None


def _bounds(constraints: list[Any], unit: str) -> str:
    """` from 1 to 100`, of the constraints that have such a bound."""
    bounds = {name: value for c in constraints for name in _BOUNDS if (value := getattr(c, name, None)) is not None}
    low, high = bounds.get("ge", bounds.get("min_length")), bounds.get("le", bounds.get("max_length"))
    above, below = bounds.get("gt"), bounds.get("lt")
    if unit and low == 1 and high is None:
        return " that is not empty"
    if low is not None and high is not None:
        return f" from {low:,} to {high:,}{unit}"
    parts = [(above, "greater than"), (low, "at least"), (below, "less than"), (high, "at most")]
    text = " and ".join(f"{word} {value:,}" for value, word in parts if value is not None)
    of = " of" if text.startswith("at ") else ""
    return f"{of} {text}{unit}" if text else ""


_BOUNDS = ("ge", "gt", "le", "lt", "min_length", "max_length")


def _one_of(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
