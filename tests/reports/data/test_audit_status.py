"""The status of an audit equals the figures of its report."""

from __future__ import annotations

import json

from sqlalchemy import update

from auditor.domain import Trace
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.report_schema import Report
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.row_classes import table_of
from tests.reports.conftest import import_scores
from tests.support.synthetic_audit import populate


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


def test_status_says_what_was_refused_lost_and_never_asked(population: tuple[Database, Audit], report: Report) -> None:
    status = load_audit_status(*population)
    [row] = [row for row in report.coverage.total if row.stage == "direct"]
    counts = [status[f"traces_{name}"] for name in ("refused", "lost", "never_asked")]
    assert counts == [row.losses["refused"], row.lost_requests, row.losses["over_budget"] + row.missing]
    assert row.ok + row.lost_requests + row.never_asked < row.planned
    assert status["complete"] is True


def test_an_audit_whose_budget_ended_is_not_complete(db: Database) -> None:
    audit = populate(db, models=1, countries=3, topics=3, judges=0)
    db.write(lambda connection: connection.execute(update(table_of(Trace)).values(outcome="over_budget", score=None)))
    status = load_audit_status(db, audit)
    assert (status["complete"], status["traces_never_asked"]) == (False, status["traces_planned"])
