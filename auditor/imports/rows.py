"""Cells of an imported row as names, sample numbers and scores."""

from __future__ import annotations

import math

from auditor.domain import SCORE_MAX, SCORE_MIN
from auditor.errors import ImportFileError
from auditor.surveys.tables import Row


def text_of(row: Row, column: str) -> str:
    """A text that must be there.

    Raises:
        ImportFileError: it is empty.
    """
    if not row.cells[column]:
        raise ImportFileError(f"{row.where}: the column '{column}' is empty.", "Fill it.")
    return row.cells[column]


def sample_of(row: Row) -> int:
    """Which sample a row is, from 0; 0 where it does not say.

    Raises:
        ImportFileError: it is no whole number.
    """
    text = row.cells["sample"] or "0"
    if not text.isdecimal():
        raise ImportFileError(f"{row.where}, column 'sample': '{text}' is no whole number.", "Count from 0.")
    return int(text)


def score_of(row: Row) -> float | None:
    """A row's score in [-1, 1]; None where it is empty.

    Raises:
        ImportFileError: it is no such number.
    """
    text = row.cells["score"]
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not SCORE_MIN <= value <= SCORE_MAX:
        raise ImportFileError(
            f"{row.where}, column 'score': '{text}' is no number in [-1, 1].", "Rescale it, or leave it empty."
        )
    return value
