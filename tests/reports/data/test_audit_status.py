"""The status of an audit equals the figures of its report."""

from __future__ import annotations

import json

from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.report_schema import Report
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from tests.reports.conftest import import_scores


def test_status_counts_equal_those_of_the_report(population: tuple[Database, Audit], report: Report) -> None:
    status = load_audit_status(*population)
    total = {row.stage: row for row in report.coverage.total}
    assert (status["traces_ok"], status["verdicts_ok"]) == (total["direct"].ok, total["review"].ok)
    assert status["open"] == report.conflicts.states["open"] + report.conflicts.states["disputed"]
    assert status["cost_usd"] == report.cost.total.usd
    assert status["unpriced"] == report.cost.total.sums.unpriced > 0
    json.dumps(status)


def test_status_of_an_audit_without_calls(db: Database) -> None:
    import_scores(db, {("Egypt", "a"): 0.1}, {("m", "Egypt", "a"): 0.2})
    assert load_audit_status(db, audits.get_audit(db, "imported"))["cost_usd"] is None
