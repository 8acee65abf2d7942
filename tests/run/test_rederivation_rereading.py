"""A newer reader is applied to recorded answers by a command, which says what changes and can be undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor import run_audit
from auditor.agents import answer_parsing
from auditor.config import AuditConfig
from auditor.domain.audit_records import AnswerSelection
from auditor.errors import UsageError
from auditor.reports.data.build import build_report
from auditor.reports.data.verification import verify_audit
from auditor.run import fingerprints
from auditor.run.audit_changes import exclude_answers, undo_exclusion
from auditor.run.rederivation import derive_again, reread_audit, undo_reread
from auditor.storage import audits, results
from auditor.storage.database import Database, open_database
from tests.run.test_rederivation import CONFIG, NAME, TOPICS, execute
from tests.support.cli_runner import auditor
from tests.support.fixed_address import word_encoder
from tests.support.known import known

SMALL = CONFIG | {"survey": CONFIG["survey"] | {"topics": TOPICS[:2]}, "probes": {"direct": {"samples": 2}}}
NEWER = fingerprints.READER_VERSIONS["direct"] + 1


@pytest.fixture(scope="module", autouse=True)
def encoder() -> Iterator[None]:
    with word_encoder():
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "auditor.db"
    run_audit(AuditConfig.model_validate(SMALL), storage=f"sqlite:///{path}")
    return path


@pytest.fixture
def db(finished: Path, tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "auditor.db").write_bytes(finished.read_bytes())
    with open_database(f"sqlite:///{tmp_path / 'auditor.db'}") as opened:
        yield opened


@pytest.fixture
def newer_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version, which reads scores with the other sign."""
    read = answer_parsing._read_score

    def read_otherwise(*arguments: Any, **options: Any) -> tuple[float | None, str]:
        score, text = read(*arguments, **options)
        return None if score is None else -score, text

    monkeypatch.setattr(answer_parsing, "_read_score", read_otherwise)
    monkeypatch.setitem(fingerprints.READER_VERSIONS, "direct", NEWER)


def scores_of(db: Database) -> list[float | None]:
    return [score.score for score in results.load_scores(db, audits.get_audit(db, NAME).id)]


def dump(db: Database) -> dict[str, list[str]]:
    """The rows that a rereading may change, but for the time of the last change."""
    with db.read() as connection:
        rows = {
            name: sorted(map(repr, connection.exec_driver_sql(f"SELECT * FROM {name}")))
            for name in ("trace", "score", "verdict", "conflict", "excluded_content")
        }
        audit_rows = connection.exec_driver_sql("SELECT stage, environment, config_hash FROM audit")
        return rows | {"audit": list(map(repr, audit_rows))}


def storage_of(db: Database) -> str:
    return str(db.engine.url)


@pytest.mark.usefixtures("newer_reader")
def test_a_newer_reader_is_a_note_until_it_is_applied(db: Database) -> None:
    before = dump(db)
    derivation = derive_again(db, audits.get_audit(db, NAME))
    assert derivation.is_consistent
    assert derivation.other_readers == {"direct": (NEWER - 1, NEWER)}
    assert known(derivation.check).changed == {}
    assert known(derivation.check).reread["trace"] == 24
    verified = auditor("verify", NAME, "--storage", storage_of(db))
    assert verified.returncode == 0, verified.stderr
    assert "auditor reread" in verified.stderr

    preview = auditor("reread", NAME, "--preview", "--storage", storage_of(db))
    assert f"direct: read by reader version {NEWER - 1}; the present one is {NEWER}." in preview.stderr
    assert "trace: 24 results would change." in preview.stderr
    assert dump(db) == before

    scores = scores_of(db)
    rereading = reread_audit(NAME, storage=storage_of(db))
    assert rereading.n_by_table["trace"] == 24
    assert scores_of(db) == [None if score is None else -score for score in scores]
    derivation = derive_again(db, audits.get_audit(db, NAME))
    assert (derivation.is_consistent, derivation.other_readers) == (True, {})
    verification = verify_audit(db, NAME)
    assert verification.is_consistent
    assert [act["act"] for act in verification.records.acts] == ["reread"]
    build_report(db, NAME)
    assert reread_audit(NAME, storage=storage_of(db)).n_by_table == {}


