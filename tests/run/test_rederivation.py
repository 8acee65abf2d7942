"""Results are derived again from the recorded answers by the code of the run, and every difference is found."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Table

from auditor import run_audit
from auditor.agents import recorded_cells
from auditor.agents.cell_scoring import evidence_hash
from auditor.config import AuditConfig
from auditor.domain import Cell
from auditor.domain.audit_records import AnswerSelection
from auditor.reports.data.verification import verify_audit
from auditor.run import derivation_workers
from auditor.run.audit_changes import exclude_answers, undo_exclusion
from auditor.run.rederivation import Rederivation, derive_again, open_derivation
from auditor.storage import audits, derived_rows, hash_chain, results
from auditor.storage.database import Database, open_database
from auditor.storage.schema import load_tables
from tests.support.answer_forms import answer_all_forms
from tests.support.audit_configs import FOUR_CELLS, config as scripted_config
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import FakeServer
from tests.support.fixed_address import word_encoder
from tests.support.known import known
from tests.support.scripted_tasks import audit as task_audit, solver

NAME = "simulated"
NOT_COVERED = ("link", "auditor_version")
"""Tables that no result is in: the chain itself, and the revision of the tables."""
TOPICS = ["divorce", "suicide", "abortion"]
CONFIG: dict[str, Any] = {
    "name": NAME,
    "survey": {"source": "wvs7-sample", "countries": ["Germany", "Nigeria"], "topics": TOPICS},
    "judges": "peers",
    "embedding": {"model": "words"},
    "probes": {"direct": {"samples": 2}, "logprob": {}, "logic": {"items": "topics", "samples": 1, "k": [3]}},
    "models": [
        {"name": name, "model": f"simulated/{model}"}
        for name, model in (("a", "western-everywhere"), ("b", "knows-every-culture"), ("c", "inconsistent"))
    ],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "auditor.db"
    with word_encoder():
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


def change_audit(db: Database, assignments: str) -> None:
    """Change the row of the audit as a run does, with a link in the chain."""

    def job(connection: Connection) -> None:
        with hash_chain.record_changes(connection, audits.get_audit(db, NAME).id, ["audit"]):
            connection.exec_driver_sql(f"UPDATE audit SET {assignments}")

    db.write(job)


def test_all_results_are_derived_again(db: Database) -> None:
    derivation = derive(db)
    assert derivation.is_consistent
    assert set(known(derivation.check).compared) >= {
        *("trace", "verdict", "score", "conflict", "contrast", "comparison", "comparison_item", "comparison_set")
    }


@pytest.mark.parametrize(
    ("probes", "panel"),
    [
        ({"direct": {"target_width": 0.6}, "review": {"guess": True, "rewrite": "neutral", "rewriter": "a"}}, {}),
        ({"direct": {"samples": 3, "min_samples": 2, "tolerance": 0.05}}, {"adaptive": True}),
    ],
    ids=["rounds and checks of blinding", "open-ended samples and adaptive panels"],
)
def test_each_way_of_asking_is_derived_again(storage: str, probes: dict[str, Any], panel: dict[str, Any]) -> None:
    """Lanes of a run take cells in another order than the derivation, which takes a batch after another."""
    with word_encoder():
        run_audit(AuditConfig.model_validate(CONFIG | {"probes": probes, "panel": panel}), storage=storage)
    with open_database(storage) as opened:
        comparison = known(derive(opened).check)
    assert comparison.differences == []
    assert set(comparison.compared) >= {"trace", "verdict", "score", "conflict"}
    assert ("guess" in comparison.compared) == (not panel)


def test_several_processes_read_what_one_does(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(db, "UPDATE trace SET score = 0.125 WHERE rowid = 3")
    execute(db, "UPDATE verdict SET turn = 7 WHERE rowid = 9")
    expected = derive(db)
    monkeypatch.setattr(derivation_workers, "count_workers", lambda _: 2)
    assert derive(db) == expected
    assert known(expected.check).changed.keys() >= {"trace", "verdict"}
    execute(db, "UPDATE answer SET text = 'other' WHERE rowid = 3")
    with derivation_workers.start_verification(db, audits.get_audit(db, NAME)) as (unknown, get_verification):
        assert (list(unknown), get_verification()) == ([], verify_audit(db, NAME))
    execute(db, "UPDATE trace SET outcome = 'odd' WHERE rowid = 3")
    for n_workers in (1, 2):
        monkeypatch.setattr(derivation_workers, "count_workers", lambda _, n=n_workers: n)
        with derivation_workers.start_verification(db, audits.get_audit(db, NAME)) as (unknown, get_verification):
            assert [difference.table for difference in unknown] == ["trace"]
            assert get_verification() == verify_audit(db, NAME)
            assert derive_again(db, audits.get_audit(db, NAME), unknown=unknown) == derive(db)


def test_cells_are_derived_again_alike_with_and_without_the_graph(
    storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = {"direct": {"samples": 2}, "review": {"guess": True, "rewrite": "neutral", "rewriter": "a"}}
    with word_encoder():
        run_audit(AuditConfig.model_validate(CONFIG | {"probes": probes}), storage=storage)
        exclude_answers(NAME, AnswerSelection(model="c", country="Nigeria"), "test", storage=storage)
    with open_database(storage) as opened:
        assert derive(opened).is_consistent
        changes = {"trace": "score", "verdict": "turn", "score": "n_ok", "conflict": "seats"}
        for table, column in changes.items():
            execute(opened, f"UPDATE {table} SET {column} = 9 WHERE rowid = 1")
        without_graph = derive(opened)
        assert known(without_graph.check).changed == dict.fromkeys(changes, 1)
        assert {"guess", "excluded_content"} <= set(known(without_graph.check).compared)
        with monkeypatch.context() as patch:
            patch.setattr(recorded_cells, "has_only_cells", lambda _: False)
            assert derive(opened) == without_graph
        monkeypatch.setattr(derivation_workers, "count_workers", lambda _: 2)
        assert derive(opened) == without_graph


CHANGES = [
    ("UPDATE score SET score = score + 2e-9 WHERE rowid = 2", "score", "has score = "),
    ("UPDATE score SET self_consistency = self_consistency - 2e-9 WHERE rowid = 4", "score", "has self_consistency = "),
    ("UPDATE score SET n_ok = 1 WHERE rowid = 1", "score", "has n_ok = 1, and the recorded answers give 2"),
    ("DELETE FROM score WHERE rowid = 3", "score", "is gone: the recorded answers give it"),
    ("UPDATE trace SET text = 'x', outcome = 'refused' WHERE rowid = 4", "trace", "has outcome = refused"),
]
"""Small differences, and the words of each kind; the test below changes every column of every table."""


def test_differences_are_found_and_their_rows_named(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_rows, "MAX_DIFFERENCES", 1000)
    for statement, _, _ in CHANGES:
        execute(db, statement)
    comparison = known(derive(db).check)
    for _, table, problem in CHANGES:
        rows = [row for row in comparison.differences if row.table == table and row.problem.startswith(problem)]
        assert rows, problem
        assert any(name in row.row for row in rows for name in "abc")
    assert sum(comparison.changed.values()) == len(comparison.differences)


@dataclass
class Changes:
    """One table of the audit, with the changes of its columns that are still to be tried."""

    table: Table
    rows: list[dict[str, Any]]
    columns: list[str]
    is_derived: bool

    @classmethod
    def of(cls, connection: sqlite3.Connection, table: Table) -> Changes:
        rows = [dict(row) for row in connection.execute(f'SELECT rowid AS "@", * FROM "{table.name}" ORDER BY 1')]
        columns = [column.name for column in table.c if column is not table.autoincrement_column]
        return cls(table, rows, columns, table.name in hash_chain.derived_kinds())

    def take(self) -> Iterator[tuple[dict[str, Any], str, Any]]:
        """Take as many columns as there are rows: each is changed in a row of its own."""
        taken, self.columns = self.columns[: len(self.rows)], self.columns[len(self.rows) :]
        for row, name in zip(self.rows, taken, strict=False):
            kind = self.table.c[name].type.python_type
            others = {str: "other", bytes: b"other", bool: not row[name]}
            yield row, name, others.get(kind, (row[name] or 0) + 7919 if kind in (int, float) else None)

    def name_problem(self, row: dict[str, Any], column: str | None = None) -> tuple[str, str, str]:
        """Table, row and beginning of what is said of a row, of which a column was changed, or which was deleted."""
        is_gone = column is None or column in self.table.primary_key
        if not self.is_derived:
            problem = "is gone" if is_gone else "is not as it was written"
            return self.table.name, hash_chain.name_row(self.table, row), problem
        key = [str(row[c.name]) for c in self.table.primary_key if c.name != "audit_id"]
        return self.table.name, ", ".join(key), "is gone" if is_gone else f"has {column} = "

    def copy_of(self, row: dict[str, Any]) -> dict[str, Any]:
        key = next(c.name for c in reversed(list(self.table.primary_key)) if c.name != "audit_id")
        changed = {"name": "added"} if self.table.name == "audit" else {}
        other = f"{row[key]}9" if isinstance(row[key], str) else 7919
        return {name: value for name, value in row.items() if name != "@"} | {key: other, **changed}


def test_a_change_of_any_column_of_any_covered_table_is_found(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each column of each table, and a row that is deleted and one that is added, each found at its own row."""
    monkeypatch.setattr(derived_rows, "MAX_DIFFERENCES", 1000)
    with open_derivation(db, audits.get_audit(db, NAME)) as compare, sqlite3.connect(str(db.path)) as connection:
        connection.row_factory = sqlite3.Row

        def find_problems() -> list[tuple[str, str, str]]:
            connection.commit()
            breaks = hash_chain.verify_chain(db, 1000).breaks
            return [*breaks, *((row.table, row.row, row.problem) for row in compare().differences)]

        def assert_found(expected: list[tuple[str, str, str]]) -> None:
            problems = find_problems()
            for table, row, problem in expected:
                row_problems = [p for t, r, p in problems if (t, r) == (table, row)]
                assert any(p.startswith(problem) for p in row_problems), (table, row, problem, row_problems)

        tables = [Changes.of(connection, t) for name, t in load_tables().items() if name not in NOT_COVERED]
        tables = [changes for changes in tables if changes.rows]
        names = {changes.table.name for changes in tables}
        assert names >= {"answer", "attempt", "audit", "survey_cell", "comparison", "comparison_item", "comparison_set"}
        assert names >= {"trace", "verdict", "score", "conflict", "contrast", "vector"}
        while any(changes.columns for changes in tables):
            taken = [(changes, *change) for changes in tables for change in changes.take()]
            for changes, row, column, other in taken:
                statement = f'UPDATE "{changes.table.name}" SET "{column}" = ? WHERE rowid = ?'
                connection.execute(statement, [other, row["@"]])
            assert_found([changes.name_problem(row, column) for changes, row, column, _ in taken])
            for changes, row, column, _ in taken:
                statement = f'UPDATE "{changes.table.name}" SET "{column}" = ? WHERE rowid = ?'
                connection.execute(statement, [row[column], row["@"]])
        assert find_problems() == []
        for changes in tables:
            connection.execute(f'DELETE FROM "{changes.table.name}" WHERE rowid = ?', [changes.rows[0]["@"]])
        assert_found([changes.name_problem(changes.rows[0]) for changes in tables])
        for changes in tables:
            stored = {name: value for name, value in changes.rows[0].items() if name != "@"}
            for row in (stored, changes.copy_of(changes.rows[0])):
                places = ", ".join("?" for _ in row)
                connection.execute(f'INSERT INTO "{changes.table.name}" VALUES ({places})', list(row.values()))
        problem_of = {True: "has no recorded answer behind it", False: "was written past the chain"}
        added = [(changes.name_problem(changes.copy_of(changes.rows[0])), changes.is_derived) for changes in tables]
        assert_found([(table, row, problem_of[is_derived]) for (table, row, _), is_derived in added])


