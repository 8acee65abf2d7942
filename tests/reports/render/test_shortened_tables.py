"""Pages show the worst rows of long tables, and name the file with all."""

from __future__ import annotations

import pytest

from auditor.reports.document import Column, Document, Row, Section, Table
from auditor.reports.output import render_document
from auditor.reports.render.csv_tables import render_csv
from auditor.reports.render.shortened_tables import name_table_file, shorten_table

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
    assert "Shown are the first 10 of 30 rows, worst first;" in text
    assert "report_by_name.csv" in text


def test_files_have_all_rows() -> None:
    assert name_table_file(TABLE) == "report_by_name.csv"
    assert len(render_csv(TABLE).splitlines()) == len(ROWS) + 1


def test_a_table_that_is_short_enough_is_unchanged() -> None:
    short = Table("by-name", "By name", "Numbers by name.", COLUMNS, ROWS[:10], max_rows=10)
    assert shorten_table(short) is short
