"""Convert stored values to the types that the fields of a record declare."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from inspect import isclass
from typing import Any, get_args, get_origin, get_type_hints

from auditor.domain import Cell


@functools.cache
def field_parsers(record_class: type) -> dict[str, Callable[[Any], Any]]:
    """Functions that convert stored values to enum members, times and mappings, by name of the field that declares it.

    Fields of other types have no function: their values are stored as they are.
    """
    parsers: dict[str, Callable[[Any], Any]] = {}
    for name, hint in get_type_hints(record_class).items():
        if get_origin(hint) is Mapping:
            parsers[name] = json.loads
            continue
        for declared_type in get_args(hint) or (hint,):
            if isclass(declared_type) and issubclass(declared_type, StrEnum):
                parsers[name] = {member.value: member for member in declared_type}.__getitem__
            elif declared_type is datetime:
                parsers[name] = datetime.fromisoformat
    return parsers


def parse_values(record_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert stored values to the types of a record's fields of the same names; None stays None."""
    parsed = dict(values)
    for name, parse in field_parsers(record_class).items():
        if parsed.get(name) is not None:
            parsed[name] = parse(parsed[name])
    return parsed


def make_row_parser(
    column_names: Sequence[str], parsers: Mapping[str, Callable[[Any], Any]]
) -> Callable[[Sequence[Any]], tuple[Cell, dict[str, Any]]]:
    """Make a function that splits a row into its cell and its converted values by name; None stays None.

    Args:
        column_names: columns of the row after the first two, which are country and topic.
        parsers: see `field_parsers`; those of other columns are not used.
    """
    column_parsers = [(i, parsers[name]) for i, name in enumerate(column_names) if name in parsers]

    def parse_row(row: Sequence[Any]) -> tuple[Cell, dict[str, Any]]:
        country, topic, *values = row
        for i, parse in column_parsers:
            if values[i] is not None:
                values[i] = parse(values[i])
        return Cell(country, topic), dict(zip(column_names, values, strict=True))

    return parse_row
