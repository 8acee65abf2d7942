"""The summary of a run: one row per model, None for unknown figures."""

from __future__ import annotations

from auditor.reports.data.report_schema import Report
from auditor.reports.pages.run_summary import summary_columns, summary_rows
from auditor.storage.database import Database
from tests.reports.conftest import import_scores


def test_summary_has_a_row_for_each_model(report: Report) -> None:
    rows = summary_rows(report)
    assert [row[0] for row in rows] == ["alder", "birch", "cedar"]
    assert all(len(row) == len(summary_columns()) for row in rows)


def test_summary_leaves_out_unknown_figures(db: Database) -> None:
    row = dict(
        zip(
            summary_columns(),
            summary_rows(import_scores(db, {("Egypt", "a"): 0.1}, {("m", "Egypt", "a"): 0.2}))[0],
            strict=True,
        )
    )
    assert row["MAE"] == "0.10"
    assert row["cells"] == "1"
    assert [row[k] for k in ("r", "95% CI", "p", "self-cons.", "peers")] == [None] * 5
