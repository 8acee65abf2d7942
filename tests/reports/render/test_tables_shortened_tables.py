"""Pages show the worst rows of long tables, and name the file with all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.document import Cell, Column, Document, Paragraph, Row, Section, Table
from auditor.reports.output import render_document
from auditor.reports.render.table_files import render_csv
from auditor.reports.render.tables import name_table_file, shorten_table
from tests.reports.sections.node_text import text_of

ROWS = [*(Row([f"name-{i}", i]) for i in range(30)), Row(["all", 99], is_total=True)]
COLUMNS = [Column("Name", "name"), Column("Number", "number")]
TABLE = Table("by-name", "By name", "Numbers by name.", COLUMNS, ROWS, max_rows=10)


@pytest.mark.parametrize("output_format", ["html", "markdown", "text"])
def test_pages_show_the_first_rows_and_the_total(output_format: str) -> None:
    page = render_document(Document("kind", "title", "", [Section("s", "S", [TABLE])]), output_format)
    text = " ".join(page.replace("\\", "").split())
    assert "name-9" in text
    assert "name-10" not in text
    assert "99" in text
    assert "Worst 10 of 30 rows; all:" in text
    assert "report_by_name.csv" in text


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


def test_a_sentence_names_rows_by_the_number_in_their_first_column() -> None:
    missing = Estimate(None, 0, reason="no labels")
    rows: list[list[Cell]] = [[1, missing], [3, missing], [5, Estimate(0.5, 9, 0.4, 0.6)]]
    columns = [Column("Judges", "number", digits=0), Column("Accuracy", "estimate")]
    document = Document("kind", "title", "", [Section("s", "S", [Table("t", "T", "Panels.", columns, rows)])])
    for output_format in ("html", "markdown", "text"):
        page = " ".join(render_document(document, output_format).split())
        assert "Accuracy of Judges 5: 0.50 (0.40 to 0.60; n 9)." in page
        assert "Accuracy is not available for Judges 1, Judges 3: no labels." in page
