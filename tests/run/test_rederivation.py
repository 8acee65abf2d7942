"""Results are derived again from the recorded answers by the code of the run, and every difference is found."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor import run_audit
from auditor.config import AuditConfig
from auditor.reports.data.verification import verify_audit
from auditor.run.rederivation import Rederivation, derive_again
from auditor.storage import audits, derived_rows
from auditor.storage.database import Database, open_database
from tests.support.cli_runner import auditor

NAME = "simulated"
TOPICS = ["divorce", "suicide", "abortion", "euthanasia", "homosexuality"]
CONFIG: dict[str, Any] = {
    "name": NAME,
    "survey": {"source": "wvs7-sample", "countries": ["Germany", "Nigeria"], "topics": TOPICS},
    "judges": "peers",
    "embedding": {"model": "none"},
    "probes": {"direct": {"samples": 2}, "logprob": {}, "logic": {"items": "topics", "samples": 1, "k": [3]}},
    "models": [
        {"name": name, "model": f"simulated/{model}"}
        for name, model in (("a", "western-everywhere"), ("b", "knows-every-culture"), ("c", "inconsistent"))
    ],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a finished simulated audit."""
    path = tmp_path_factory.mktemp("finished") / "auditor.db"
    run_audit(AuditConfig.model_validate(CONFIG), storage=f"sqlite:///{path}")
    return path


@pytest.fixture
def db(finished: Path, tmp_path: Path) -> Iterator[Database]:
    shutil.copy(finished, tmp_path / "auditor.db")
    with open_database(f"sqlite:///{tmp_path / 'auditor.db'}") as opened:
        yield opened


def derive(db: Database) -> Rederivation:
    return derive_again(db, audits.get_audit(db, NAME))


def execute(db: Database, statement: str) -> None:
    db.write(lambda connection: connection.exec_driver_sql(statement))


def test_all_results_are_derived_again(db: Database) -> None:
    derivation = derive(db)
    assert derivation.is_consistent
    assert derivation.comparison is not None
    assert set(derivation.comparison.compared) >= {
        *("trace", "verdict", "score", "conflict", "contrast", "comparison", "comparison_item", "comparison_set"),
    }


CHANGES = [
    ("UPDATE score SET score = score + 2e-9 WHERE rowid = 2", "score", "has score = "),
    ("UPDATE score SET n_ok = 1 WHERE rowid = 1", "score", "has n_ok = 1, and the recorded answers give 2"),
    ("DELETE FROM score WHERE rowid = 3", "score", "is gone: the recorded answers give it"),
    ("UPDATE trace SET score = 0.125 WHERE rowid = 3", "trace", "has score = 0.125"),
    ("UPDATE trace SET text = 'x', outcome = 'refused' WHERE rowid = 4", "trace", "has outcome = refused"),
    ("DELETE FROM trace WHERE rowid = 5", "trace", "is gone: the recorded answers give it"),
    ("UPDATE verdict SET ruling = 'VALID' WHERE ruling = 'INVALID' AND rowid < 9", "verdict", "has ruling = VALID"),
    ("UPDATE verdict SET turn = 7 WHERE rowid = 9", "verdict", "has turn = 7"),
    (
        "UPDATE verdict SET judge = 'c' WHERE rowid = (SELECT max(rowid) FROM verdict WHERE model = 'c')",
        "verdict",
        "has no recorded answer behind it",
    ),
    ("UPDATE conflict SET votes_left = votes_left + 1 WHERE rowid = 1", "conflict", "has votes_left = "),
    ("DELETE FROM conflict WHERE rowid = 2", "conflict", "is gone"),
    ("UPDATE contrast SET difference = 0.125 WHERE rowid = 3", "contrast", "has difference = 0.125"),
    ("UPDATE comparison SET probability = 0.125 WHERE rowid = 3", "comparison", "has probability = 0.125"),
]


def test_differences_are_found_and_their_rows_named(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_rows, "MAX_DIFFERENCES", 1000)
    for statement, _, _ in CHANGES:
        execute(db, statement)
    comparison = derive(db).comparison
    assert comparison is not None
    for _, table, problem in CHANGES:
        rows = [row for row in comparison.differences if row.table == table and row.problem.startswith(problem)]
        assert rows, problem
        assert any(name in row.row for row in rows for name in "abc")
    assert comparison.changed.total() == len(comparison.differences)


def test_numbers_within_the_tolerance_are_equal(db: Database) -> None:
    execute(db, "UPDATE score SET score = score + 1e-12 WHERE score IS NOT NULL")
    assert derive(db).is_consistent


def test_missing_rows_of_a_stage_that_was_not_reached_are_no_finding(db: Database) -> None:
    execute(db, "UPDATE audit SET stage = 'review', finished_at = NULL")
    for table in ("score", "conflict", "verdict"):
        execute(db, f"DELETE FROM {table} WHERE rowid % 2")
    assert derive(db).is_consistent
    execute(db, "UPDATE audit SET stage = 'measure'")
    execute(db, "UPDATE trace SET score = 0.125 WHERE rowid = 3")
    comparison = derive(db).comparison
    assert comparison is not None
    assert comparison.changed.keys() == {"trace", "verdict"}


def test_answers_that_came_after_the_end_change_nothing(db: Database) -> None:
    """They are another audit's: a call that failed here may have an answer there."""
    execute(db, "UPDATE answer SET created_at = '2999-01-01' WHERE key = (SELECT key FROM trace WHERE rowid = 3)")
    execute(db, "UPDATE trace SET outcome = 'timeout', score = NULL, text = NULL WHERE rowid = 3")
    comparison = derive(db).comparison
    assert comparison is not None
    assert comparison.changed["trace"] == 0


@pytest.mark.parametrize(
    ("table", "column"), [("trace", "outcome"), ("verdict", "ruling"), ("conflict", "kind"), ("contrast", "measure")]
)
def test_an_unknown_value_is_a_finding(db: Database, table: str, column: str) -> None:
    execute(db, f"UPDATE {table} SET {column} = 'lost' WHERE rowid = 2")
    verification = verify_audit(db, NAME)
    assert not verification.is_consistent
    assert [(row.table, row.problem) for row in verification.unknown] == [(table, f"has the unknown {column} 'lost'")]


def test_verify_names_the_rows(db: Database) -> None:
    storage = ("--storage", str(db.engine.url))
    assert "consistent" in auditor("verify", NAME, *storage).stderr
    execute(db, "UPDATE verdict SET ruling = 'VALID' WHERE model = 'a'")
    result = auditor("verify", NAME, *storage)
    assert result.returncode == 1
    assert "has ruling = VALID, and the recorded answers give INVALID" in result.stderr
    execute(db, "UPDATE verdict SET outcome = 'lost' WHERE rowid = 2")
    result = auditor("verify", NAME, *storage)
    assert result.returncode == 1
    assert "has the unknown outcome 'lost'" in result.stderr
