"""Tests of `auditor experiment ... -o FILE`: the page is written to that file."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from auditor.cli.app import build_app
from auditor.console.page_output import print_document
from auditor.errors import UsageError
from auditor.reports.document import Block, Callout, Column, Document, List, Name, Paragraph, Section, Table
from auditor.storage.database import open_database
from tests.support.synthetic_audit import populate


@pytest.mark.parametrize("name", ["holdout", "nonresponse"])
def test_a_page_is_written_where_a_file_is_named(tmp_path: Path, name: str) -> None:
    storage, runner = f"sqlite:///{tmp_path}/audit.db", CliRunner()
    with open_database(storage) as db:
        audit = populate(db, models=4, countries=8, topics=5, samples=2, judges=2).name
    with pytest.raises(UsageError, match="is not the name of a page"):
        runner.invoke(
            build_app(), ["experiment", name, audit, "--storage", storage, "-o", "x.pdf"], catch_exceptions=False
        )
    for suffix in ("html", "md", "txt"):
        arguments = ["experiment", name, audit, "--storage", storage, "-o", str(tmp_path / f"page.{suffix}")]
        assert runner.invoke(build_app(), arguments, catch_exceptions=False).exit_code == 0
        assert audit in (tmp_path / f"page.{suffix}").read_text(encoding="utf-8")
    printed_experiment = runner.invoke(
        build_app(), ["experiment", name, audit, "--storage", storage], catch_exceptions=False
    )
    assert printed_experiment.exit_code == 0
    assert printed_experiment.output.strip()


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
