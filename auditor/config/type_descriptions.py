"""Describe the type of a setting in words, for error messages: "a whole number from 1 to 100"."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel
from pydantic.fields import FieldInfo

PLURAL_NAMES = {"a string": "strings", "a table": "tables", "a whole number": "whole numbers", "a number": "numbers"}
NUMBER_BOUNDS = ("ge", "gt", "le", "lt")
"""Names under which pydantic keeps the bounds of a number."""
FURTHER_FIELDS = "list_further_fields"
"""Class method of models that take keys without a field of theirs: returns the types of their values, by key."""
SCALAR_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", bytes: "a string"}


def describe_type(annotation: Any) -> str:
    """Describe the values of a type in words, with the bounds that pydantic checks."""
    base, constraints = unwrap_annotation(annotation)
    if _is_union(base):
        return " or ".join(dict.fromkeys(describe_type(member) for member in union_members(base)))
    origin, arguments = typing.get_origin(base), typing.get_args(base)
    if origin is Literal:
        return _join_alternatives([f'"{value}"' for value in arguments])
    if base in SCALAR_NAMES:
        return SCALAR_NAMES[base] + _format_bounds(constraints, " characters" if base is str else "")
    if base is date:
        return "a date such as 2026-07-01"
    if origin is tuple and Ellipsis not in arguments:
        return f"a list of {len(arguments)} values, each {describe_type(arguments[0])}"
    if origin in (list, tuple, set, frozenset):
        item_description = describe_type(arguments[0])
        return f"a list of {PLURAL_NAMES.get(item_description, f'values, each {item_description}')}" + _format_bounds(
            constraints, " items"
        )
    if field_types(base) or base is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return "a table"
    return "another value"


def type_at_step(annotation: Any, loc_part: str | int, remaining_loc: tuple[str | int, ...]) -> tuple[Any, bool]:
    """Follow one part of an error location of pydantic's into a type.

    Args:
        annotation: the type to start from.
        loc_part: a key, an index in a list, or the name of a branch of a union.
        remaining_loc: the parts after it.

    Returns:
        The inner type (None if unknown), and whether the part was a key or an index rather than a branch.
    """
    base, _ = unwrap_annotation(annotation)
    if _is_union(base):
        return (_select_branch(base, remaining_loc[0]) if remaining_loc else annotation), False
    if fields := field_types(base):
        return fields.get(str(loc_part)), True
    arguments = typing.get_args(base)
    if typing.get_origin(base) is tuple and isinstance(loc_part, int) and loc_part < len(arguments):
        return (arguments[0] if Ellipsis in arguments else arguments[loc_part]), True
    return (arguments[-1] if arguments else None), True


def key_type(annotation: Any) -> Any:
    """Type of the keys of a mapping type, such as str for `dict[str, int]`."""
    return typing.get_args(unwrap_annotation(annotation)[0])[0]


def field_types(annotation: Any) -> dict[str, Any]:
    """Types of the fields of a model or a dataclass, by name; empty for all other types."""
    base, _ = unwrap_annotation(annotation)
    if isinstance(base, type) and issubclass(base, BaseModel):
        further_types: dict[str, Any] = getattr(base, FURTHER_FIELDS, dict)()
        return {name: _annotated_type(field) for name, field in base.model_fields.items()} | further_types
    if dataclasses.is_dataclass(base) and isinstance(base, type):
        return typing.get_type_hints(base, include_extras=True)
    return {}


def find_field(annotation: Any, key: str | int) -> FieldInfo | None:
    """Pydantic's field of a key, which holds its default and description; None if there is none."""
    base, _ = unwrap_annotation(annotation)
    is_model = isinstance(base, type) and issubclass(base, BaseModel)
    return base.model_fields.get(str(key)) if is_model else None


def _annotated_type(field: FieldInfo) -> Any:
    """Type of a field, with its constraints as `Annotated` metadata."""
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def unwrap_annotation(annotation: Any) -> tuple[Any, list[Any]]:
    """Remove `Annotated` and `None` from a type; return it with the constraints that `Annotated` held."""
    constraints: list[Any] = []
    while True:
        if typing.get_origin(annotation) is Annotated:
            annotation, *metadata = typing.get_args(annotation)
            constraints += [
                constraint
                for metadatum in metadata
                for constraint in (metadatum.metadata if isinstance(metadatum, FieldInfo) else [metadatum])
            ]
            continue
        members = union_members(annotation)
        if len(members) != 1 or members[0] is annotation:
            return annotation, constraints
        annotation = members[0]


def union_members(annotation: Any) -> list[Any]:
    """Members of a union without None; a type that is no union is its only member."""
    if typing.get_origin(annotation) not in (Union, types.UnionType):
        return [annotation]
    return [member for member in typing.get_args(annotation) if member is not types.NoneType]


def _is_union(annotation: Any) -> bool:
    """Whether a type has several members besides None."""
    return len(union_members(annotation)) > 1


def _select_branch(union: Any, next_part: str | int) -> Any:
    """Member of a union that the next part of a location can lead into: a list for an index, a table for a key."""
    for member in union_members(union):
        member_type, _ = unwrap_annotation(member)
        is_list = typing.get_origin(member_type) in (list, tuple)
        if is_list if isinstance(next_part, int) else not is_list and describe_type(member_type) == "a table":
            return member
    return None


def _format_bounds(constraints: list[Any], unit: str) -> str:
    """Bounds as a phrase such as ` from 1 to 100`; "" if the constraints have none."""
    bounds = {
        name: value
        for constraint in constraints
        for name in (*NUMBER_BOUNDS, "min_length", "max_length")
        if (value := getattr(constraint, name, None)) is not None
    }
    low, high = bounds.get("ge", bounds.get("min_length")), bounds.get("le", bounds.get("max_length"))
    above, below = bounds.get("gt"), bounds.get("lt")
    if unit and low == 1 and high is None:
        return " that is not empty"
    if low is not None and high is not None:
        return f" from {low:,} to {high:,}{unit}"
    bound_phrases = [(above, "greater than"), (low, "at least"), (below, "less than"), (high, "at most")]
    text = " and ".join(f"{word} {value:,}" for value, word in bound_phrases if value is not None)
    preposition = " of" if text.startswith("at ") else ""
    return f"{preposition} {text}{unit}" if text else ""


def _join_alternatives(alternatives: list[str]) -> str:
    """Join phrases with commas and a final `or`."""
    return f"{', '.join(alternatives[:-1])} or {alternatives[-1]}" if len(alternatives) > 1 else alternatives[0]
