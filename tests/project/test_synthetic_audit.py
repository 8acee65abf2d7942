"""The synthetic audit of `tests/support` is reproducible and has every outcome and every decision of a rater."""

from __future__ import annotations

from pathlib import Path

from auditor.domain import Decision, Outcome
from auditor.storage import results
from auditor.storage.database import open_database
from tests.support.synthetic_audit import populate


def test_equal_arguments_give_equal_rows(tmp_path: Path) -> None:
    rows_by_database = []
    for name in ("one", "two"):
        with open_database(f"sqlite:///{tmp_path}/{name}.db") as db:
            audit = populate(db)
            loads = (
                results.load_traces,
                results.load_scores,
                results.load_verdicts,
                results.load_conflicts,
                results.load_ratings,
            )
            rows_by_database.append([load(db, audit.id) for load in loads])
    assert rows_by_database[0] == rows_by_database[1]


def test_every_outcome_and_decision_occurs(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = populate(db)
        assert {t.outcome for t in results.load_traces(db, audit.id)} == set(Outcome)
        assert {v.outcome for v in results.load_verdicts(db, audit.id)} == set(Outcome)
        assert {r.decision for r in results.load_ratings(db, audit.id)} == set(Decision)
