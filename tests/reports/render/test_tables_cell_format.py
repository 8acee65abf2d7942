"""Figures as text: style, interval, n, and reasons that become notes where they repeat."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.reports.document import Cell, Column, CountShare, LowerBound, Reason, Row, Table
from auditor.reports.number_format import NumberStyle
from auditor.reports.render.tables import format_figure, format_reason, iterate_rows, label_notes

REASON = "fewer than five countries"


@pytest.mark.parametrize(
    ("cell", "style", "digits", "shown"),
    [
        (Estimate(0.52, 1254, 0.31, 0.68), "decimal", 2, "0.52 (0.31 to 0.68; n 1\u202f254)"),
        (Estimate(0.1, 3, -0.04, 0.2), "signed", 2, "+0.10 (−0.04 to +0.20; n 3)"),
        (Estimate(0.5, 9, 0.25, 0.75), "percent", 0, "50% (25% to 75%; n 9)"),
        (Estimate(2, 4, 1, 3), "decimal", 2, "2 (1 to 3; n 4)"),
        (Estimate(0.52, 3, reason=REASON), "decimal", 3, f"0.520 (n 3; no 95% CI: {REASON})"),
        (Estimate(None, 0, reason=REASON), "decimal", 2, f"not available: {REASON}"),
        (
            ShareEstimate(0.5, 9, 0.25, 0.75, cells_ci_low=0.4, cells_ci_high=0.6),
            "percent",
            0,
            "50% (25% to 75%; n 9)",
        ),
        (
            ShareEstimate(1.0, 953, 0.63, 1.0, resampled=("item",), cells_ci_low=0.9961, cells_ci_high=1.0),
            "decimal",
            2,
            "1.00 (0.63 to 1.00; n 953)",
        ),
        (
            ShareEstimate(0.5, 9, 0.25, 0.75, cells_ci_low=0.25, cells_ci_high=0.75),
            "decimal",
            2,
            "0.50 (0.25 to 0.75; n 9)",
        ),
        (
            ShareEstimate(0.5, 9, reason=REASON, cells_ci_low=0.4, cells_ci_high=0.6),
            "percent",
            0,
            f"50% (40% to 60% for these cells; n 9; no 95% CI: {REASON})",
        ),
        (0.0004, "p_value", 2, "< 0.001"),
        (1254, "decimal", 2, "1\u202f254"),
        (0.5, "usd", 2, "$0.5000"),
        (LowerBound(0.5), "usd", 2, "≥ $0.5000"),
        (LowerBound(0.5), "decimal", 1, "≥ 0.5"),
        (CountShare(1, 3), "decimal", 2, "33%"),
        (CountShare(0, 0), "decimal", 2, "–"),
        (None, "decimal", 2, "–"),
    ],
)
def test_figures_on_one_line(cell: Cell, style: NumberStyle, digits: int, shown: str) -> None:
    assert format_figure(cell, Column("r", "estimate", style=style, digits=digits), {}).in_line() == shown


def test_n_is_left_out_where_the_column_does_not_show_it() -> None:
    figure = format_figure(Estimate(0.52, 25, 0.31, 0.68), Column("r", "estimate", show_n=False), {})
    assert figure.in_line() == "0.52 (0.31 to 0.68)"


@pytest.mark.parametrize(
    ("estimate", "shown"),
    [
        (Estimate(0.96, 25, 0.53, 0.99), "0.53 to 0.99"),
        (Estimate(None, 0, 0.53, 0.99, reason=REASON), "0.53 to 0.99"),
        (Estimate(0.96, 25, reason=REASON), REASON),
    ],
)
def test_a_column_of_intervals_leaves_out_the_value(estimate: Estimate, shown: str) -> None:
    assert format_figure(estimate, Column("95% CI", "interval"), {}).in_line() == shown


def test_reasons_that_repeat_and_remarks_on_intervals_are_notes() -> None:
    column = Column("r", "estimate")
    estimates = [Estimate(0.5, 9, reason=REASON), Estimate(None, 0, reason=REASON), Estimate(0.1, 2, reason=REASON)]
    other = Estimate(None, 0, reason="no judge answered")
    complete = Estimate(0.5, 9, 0.4, 0.6, reason="over topics only")
    notes = label_notes(Table("t", "t", "", [column], [[cell] for cell in (*estimates, other, *[complete] * 3)]))
    assert notes == {"over topics only": "a", REASON: "b"}
    shown = [format_figure(cell, column, notes).in_line() for cell in (*estimates, other, complete)]
    assert shown == [
        "0.50 (n 9; no 95% CI, note b)", "not available (note b)", "0.10 (n 2; no 95% CI, note b)",
        "not available: no judge answered",
        "0.50 (0.40 to 0.60; n 9; note a)",
    ]  # fmt: skip


def test_shares_of_0_and_1_have_a_note_on_their_intervals() -> None:
    column, units = Column("Share", "estimate"), ("country", "topic")
    full = ShareEstimate(1.0, 953, 0.63, 1.0, resampled=units, cells_ci_low=0.63, cells_ci_high=1.0)
    others = [ShareEstimate(0.5, 953, 0.4, 0.6, resampled=units), Estimate(1.0, 9, 0.9, 1.1, resampled=units)]
    notes = label_notes(Table("t", "t", "", [column], [[cell] for cell in (full, *others)]))
    [rule] = notes
    assert "each country or topic, whichever are fewer, is a single case" in rule
    assert format_figure(full, column, notes).in_line() == "1.00 (0.63 to 1.00; n 953; note a)"
    assert [format_figure(other, column, notes).note for other in others] == ["", ""]
    items = ShareEstimate(0.0, 40, 0.0, 0.1, resampled=("item",))
    [rule] = label_notes(Table("t", "t", "", [column], [[items]]))
    assert "each item is a single case" in rule


def test_spanning_reasons_that_repeat_are_notes_but_short_ones_are_not() -> None:
    columns = [Column("Model", "name"), Column("r", "number")]
    rows: list[Row | Sequence[Cell]] = [["a", Reason(REASON)], ["b", Reason(REASON)], ["c", Reason(REASON)]]
    notes = label_notes(Table("t", "t", "", columns, rows))
    figure = format_reason(Reason(REASON), notes)
    assert figure is not None
    assert figure.in_line() == "not available (note a)"
    assert format_reason(Reason("another reason"), notes) is None
    assert label_notes(Table("t", "t", "", columns, [["a", Reason("too few")] for _ in range(3)])) == {}


def test_total_rows_come_last() -> None:
    table = Table("t", "t", "", [Column("a")], [Row(["total"], is_total=True), ["x"], Row(["y"])])
    assert [row.cells for row in iterate_rows(table)] == [["x"], ["y"], ["total"]]
