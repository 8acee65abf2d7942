"""Parse the score of an imported row."""

from __future__ import annotations

from auditor.domain import SCORE_MAX, SCORE_MIN
from auditor.surveys.row_reader import TextRow


def parse_row_score(row: TextRow) -> float | None:
    """Score of a row in [-1, 1]; None if the cell is empty.

    Raises:
        ImportFileError: the cell holds no number in that range.
    """
    value = row.number("score")
    if value is not None and not SCORE_MIN <= value <= SCORE_MAX:
        problem = f"'{row.cells['score']}' is not a number from -1 to 1"
        raise row.make_cell_error("score", problem, "Rescale it, or leave it empty.")
    return value
