"""Cells of tables as text, notes below tables, and the rows and columns that pages show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.reports.document import (
    Cell,
    Column,
    CountShare,
    Document,
    LowerBound,
    Paragraph,
    Reason,
    Row,
    Section,
    Table,
)
from auditor.reports.number_format import NumberStyle
from auditor.reports.output import render_document
from auditor.reports.render.table_files import render_csv
from auditor.reports.render.tables import (
    format_figure,
    format_reason,
    iterate_rows,
    label_notes,
    name_table_file,
    shorten_table,
)
from tests.reports.sections.node_text import text_of
from tests.support.known import known

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
        (ShareEstimate(0.5, 9, 0.25, 0.75, cells_ci_low=0.4, cells_ci_high=0.6), "percent", 0,
         "50% (25% to 75%; n 9)"),
        (ShareEstimate(1.0, 953, 0.63, 1.0, resampled=("item",), cells_ci_low=0.9961, cells_ci_high=1.0), "decimal",
         2, "1.00 (0.63 to 1.00; n 953)"),
        (ShareEstimate(0.5, 9, 0.25, 0.75, cells_ci_low=0.25, cells_ci_high=0.75), "decimal", 2,
         "0.50 (0.25 to 0.75; n 9)"),
        (ShareEstimate(0.5, 9, reason=REASON, cells_ci_low=0.4, cells_ci_high=0.6), "percent", 0,
         f"50% (40% to 60% for these cells; n 9; no 95% CI: {REASON})"),
        (0.0004, "p_value", 2, "< 0.001"),
        (1254, "decimal", 2, "1\u202f254"),
        (0.5, "usd", 2, "$0.5000"),
        (LowerBound(0.5), "usd", 2, "≥ $0.5000"),
        (LowerBound(0.5), "decimal", 1, "≥ 0.5"),
        (CountShare(1, 3), "decimal", 2, "33%"),
        (CountShare(0, 0), "decimal", 2, "–"),
        (None, "decimal", 2, "–"),
        ("0.66 to 0.72", "decimal", 2, "0.66 to 0.72"),
    ],
)  # fmt: skip
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
    figure = known(format_reason(Reason(REASON), notes))
    assert figure.in_line() == "not available (note a)"
    assert format_reason(Reason("another reason"), notes) is None
    assert label_notes(Table("t", "t", "", columns, [["a", Reason("too few")] for _ in range(3)])) == {}


def test_total_rows_come_last() -> None:
    table = Table("t", "t", "", [Column("a")], [Row(["total"], is_total=True), ["x"], Row(["y"])])
    assert [row.cells for row in iterate_rows(table)] == [["x"], ["y"], ["total"]]


ROWS = [*(Row([f"name-{i}", i]) for i in range(30)), Row(["all", 99], is_total=True)]
COLUMNS = [Column("Name", "name"), Column("Number", "number")]
TABLE = Table("by-name", "By name", "Numbers by name.", COLUMNS, ROWS, max_rows=10)


@pytest.mark.parametrize("output_format", ["html", "markdown", "text"])
def test_pages_show_the_first_rows_and_the_total(output_format: str) -> None:
    page = render_document(Document("kind", "title", "", [Section("s", "S", [TABLE])]), output_format)
    text = " ".join(page.replace("\\", "").split())
    assert "name-9" in text
    assert "name-10" not in text
    for words in ("99", "Worst 10 of 30 rows; all:", "report_by_name.csv"):
        assert words in text


def test_files_have_all_rows() -> None:
    assert name_table_file(TABLE) == "report_by_name.csv"
    assert len(render_csv(TABLE).splitlines()) == len(ROWS) + 1


def test_a_table_that_is_short_enough_is_unchanged() -> None:
    short = Table("by-name", "By name", "Numbers by name.", COLUMNS, ROWS[:12], max_rows=10)
    assert shorten_table(short) is short


def test_a_reason_that_several_columns_share_stands_once() -> None:
    titles = ("Model", "MAE", "Similarity", "Chance")
    columns = [Column(title, "estimate" if title != "Model" else "name") for title in titles]
    missing = Estimate(None, 0, reason="there is no encoder")
    rows: list[list[Cell]] = [[f"m{i}", Estimate(0.1 * i, 60, 0.0, 0.5), missing, missing] for i in range(4)]
    shown = shorten_table(Table("t", "T", "Errors.", columns, rows))
    assert isinstance(shown, Table)
    caption = text_of(shown.caption)
    assert "In all rows: Similarity, Chance not available (there is no encoder), n 60." in caption


def test_a_column_of_empty_texts_has_no_value() -> None:
    columns = [Column("Item", "name"), Column("Question"), Column("Correct answer"), Column("MAE", "estimate")]
    rows: list[list[Cell]] = [[f"i{i}", "", "not known", Estimate(0.1 * i, 60, 0.0, 0.5)] for i in range(4)]
    shown = shorten_table(Table("t", "T", "Items.", columns, rows))
    assert isinstance(shown, Table)
    assert text_of(shown.caption) == "Items. In all rows: Correct answer not known, n 60. No value: Question."


def test_values_that_all_rows_share_are_in_the_caption() -> None:
    columns = [
        Column("Model", "name"),
        Column("Cells", "number"),
        Column("From cache", "share"),
        Column("MAE", "estimate"),
        Column("Error", "estimate"),
        Column("Bias", "estimate"),
    ]
    rows: list[list[Cell]] = [[f"m{i}", 60, None, Estimate(0.1 * i, 60, 0.0, 0.5)] for i in range(4)]
    cells: list[list[Cell]] = [[*row, row[3], Estimate(0.1, i, 0.0, 0.5)] for i, row in enumerate(rows)]
    table = Table("t", "T", "Errors.", columns, cells)
    shown = shorten_table(table)
    assert isinstance(shown, Table)
    assert [column.title for column in shown.columns] == ["Model", "MAE", "Bias"]
    assert [column.show_n for column in shown.columns[1:]] == [False, True]
    assert (
        text_of(shown.caption)
        == "Errors. In all rows: Cells 60. No value: From cache. Error: equal to MAE. n 60 in MAE."
    )
    assert render_csv(table).count("60") == 12
    complete = replace(table, is_whole=True)
    assert shorten_table(complete) is complete


def test_a_table_without_most_of_its_figures_is_a_sentence() -> None:
    missing = Estimate(None, 0, reason="no encoder")
    rows: list[list[Cell]] = [["a", missing], ["b", missing], ["c", Estimate(0.5, 9, 0.4, 0.6)]]
    table = Table("t", "T", "Similarity.", [Column("Model", "name"), Column("Cosine", "estimate")], rows)
    shown = shorten_table(table)
    assert isinstance(shown, Paragraph)
    assert text_of(shown.content) == (
        "Similarity. Cosine of c: 0.50 (0.40 to 0.60; n 9). Cosine is not available for a, b: no encoder."
    )
    assert isinstance(shorten_table(replace(table, rows=[rows[0], rows[2]])), Table)


def test_columns_that_lack_the_same_rows_for_one_reason_are_named_together() -> None:
    missing = Estimate(None, 0, reason="no encoder")
    columns = [Column("Model", "name"), Column("Cosine", "estimate"), Column("Chance", "estimate")]
    shown = shorten_table(Table("t", "T", "Similarity.", columns, [["a", missing, missing], ["b", missing, missing]]))
    assert isinstance(shown, Paragraph)
    assert text_of(shown.content) == "Similarity. Cosine, Chance are not available for all rows: no encoder."


@pytest.mark.parametrize(("n_columns", "is_note"), [(7, False), (8, True)])
def test_a_reason_in_a_narrow_column_is_a_note(n_columns: int, is_note: bool) -> None:
    reason = "no variance beyond sampling noise"
    columns = [Column("Model", "name"), *(Column(f"r {i}", "estimate") for i in range(1, n_columns))]
    row: list[Cell] = ["a", *[Estimate(0.5, 9, 0.4, 0.6)] * (n_columns - 2), Estimate(None, 0, reason=reason)]
    assert (reason in label_notes(Table("t", "T", "", columns, [row]))) == is_note


def test_a_column_without_a_value_is_left_out_of_a_table_with_few_rows() -> None:
    columns = [
        Column("Model", "name"),
        Column("MAE", "number"),
        Column("Highest r", "number"),
        Column("Cells", "number"),
    ]
    shown = shorten_table(Table("t", "T", "Errors.", columns, [["a", 0.1, None, 9], ["b", 0.2, None, 9]]))
    assert isinstance(shown, Table)
    assert text_of(shown.caption) == "Errors. No value: Highest r."
    assert [column.title for column in shown.columns] == ["Model", "MAE", "Cells"]


def test_a_sentence_names_rows_by_the_number_in_their_first_column() -> None:
    missing = Estimate(None, 0, reason="no labels")
    rows: list[list[Cell]] = [[1, missing], [3, missing], [5, Estimate(0.5, 9, 0.4, 0.6)]]
    columns = [Column("Judges", "number", digits=0), Column("Accuracy", "estimate")]
    document = Document("kind", "title", "", [Section("s", "S", [Table("t", "T", "Panels.", columns, rows)])])
    for output_format in ("html", "markdown", "text"):
        page = " ".join(render_document(document, output_format).split())
        assert "Accuracy of Judges 5: 0.50 (0.40 to 0.60; n 9)." in page
        assert "Accuracy is not available for Judges 1, Judges 3: no labels." in page
