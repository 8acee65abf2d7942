"""Cells of a tidy file that hold a member of an enum."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from auditor.surveys.row_reader import TextRow

E = TypeVar("E", bound=StrEnum)


def parse_enum_cell(row: TextRow, column: str, enum_class: type[E], normalize: Callable[[str], str]) -> E | None:
    """Parse a cell as a member of an enum, after `normalize` has adjusted its case; None if the cell is empty.

    Raises:
        ImportFileError: the cell holds none of the enum's values.
    """
    text = row.cells[column]
    if not text:
        return None
    try:
        return enum_class(normalize(text))
    except ValueError:
        choices = ", ".join(enum_class)
        raise row.make_cell_error(column, f"'{text}' is not one of {choices}", "Correct it.") from None
