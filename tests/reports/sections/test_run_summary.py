"""The summary of a run: one row for each model, None for unknown figures."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.run_summary import build_run_summary, describe_low_coverage
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.sections.node_text import titled_cells_of


def test_the_summary_has_a_row_for_each_model(report: Report) -> None:
    [table] = build_run_summary(report)
    rows = titled_cells_of(table)
    assert [row["model"] for row in rows] == ["alder", "birch", "cedar"]
    assert [row["MAE (95% CI)"] for row in rows] == [row.mae for row in report.alignment]
    assert [row["r (95% CI)"] for row in rows] == [row.pearson_r for row in report.alignment]


def test_the_summary_has_none_for_unknown_figures(db: Database) -> None:
    [table] = build_run_summary(import_scores(db, {("Egypt", "a"): 0.1}, {("m", "Egypt", "a"): 0.2}))
    [row] = titled_cells_of(table)
    assert isinstance(row["MAE (95% CI)"], Estimate)
    assert (round(row["MAE (95% CI)"].value or 0, 2), row["cells"]) == (0.1, 1)
    assert [row[title] for title in ("concordance", "r (95% CI)", "consistency", "share VALID")] == [None] * 4


def test_models_with_too_few_usable_answers_are_warned_of(db: Database) -> None:
    scores: dict[tuple[str, str, str], float | None] = {("m", "Egypt", "a"): 0.2, ("m", "Egypt", "b"): None}
    report = import_scores(db, {("Egypt", "a"): 0.1, ("Egypt", "b"): 0.3}, scores)
    assert [*describe_low_coverage(report, None)] == ["Too few answers of m are usable: 50%, below 95% (min_coverage)."]
    assert [*describe_low_coverage(report, 0.5)] == []