def test_self_consistencies_follow_from_the_stored_vectors(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a changed vector the chain names the row, and the scores that follow from it are findings, too."""
    monkeypatch.setattr(derived_rows, "MAX_DIFFERENCES", 1000)
    execute(db, 'UPDATE vector SET "values" = zeroblob(192) WHERE rowid = 3')
    execute(db, "DELETE FROM vector WHERE rowid = 9")
    derivation = derive(db)
    assert known(derivation.check).changed.keys() == {"score"}
    problems = [row.problem for row in known(derivation.check).differences]
    assert any("self_consistency = " in problem and "give nothing" in problem for problem in problems)
    breaks = {(broken.record_kind, broken.problem) for broken in hash_chain.verify_chain(db).breaks}
    assert breaks == {("vector", "is not as it was written"), ("vector", "is gone")}


def test_an_exclusion_and_its_undoing_verify(db: Database) -> None:
    """The cells of the excluded answers have no self-consistency, and others other similarities between cells."""
    storage = str(db.engine.url)
    with word_encoder():
        exclusion = exclude_answers(NAME, AnswerSelection(model="a", country="Germany"), "test", storage=storage)
        for is_undone in (False, True):
            if is_undone:
                undo_exclusion(NAME, exclusion.id, storage=storage)
            assert hash_chain.verify_chain(db).breaks == []
            assert known(derive(db).check).differences == []


def test_audits_without_stored_vectors_keep_what_the_chain_has(db: Database) -> None:
    """Programs before stored no vectors of direct answers, and hashed the encoder's name with the texts."""
    audit_id = audits.get_audit(db, NAME).id
    texts: dict[tuple[str, Cell], list[str]] = {}
    for trace in results.load_traces(db, audit_id):
        texts.setdefault((trace.model, trace.cell), []).append(trace.text or "")
    change_audit(db, "environment = json_remove(environment, '$.encoder_revision')")
    execute(db, "DELETE FROM vector")
    for (model, cell), of_cell in texts.items():
        row = f"model = '{model}' AND country = '{cell.country}' AND topic = '{cell.topic}' AND method = 'direct'"
        execute(db, f"UPDATE score SET evidence = '{evidence_hash('words', of_cell)}' WHERE {row}")
    assert derive(db).is_consistent
    assert {broken.record_kind for broken in hash_chain.verify_chain(db, 1000).breaks} == {
        *("vector", "self_consistency")  # what this test changed
    }


def test_numbers_within_the_tolerance_are_equal(db: Database) -> None:
    execute(db, "UPDATE score SET score = score + 1e-12 WHERE score IS NOT NULL")
    assert derive(db).is_consistent


def test_missing_rows_of_a_stage_that_was_not_reached_are_no_finding(db: Database) -> None:
    change_audit(db, "stage = 'review', finished_at = NULL")
    for table in ("score", "conflict", "verdict"):
        execute(db, f"DELETE FROM {table} WHERE rowid % 2")
    assert derive(db).is_consistent
    change_audit(db, "stage = 'measure'")
    execute(db, "UPDATE trace SET score = 0.125 WHERE rowid = 3")
    assert known(derive(db).check).changed.keys() == {"trace", "verdict"}


def test_answers_that_came_after_the_end_change_nothing(db: Database) -> None:
    """They are another audit's: a call that failed here may have an answer there."""
    execute(db, "UPDATE attempt SET outcome = 'timeout' WHERE key = (SELECT key FROM trace WHERE rowid = 3)")
    execute(db, "UPDATE answer SET created_at = '2999-01-01' WHERE key = (SELECT key FROM trace WHERE rowid = 3)")
    execute(db, "UPDATE trace SET outcome = 'timeout', score = NULL, text = NULL WHERE rowid = 3")
    assert "trace" not in known(derive(db).check).changed


def test_answers_recorded_while_the_clock_was_ahead_are_read(db: Database) -> None:
    """The clock was set back before the audit ended."""
    change_audit(db, "finished_at = '2001-01-01T00:00:00.000+00:00'")
    assert derive(db).is_consistent


@pytest.mark.parametrize(
    ("table", "assignment", "problem"),
    [
        ("trace", "outcome = 'lost'", "has the unknown outcome 'lost'"),
        ("verdict", "ruling = 'lost'", "has the unknown ruling 'lost'"),
        ("conflict", "kind = 'lost'", "has the unknown kind 'lost'"),
        ("contrast", "measure = 'lost'", "has the unknown measure 'lost'"),
        ("verdict", "aspects = '{no json'", "has aspects = {no json, which is not the JSON of this column"),
        ("verdict", "aspects = '[]'", "has aspects = [], which is not the JSON of this column"),
        ("score", "score = 'high'", "has score = high, which is no number"),
        ("survey_cell", "score = 'NaN'", "has score = NaN, which is no number"),
    ],
)
def test_a_value_that_cannot_be_read_is_a_finding(db: Database, table: str, assignment: str, problem: str) -> None:
    execute(db, f"UPDATE {table} SET {assignment} WHERE rowid = 2")
    verification = verify_audit(db, NAME)
    assert not verification.is_consistent
    assert [(row.table, row.problem) for row in verification.unknown] == [(table, problem)]
    assert derive(db).reason == "rows have values that no version of auditor writes"


@pytest.mark.parametrize("assignment", ["config = '{}'", "survey = 'x'", "environment = '[]'", "finished_at = NULL"])
def test_results_do_not_follow_from_a_changed_audit(db: Database, assignment: str) -> None:
    """They would all count as changed, or could not be derived at all: what is wrong is the audit's row."""
    execute(db, f"UPDATE audit SET {assignment}")
    verification = verify_audit(db, NAME)
    assert [(broken.record_kind, broken.problem) for broken in verification.records.breaks] == [
        ("audit", "is not as it was written")
    ]
    assert derive(db).reason == "the audit's configuration, survey or environment is not as it was written"


@pytest.mark.parametrize(
    ("column", "value"),
    [("kind", "x'00'"), ("row", "x'00'"), ("digest", "x'00'"), ("content", "x'00'"), ("row", "'[1]'")],
)
def test_a_link_with_an_odd_value_is_a_finding(db: Database, column: str, value: str) -> None:
    execute(db, f"UPDATE link SET {column} = {value} WHERE id = (SELECT id FROM link WHERE kind = 'attempt' LIMIT 1)")
    assert not verify_audit(db, NAME).is_consistent


def test_verify_names_the_rows(db: Database) -> None:
    storage = ("--storage", str(db.engine.url))
    assert "consistent" in auditor("verify", NAME, *storage).stderr
    for change, problem in (
        ("ruling = 'VALID' WHERE model = 'a'", "has ruling = VALID, and the recorded answers give INVALID"),
        ("outcome = 'lost' WHERE rowid = 2", "has the unknown outcome 'lost'"),
    ):
        execute(db, f"UPDATE verdict SET {change}")
        result = auditor("verify", NAME, *storage)
        assert result.returncode == 1
        assert problem in result.stderr


EXPERIMENTS_BY_NAME: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("planted", "bias", "temperature", "rules"), (NAME,)),
    "validity": ("sums",),
    "accuracy": (NAME, "facts.csv"),
    "robustness": ("scripted", "--ask", *map("--without={}".format, ("temperature", "language", "role", "wording"))),
}
"""Arguments of the experiments that store results."""
FACTS = "question_id,question,choices,correct,paraphrase\nq1,Which is a fruit?,pear|stone,pear,What is a fruit?\n"


