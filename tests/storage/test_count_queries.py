"""Counts computed in SQL equal those computed from the rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.domain import Ruling
from auditor.storage import count_queries, results
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from tests.support.synthetic_audit import populate


@pytest.fixture(scope="module")
def db(shared_db: Database) -> Database:
    populate(shared_db)
    return shared_db


AUDIT = 1


def test_traces_and_verdicts_by_outcome(db: Database) -> None:
    for counts, rows in (
        (count_queries.count_traces(db, AUDIT), results.load_traces(db, AUDIT)),
        (count_queries.count_verdicts(db, AUDIT), results.load_verdicts(db, AUDIT)),
    ):
        expected = Counter((row.model, *row.cell, row.outcome.value) for row in rows)
        assert {tuple(count[:4]): count.n for count in counts} == expected


def test_judge_counts_equal_those_of_the_rows(db: Database) -> None:
    rows, verdicts = count_queries.count_judge_verdicts(db, AUDIT), results.load_verdicts(db, AUDIT)
    for row in rows:
        rulings = [v.ruling for v in verdicts if (v.judge, v.model, v.outcome) == row[:3]]
        assert (row.n, row.valid) == (len(rulings), rulings.count(Ruling.VALID))
    assert sum(row.n for row in rows) == len(verdicts)


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
