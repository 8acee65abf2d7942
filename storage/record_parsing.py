"""Convert stored values to the types that the fields of a record declare."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from inspect import isclass
from typing import Any, get_args, get_origin, get_type_hints


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