def test_results_that_experiments_store_are_derived_again(server: FakeServer, tmp_path: Path) -> None:
    """Of an audit with all that they read, one of a task, and one whose model knows other forms."""
    storage = f"sqlite:///{tmp_path / 'auditor.db'}"
    (tmp_path / "facts.csv").write_text(FACTS, encoding="utf-8")
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Nigeria"], "topics": TOPICS[:2]}
    probes = CONFIG["probes"] | {"semantic": {"limit": 4}}
    changes = {"survey": survey, "probes": probes, "models": CONFIG["models"][:2]}
    with word_encoder():
        run_audit(AuditConfig.model_validate(CONFIG | changes), storage=storage)
        server.script = solver
        run_audit(task_audit(server.url, tmp_path, "exact"), storage=storage)
        server.script = answer_all_forms
        run_audit(scripted_config(server.url, 2, survey=FOUR_CELLS), storage=storage)
        for name, arguments in EXPERIMENTS_BY_NAME.items():
            succeed("experiment", name, *arguments, "--storage", storage, cwd=tmp_path)
    with open_database(storage) as db:
        for name in (NAME, "sums", "scripted"):
            verification = verify_audit(db, name)
            assert (name, verification.is_consistent, verification.uncovered) == (name, True, {})
            comparison = known(derive_again(db, audits.get_audit(db, name)).check)
            assert (name, comparison.differences) == (name, [])


def test_every_table_is_covered() -> None:
    """Also a table that nothing reads yet: its rows are chained, derived or named by their hash."""
    assert set(load_tables()) - hash_chain.covered_kinds() == {"link"}
