"""Series of scores have distinct figure ids, and are labelled with their method if there are several."""

from __future__ import annotations

from auditor.domain import Cell, CellScore
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.score_series import list_score_series, list_series_with_errors
from auditor.storage import audits, results
from auditor.storage.database import Database
from tests.reports.conftest import import_scores


def test_names_with_the_same_slug_get_numbers(report: Report) -> None:
    names = ("../x", "./x", "x-2")
    rows = [row.model_copy(update={"model": name}) for row, name in zip(report.alignment, names, strict=True)]
    series = list_score_series(report.model_copy(update={"alignment": rows}))
    assert [entry.label for entry in series] == list(names)
    assert [entry.slug for entry in series] == ["x", "x-2", "x-2-2"]


def test_two_methods_are_named_and_rescaled_scores_have_no_errors(db: Database) -> None:
    truth = {("Egypt", str(i)): i / 10 for i in range(5)}
    import_scores(db, truth, {("m", *cell): score for cell, score in truth.items()})
    rows = [CellScore("m", Cell(*cell), "logprob", -score, n_ok=1, n_planned=1) for cell, score in truth.items()]
    results.save_scores(db, audits.get_audit(db, "imported").id, rows)
    report = build_report(db, "imported")
    assert {entry.label for entry in list_score_series(report)} == {"m (direct)", "m (logprob)"}
    assert [entry.label for entry in list_series_with_errors(report)] == ["m (direct)"]