def test_a_rereading_is_undone(db: Database, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    before = dump(db)
    report = json.loads(build_report(db, NAME).model_dump_json())
    request.getfixturevalue("newer_reader")
    assert auditor("reread", NAME, "--storage", storage_of(db)).returncode == 0
    assert dump(db) != before
    undone = auditor("reread", NAME, "--undo", "--storage", storage_of(db))
    assert undone.returncode == 0, undone.stderr
    assert dump(db) == before
    monkeypatch.undo()
    verification = verify_audit(db, NAME)
    assert verification.is_consistent
    assert [act["act"] for act in verification.records.acts] == ["reread", "undo reread"]
    assert derive_again(db, audits.get_audit(db, NAME)).is_consistent
    report_after = json.loads(build_report(db, NAME).model_dump_json())
    assert report_after == report
    with pytest.raises(UsageError, match="no rereading"):
        undo_reread(NAME, storage=storage_of(db))


@pytest.mark.usefixtures("newer_reader")
def test_verdicts_under_the_name_of_another_judge_are_no_reading(db: Database) -> None:
    with db.read() as connection:
        judges = connection.exec_driver_sql("SELECT DISTINCT judge FROM verdict ORDER BY judge").scalars().all()
    for before, after in ((judges[0], "x"), (judges[1], judges[0]), ("x", judges[1])):
        execute(db, f"UPDATE verdict SET judge = '{after}' WHERE judge = '{before}'")
    check = known(derive_again(db, audits.get_audit(db, NAME)).check)
    assert check.changed["verdict"] > 0
    assert f", a call of {judges[1]}" in next(d.problem for d in check.differences if d.table == "verdict")


def test_a_newer_reader_of_other_results_excuses_no_change(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fingerprints.READER_VERSIONS, "logprob", fingerprints.READER_VERSIONS["logprob"] + 1)
    for table, change in (("trace", "score = 0.125"), ("verdict", "confidence = 3")):
        execute(db, f"UPDATE {table} SET {change} WHERE rowid = 3")
    check = known(derive_again(db, audits.get_audit(db, NAME)).check)
    assert (check.changed["trace"], check.changed["verdict"]) == (1, 1)


@pytest.mark.usefixtures("newer_reader")
def test_a_rereading_before_a_run_is_not_undone_after_it(db: Database) -> None:
    """Else what the run reads would stand beside results of an earlier reader."""
    reread_audit(NAME, storage=storage_of(db))
    run_audit(AuditConfig.model_validate(SMALL), storage=storage_of(db))
    after = dump(db)
    with pytest.raises(UsageError, match="the audit was run again since"):
        undo_reread(NAME, storage=storage_of(db))
    assert dump(db) == after
    assert_verifies(db)


def test_results_that_were_changed_are_not_taken_for_a_reading(db: Database) -> None:
    execute(db, "UPDATE trace SET score = 0.125 WHERE rowid = 3")
    assert reread_audit(NAME, storage=storage_of(db)).n_by_table == {}
    assert not derive_again(db, audits.get_audit(db, NAME)).is_consistent


@pytest.mark.usefixtures("newer_reader")
def test_a_run_after_a_rereading_changes_nothing(db: Database) -> None:
    reread_audit(NAME, storage=storage_of(db))
    scores = scores_of(db)
    run_audit(AuditConfig.model_validate(SMALL), storage=storage_of(db))
    assert scores_of(db) == scores
    assert [act["act"] for act in verify_audit(db, NAME).records.acts] == ["reread"]


@pytest.mark.parametrize("changes", [{"probes": {"direct": {"samples": 1}}}, {"conflicts": {"threshold": 0.2}}])
def test_an_exclusion_a_changed_configuration_and_an_undo_verify(db: Database, changes: dict[str, Any]) -> None:
    exclusion = exclude_answers(NAME, AnswerSelection(model="a", country="Germany"), "test", storage=storage_of(db))
    assert_verifies(db)
    changed = AuditConfig.model_validate(SMALL | changes)
    run_audit(changed, storage=storage_of(db))
    assert_verifies(db)
    undo_exclusion(NAME, exclusion.id, storage=storage_of(db))
    assert_verifies(db)
    assert audits.get_audit(db, NAME).stage == "review"  # verdicts on these answers are missing until the next run
    run_audit(changed, storage=storage_of(db))
    assert_verifies(db)


def assert_verifies(db: Database) -> None:
    verification, derivation = verify_audit(db, NAME), derive_again(db, audits.get_audit(db, NAME))
    assert verification.is_consistent, verification
    assert known(derivation.check).differences == []


EXCLUDED = AnswerSelection(model="a", country="Germany")


@pytest.mark.usefixtures("newer_reader")
def test_a_rereading_before_an_exclusion_is_undone_after_it(db: Database) -> None:
    """Else the answers that are excluded would count again."""
    before = dump(db)
    reread_audit(NAME, storage=storage_of(db))
    exclusion = exclude_answers(NAME, EXCLUDED, "test", storage=storage_of(db))
    excluded = dump(db)
    with pytest.raises(UsageError, match="other answers of 'simulated' are excluded now"):
        undo_reread(NAME, storage=storage_of(db))
    assert dump(db) == excluded
    undo_exclusion(NAME, exclusion.id, storage=storage_of(db))
    undo_reread(NAME, storage=storage_of(db))
    assert dump(db) == before


def test_an_exclusion_before_a_rereading_is_undone_after_it(db: Database, request: pytest.FixtureRequest) -> None:
    exclusion = exclude_answers(NAME, EXCLUDED, "test", storage=storage_of(db))
    excluded = dump(db)
    request.getfixturevalue("newer_reader")
    reread_audit(NAME, storage=storage_of(db))
    undo_exclusion(NAME, exclusion.id, storage=storage_of(db))
    with pytest.raises(UsageError, match="are excluded now"):
        undo_reread(NAME, storage=storage_of(db))
    exclude_answers(NAME, EXCLUDED, "again", storage=storage_of(db))
    undo_reread(NAME, storage=storage_of(db))
    assert dump(db) == excluded
