"""Failed requests counted in SQL, in databases of this version and of earlier ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import update

from auditor.domain import AlteredTraceVerdict, Answer, Attempt, Contest, Guess, Outcome, Restatement, Trace
from auditor.domain.audit_records import DesignAnswer
from auditor.domain.records import RowPolicy
from auditor.probes.semantic.records import MoralAnswerRecord, MoralTranslation, PairVerdict
from auditor.storage import failure_queries, ledger, results
from auditor.storage.call_records import StoredAttempt
from auditor.storage.database import Database
from auditor.storage.failure_queries import count_failed_requests, count_model_outcomes, count_unsent_calls
from auditor.storage.row_classes import table_of
from auditor.storage.schema import list_record_classes
from tests.storage.test_database import save_sample_audit
from tests.storage.test_writer import make_answer, make_call
from tests.support.synthetic_audit import populate

AUDIT = 1
LISTED_BY_REQUEST: set[type] = {
    *(AlteredTraceVerdict, Contest, DesignAnswer, Guess, MoralTranslation, PairVerdict, Restatement)
}
"""Their failures are listed by request only: an audit is complete without them."""


def attempt(number: int, outcome: Outcome, status: int | None = None, error: str | None = None) -> Attempt:
    return Attempt(number, datetime(2026, 1, number, tzinfo=UTC), 0.1, outcome, status, error)


async def test_failed_requests_are_grouped_and_calls_without_a_usable_answer_are_counted_once(db: Database) -> None:
    audit = save_sample_audit(db)
    answered, failed, refused = calls = [make_call(number) for number in range(3)]
    answers = [
        make_answer(answered), Answer(failed.key, Outcome.SERVER_ERROR, error="oops"),
        Answer(refused.key, Outcome.REFUSED, error="flagged"),
    ]  # fmt: skip
    attempts = [
        (attempt(1, Outcome.SERVER_ERROR, 500, "oops"), attempt(2, Outcome.OK, 200)),
        (attempt(2, Outcome.SERVER_ERROR, 500, "oops"), attempt(3, Outcome.SERVER_ERROR, 500, "oops")),
        (attempt(1, Outcome.REFUSED, 400, "flagged"),),
    ]
    for call, answer, sent in zip(calls, answers, attempts, strict=True):
        await ledger.record_answer(db, call, replace(answer, attempts=sent), audit_id=audit.id)
    oops, flagged = count_failed_requests(db, audit.id)
    assert (oops.http_status, oops.error, oops.requests, oops.unusable_calls) == (500, "oops", 3, 1)
    assert (oops.first_at[:10], oops.last_at[:10]) == ("2026-01-01", "2026-01-03")
    assert (flagged.outcome, flagged.requests, flagged.unusable_calls) == ("refused", 1, 1)
    assert count_failed_requests(db, audit.id + 1) == []


def test_rows_of_earlier_versions_that_name_no_audit_are_counted_by_their_calls(db: Database) -> None:
    populate(db)
    table = table_of(StoredAttempt)
    db.write(lambda connection: connection.execute(update(table).values(audit_id=None, name=None)))
    failed = Counter[str]()
    for count in count_failed_requests(db, AUDIT):
        if count.purpose == "direct" and count.outcome != "rate_limited":
            failed[count.name] += count.requests
    failed_traces = [trace for trace in results.load_traces(db, AUDIT) if not trace.outcome.is_answer]
    expected = Counter(trace.model for trace in failed_traces if trace.outcome is not Outcome.RATE_LIMITED)
    assert failed == expected
    assert count_failed_requests(db, AUDIT + 1) == []


def test_outcomes_are_counted_by_model_and_role(db: Database) -> None:
    populate(db)
    traces, verdicts = results.load_traces(db, AUDIT), results.load_verdicts(db, AUDIT)
    counts = {(c.name, c.outcome): c.n for c in count_model_outcomes(db, AUDIT) if c.is_judge}
    assert counts == Counter((verdict.judge, verdict.outcome.value) for verdict in verdicts)
    n_traces = sum(c.n for c in count_model_outcomes(db, AUDIT) if not c.is_judge and c.name == "alder")
    assert n_traces >= sum(trace.model == "alder" for trace in traces) > 0


def test_failed_calls_without_a_request_were_not_sent(db: Database) -> None:
    populate(db)
    n_before = count_unsent_calls(db, AUDIT)
    traces = table_of(Trace)
    unsent = {"outcome": "client_error", "key": "never sent"}
    one_trace = (traces.c.audit_id == AUDIT) & (traces.c.sample == 0) & (traces.c.model == "alder")
    db.write(lambda connection: connection.execute(update(traces).where(one_trace).values(unsent)))
    assert count_unsent_calls(db, AUDIT) == n_before + 1  # the traces share one call
    assert count_unsent_calls(db, AUDIT + 1) == 0


def test_every_table_of_results_is_counted_or_left_out_on_purpose() -> None:
    derived_tables = map(table_of, list_record_classes(RowPolicy.DERIVED))
    tables_with_outcomes = {table for table in derived_tables if "outcome" in table.c}
    listed_by_request = {table_of(record_class) for record_class in LISTED_BY_REQUEST}
    assert {*failure_queries._RESULT_TABLES} | listed_by_request == tables_with_outcomes
    sent_until_stopped = {*failure_queries._SENT_UNTIL_STOPPED, table_of(MoralAnswerRecord)}
    assert sent_until_stopped | listed_by_request == tables_with_outcomes
