"""Costs and call counts computed in SQL equal those computed from the rows."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import select

from auditor.storage import costs, ledger, results
from auditor.storage.call_records import StoredAttempt
from auditor.storage.database import Database, open_database
from auditor.storage.row_classes import table_of
from tests.support.synthetic_audit import populate

AUDIT = 1


@pytest.fixture(scope="module")
def db(shared_db: Database) -> Database:
    populate(shared_db)
    return shared_db


def test_calls_and_their_cost(db: Database) -> None:
    rows = costs.count_calls(db, AUDIT)
    traces = [trace for trace in results.load_traces(db, AUDIT) if trace.model == "alder"]
    answers = ledger.load_answers(db, [trace.key for trace in traces if trace.key])
    alder_rows = [row for row in rows if (row.name, row.purpose) == ("alder", "direct")]
    assert sum(row.sums.calls for row in alder_rows) == len(traces)
    assert sum(row.sums.answers for row in alder_rows) == len(answers) < len(traces)
    n_tokens = sum(row.sums.prompt_tokens for row in alder_rows)
    assert n_tokens == sum(answer.prompt_tokens or 0 for answer in answers.values())
    cost = math.fsum(row.sums.answers * row.cost_usd for row in alder_rows if row.cost_usd is not None)
    assert cost == pytest.approx(math.fsum(answer.cost_usd or 0.0 for answer in answers.values()))
    assert {row.cost_usd for row in rows if row.name == "cedar"} == {None}


def test_attempts_include_failures_and_retries(db: Database) -> None:
    attempts_by_name = Counter[tuple[str, str]]()
    for row in costs.count_calls(db, AUDIT):
        attempts_by_name[row.name, row.purpose] += row.sums.attempts
    traces = [trace for trace in results.load_traces(db, AUDIT) if trace.model == "alder"]
    n_repeated = sum(trace.sample == 0 and trace.outcome.is_answer for trace in traces)
    assert attempts_by_name["alder", "direct"] == len(traces) + n_repeated


def test_the_most_expensive_request_of_each_model(db: Database) -> None:
    attempt = table_of(StoredAttempt).c
    with db.read() as connection:
        rows = connection.execute(select(attempt.name, attempt.cost_usd).where(attempt.audit_id == AUDIT)).all()
    expected: dict[str, float] = {}
    for name, cost_usd in rows:
        if cost_usd is not None:
            expected[name] = max(expected.get(name, 0.0), cost_usd)
    assert costs.find_largest_costs(db, AUDIT) == expected
    assert "alder" in expected


def test_requests_of_unknown_cost_are_priced_by_their_tokens_in_the_spending(db: Database) -> None:
    attempt = table_of(StoredAttempt).c
    tokens = select(attempt.prompt_tokens, attempt.completion_tokens)
    with db.read() as connection:
        counts = connection.execute(tokens.where(attempt.name == "cedar", attempt.cost_usd.is_(None))).all()
    expected = math.fsum((prompt or 0) * 0.25 + (completion or 0) * 2.0 for prompt, completion in counts)
    prices = {"cedar": (0.25, 2.0, 0.0, 0.0), "alder": (0.0, 0.0, 0.0, 0.0)}
    without = costs.sum_spending(db, AUDIT).usd
    assert costs.sum_spending(db, AUDIT, token_prices=prices).usd == pytest.approx(without + expected)
    assert expected > 0


def test_another_audit_has_no_calls(db: Database) -> None:
    assert costs.find_largest_costs(db, AUDIT + 1) == {}
    assert costs.count_calls(db, AUDIT + 1) == []
    assert costs.sum_audit_cost(db, AUDIT + 1) == (None, 0)


def test_a_call_that_serves_several_models_is_counted_once_in_the_cost(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        populate(db, models=2, countries=2, topics=2)
        cost, calls = costs.sum_audit_cost(db, AUDIT), sum(row.sums.calls for row in costs.count_calls(db, AUDIT))
        shared = sorted(costs.load_call_keys(db, AUDIT))
        costs.record_calls(db, AUDIT, [("another", "direct", key) for key in shared])
        assert sum(row.sums.calls for row in costs.count_calls(db, AUDIT)) == calls + len(shared)
        assert costs.sum_audit_cost(db, AUDIT) == cost
        assert cost.usd
