from datetime import UTC, datetime

import pytest

from auditor.domain import Cell, Decision, Rating, RatingAction
from auditor.storage.rating_log import RatingEntry
from auditor.tui.formatting import describe_undo


@pytest.mark.parametrize(
    ("cell", "subject"),
    [(Cell("Japan", "divorce"), "divorce in Japan"), (Cell("", "What is 1 + 1?"), "What is 1 + 1?")],
)
def test_an_undo_names_the_cell_or_the_item_of_the_task(cell: Cell, subject: str) -> None:
    rating = Rating(cell, "m", "n", 0.5, -0.5, "ada", Decision.BOTH, datetime(2026, 1, 2, tzinfo=UTC), note="odd")
    message = describe_undo(RatingAction.UNDO, RatingEntry(1, rating))
    assert message == f"Undone. {subject} is now: {Decision.BOTH.spec.phrase}, with a note."


def test_a_redo_of_nothing_is_named() -> None:
    assert describe_undo(RatingAction.REDO, None) == "There is nothing to redo."
