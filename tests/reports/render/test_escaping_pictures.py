"""Where there are no pictures, their titles are listed with the tables that have their numbers."""

from __future__ import annotations

from auditor.reports.document import Block, Disclosure, Figure, FigureGrid, HeatMap, Paragraph
from auditor.reports.render.escaping import describe_pictures, group_pictures

HEAT_MAP = HeatMap("Differences", [], [], (), "", "")
FIGURE = Figure("f", {}, "Agreement", "", table_id="alignment")
OTHER_FIGURE = Figure("g", {}, "Errors", "", table_id="errors")


def test_consecutive_pictures_are_one_group() -> None:
    blocks: list[Block] = [
        Paragraph("a"), FIGURE, Disclosure("s", [HEAT_MAP]), FigureGrid([OTHER_FIGURE]),
        Disclosure("t", [Paragraph("b")]), Disclosure("empty", []),
    ]  # fmt: skip
    assert [(are_pictures, len(group)) for are_pictures, group in group_pictures(blocks)] == [
        (False, 1), (True, 3), (False, 2),
    ]  # fmt: skip


def test_titles_are_listed_with_the_tables_that_the_document_has() -> None:
    blocks: list[Block] = [Disclosure("s", [HEAT_MAP]), FIGURE, FigureGrid([FIGURE, OTHER_FIGURE])]
    titles = "Shown in the HTML report: Differences; Agreement; Agreement; Errors."
    assert describe_pictures(blocks, {}) == titles
    assert describe_pictures(blocks, {"alignment": "A"}) == f"{titles} For the numbers see the table “A”."
    assert describe_pictures(blocks, {"alignment": "A", "errors": "B"}) == (
        f"{titles} For the numbers see the tables “A”, “B”."
    )


def test_of_many_titles_only_the_first_are_listed() -> None:
    figures: list[Block] = [Figure(f"f{i}", {}, f"Model {i}", "") for i in range(9)]
    expected = "Shown in the HTML report: Model 0; Model 1; Model 2; Model 3; and 5 more."
    assert describe_pictures(figures, {}) == expected
