"""Results are derived again from the recorded answers by the code of the run, and every difference is found."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, event
from sqlmodel import SQLModel

from auditor import run_audit
from auditor.config import AuditConfig
from auditor.exports.tables import export_tables
from auditor.reports.data.build import build_report
from auditor.reports.data.verification import verify_audit
from auditor.run.rederivation import Rederivation, derive_again, open_derivation
from auditor.storage import audits, derived_rows, hash_chain
from auditor.storage.database import Database, open_database
from auditor.storage.row_classes import DerivedRow
from auditor.storage.row_writing import table_of
from tests.support.cli_runner import auditor

NAME = "simulated"
NOT_COVERED = ("payload", "dispatch", "link", "auditor_version")
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
    assert sum(comparison.changed.values()) == len(comparison.differences)


def pick_changes(connection: sqlite3.Connection, table: Table) -> Iterator[tuple[str, Any, Any]]:
    """Name, another value and the stored value of each column of a table's first row."""
    connection.row_factory = sqlite3.Row
    row = connection.execute(f'SELECT * FROM "{table.name}" ORDER BY rowid LIMIT 1').fetchone()
    for name in row.keys() if row is not None else ():
        kind = table.c[name].type.python_type
        if table.c[name] is not table.autoincrement_column:
            others = {str: "other", bytes: b"other", bool: not row[name]}
            yield name, others.get(kind, (row[name] or 0) + 7919 if kind in (int, float) else None), row[name]


def test_a_change_of_any_column_of_any_covered_table_is_found(db: Database) -> None:
    derived = {table_of(row_class).name for row_class in DerivedRow.__subclasses__()}
    checked = set()
    with open_derivation(db, audits.get_audit(db, NAME)) as compare, sqlite3.connect(str(db.path)) as connection:

        def is_found(table: str) -> bool:
            connection.commit()
            if table in derived:
                return table in compare().changed
            return any(broken.record_kind == table for broken in hash_chain.verify_chain(db).breaks)

        for name, table in SQLModel.metadata.tables.items():
            if name in NOT_COVERED:
                continue
            condition = f'WHERE rowid = (SELECT min(rowid) FROM "{name}")'
            for column, other, value in pick_changes(connection, table):
                connection.execute(f'UPDATE "{name}" SET "{column}" = ? {condition}', [other])
                assert is_found(name), (name, column)
                connection.execute(f'UPDATE "{name}" SET "{column}" = ? {condition}', [value])
                checked.add(name)
            row = connection.execute(f'SELECT * FROM "{name}" {condition}').fetchone()
            if row is not None:
                connection.execute(f'DELETE FROM "{name}" {condition}')
                assert is_found(name), name
                places = ", ".join("?" for _ in row)
                connection.execute(f'INSERT INTO "{name}" VALUES ({places})', list(row))
                key = next(c.name for c in reversed(list(table.primary_key)) if c.name != "audit_id" or name == "audit")
                added = [
                    f"{v}9" if c == key and isinstance(v, str) else 7919 if c == key else v
                    for c, v in dict(row).items()
                ]
                if name == "audit":
                    added[list(dict(row)).index("name")] = "added"
                connection.execute(f'INSERT INTO "{name}" VALUES ({places})', added)
                assert is_found(name), name
                connection.execute(f'DELETE FROM "{name}" WHERE "{key}" = ?', [added[list(dict(row)).index(key)]])
        connection.commit()
        assert not compare().changed
        assert not hash_chain.verify_chain(db).breaks
    assert checked >= {"answer", "attempt", "audit", "survey_cell", "trace", "verdict", "score", "conflict", "contrast"}


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
    assert "trace" not in comparison.changed


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


def test_reports_and_exports_read_covered_tables_only(db: Database, tmp_path: Path) -> None:
    read: set[str] = set()

    def note(action: int, table: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and table is not None:
            read.add(table)
        return sqlite3.SQLITE_OK

    db.engine.dispose()
    event.listen(db.engine, "connect", lambda connection, _: connection.set_authorizer(note))
    build_report(db, NAME)
    export_tables(db, NAME, tmp_path / "tables", "jsonl")
    covered = hash_chain.append_only_kinds() | hash_chain.mutable_kinds() | hash_chain.derived_kinds()
    assert read >= {"answer", "attempt", "audit", "score", "verdict", "conflict", "survey_cell"}
    assert {name for name in read - covered if not name.startswith("sqlite_")} <= {*NOT_COVERED}
    assert hash_chain.find_uncovered(db, audits.get_audit(db, NAME).id) == {}
