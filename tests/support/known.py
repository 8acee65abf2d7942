"""Values that must be there, read in one step."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    assert value is not None
    return value
