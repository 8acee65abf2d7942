"""Add a member to an enumeration at run time, as its declaration would."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

EnumT = TypeVar("EnumT", bound=Enum)


def add_member(enum_class: type[EnumT], name: str, *arguments: Any) -> EnumT:
    """Add a member as its line `NAME = arguments` would; it stays for the rest of the process, so use a program."""
    internals: Any = enum_class
    member: Any = internals.__new_member__(enum_class, *arguments)
    member._name_ = name
    member.__objclass__ = enum_class
    internals._member_names_.append(name)
    internals._member_map_[name] = member
    internals._value2member_map_[member.value] = member
    added: EnumT = member
    return added
