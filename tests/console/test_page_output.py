"""Tests of `auditor experiment ... -o FILE`: the page is written to that file."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.console.page_output import print_document
from auditor.reports.document import Block, Callout, Column, Document, List, Name, Paragraph, Section, Table
from auditor.storage.database import open_database
from tests.support.cli_runner import fail, succeed
from tests.support.synthetic_audit import populate


def test_a_page_is_written_where_a_file_is_named(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/audit.db"
    with open_database(storage) as db:
        populate(db, models=4, countries=5, topics=5, samples=1, judges=2)
    command = ("experiment", "holdout", "population", "--storage", storage)
    fail(*command, "-o", "x.pdf", cwd=tmp_path, code=2, message="is not the name of a page")
    for suffix in ("html", "md", "txt"):
        succeed(*command, "-o", tmp_path / f"page.{suffix}")
        assert "population" in (tmp_path / f"page.{suffix}").read_text(encoding="utf-8")
    assert succeed(*command).stdout.strip()


def test_a_document_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(Name("مصر القديمة"), 0.5), (Name("evil\x1b[31m"), None)]
    table = Table("figures", "Figures", "A caption.", (Column("Country", "name"), Column("r", "number")), rows)
    opening: list[Block] = [Paragraph("The lead.", "lead"), Callout("Reasons for caution", [List(["Few cells."])])]
    print_document(Document("Experiment", "The title", "", [Section("s", "The section", [table])], opening))
    printed = capsys.readouterr()
    assert "\u200eمصر القديمة\u200e" in printed.out  # isolated, so that a terminal does not swap the cells
    texts = ("The title", "The lead.", "Reasons for caution", "- Few cells.", "The section")
    assert all(text in printed.out for text in (*texts, "A caption.", "Country", "0.50", "evil␛[31m"))
    assert printed.err == ""
