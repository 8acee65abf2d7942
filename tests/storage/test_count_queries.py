"""Counts computed in SQL equal those computed from the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.domain import Ruling
from auditor.storage import count_queries, results
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from tests.storage.conftest import ENGINES, new_database
from tests.support.synthetic_audit import populate


@pytest.fixture(scope="module", params=ENGINES)
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("tallies") / "audit.db"
    with open_database(new_database(request, path)) as db:
        populate(db)
        yield db


AUDIT = 1


def test_traces_and_verdicts_by_outcome(db: Database) -> None:
    expected = Counter((trace.model, *trace.cell, trace.outcome.value) for trace in results.load_traces(db, AUDIT))
    assert {tuple(row[:4]): row.n for row in count_queries.count_traces(db, AUDIT)} == expected
    expected = Counter(
        (verdict.model, *verdict.cell, verdict.outcome.value) for verdict in results.load_verdicts(db, AUDIT)
    )
    assert {tuple(row[:4]): row.n for row in count_queries.count_verdicts(db, AUDIT)} == expected


def test_judge_counts_equal_those_of_the_rows(db: Database) -> None:
    rows = count_queries.count_judge_verdicts(db, AUDIT)
    for row in rows:
        verdicts = [
            verdict
            for verdict in results.load_verdicts(db, AUDIT)
            if (verdict.judge, verdict.model, verdict.outcome) == row[:3]
        ]
        assert row.n == len(verdicts)
        assert row.valid == sum(verdict.ruling is Ruling.VALID for verdict in verdicts)
    assert sum(r.n for r in rows) == len(results.load_verdicts(db, AUDIT))


def test_verdicts_on_disputed_traces_count_for_judges(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = populate(db, countries=5, topics=5)
        counts_before = count_queries.count_judge_verdicts(db, audit.id)
        verdicts = results.load_verdicts(db, audit.id)
        save_records(db, audit.id, [replace(verdict, always=verdict.sample > 0) for verdict in verdicts])
        assert count_queries.count_judge_verdicts(db, audit.id) == counts_before


@pytest.mark.parametrize("name", ["count_traces", "count_verdicts"])
def test_another_audit_has_no_counts(db: Database, name: str) -> None:
    assert getattr(count_queries, name)(db, AUDIT + 1) == []
