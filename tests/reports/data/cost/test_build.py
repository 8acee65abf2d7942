"""The report's cost equals that of the ledger's rows."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from auditor.domain import Answer, Attempt, Call, Message, Outcome, Purpose
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.storage import audits, ledger, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from tests.support.synthetic_audit import populate


def test_cost_equals_that_of_the_ledger(population: tuple[Database, Audit], report: Report) -> None:
    db, audit = population
    traces = [trace for trace in results.load_traces(db, audit.id) if trace.model == "alder" and trace.key]
    answers = ledger.load_answers(db, [trace.key or "" for trace in traces]).values()
    row = next(r for r in report.cost.rows if (r.name, r.purpose) == ("alder", Purpose.DIRECT))
    assert row.usd == pytest.approx(math.fsum(answer.cost_usd or 0.0 for answer in answers))
    assert row.completion_tokens == sum(answer.completion_tokens or 0 for answer in answers)
    assert (row.calls, row.answers, row.unpriced, row.lower_bound) == (len(traces), len(answers), 0, False)


def test_cached_prompt_tokens_are_reported_where_known(report: Report) -> None:
    alder_rows = [row for row in report.cost.rows if row.name == "alder"]
    assert all(row.cached_tokens == 90 * row.answers and row.told_tokens == row.prompt_tokens for row in alder_rows)
    assert {row.cached_tokens for row in report.cost.rows if row.name != "alder"} == {None}


def test_an_unknown_price_makes_the_total_a_lower_bound(report: Report) -> None:
    unpriced = [row for row in report.cost.rows if row.name == "cedar"]
    assert [row.usd for row in unpriced] == [None, None]
    assert all(row.unpriced == row.answers > 0 for row in unpriced)
    total = report.cost.total
    assert total.lower_bound
    assert total.unpriced == sum(row.unpriced for row in unpriced)
    assert total.usd == pytest.approx(math.fsum(row.usd for row in report.cost.rows if row.usd is not None))
    assert total.calls == sum(row.calls for row in report.cost.rows)


def test_all_attempts_are_counted(population: tuple[Database, Audit], report: Report) -> None:
    assert report.cost.total.attempts == ledger.count_attempts(population[0]) > report.cost.total.calls


async def test_requests_without_an_answer_are_in_the_cost_and_estimates_are_marked(db: Database) -> None:
    audit = populate(db, name="charged")
    before = build_report(db, "charged").cost.total
    call = Call("alder", "openai/alder-1", (Message("user", "hi"),), Purpose.DIRECT)
    charged = (
        Attempt(1, datetime.now(UTC), 0.1, Outcome.SERVER_ERROR, 200, prompt_tokens=9, completion_tokens=5,
                cost_usd=0.25, estimated=False),
        Attempt(2, datetime.now(UTC), 0.1, Outcome.TIMEOUT, cost_usd=0.5, estimated=True),
    )  # fmt: skip
    failed = Answer(call.key, Outcome.TIMEOUT, cost_usd=0.75, attempts=charged)
    await ledger.record_answer(db, call, failed, audit_id=audit.id)
    report = build_report(db, "charged")
    total = report.cost.total
    assert total.usd == pytest.approx((before.usd or 0.0) + 0.75)
    assert (total.estimated_usd, total.estimated_requests) == (0.5, 1)
    assert (total.attempts, total.calls) == (before.attempts + 2, before.calls + 1)
    assert (total.answers, total.unpriced) == (before.answers, before.unpriced)
    assert total.completion_tokens == before.completion_tokens + 5
    assert load_audit_status(db, audits.get_audit(db, "charged"))["cost_usd"] == pytest.approx(total.usd)
