"""PostgreSQL roles: each may do its own work and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from auditor.domain import Decision, Outcome, Rating, Trace
from auditor.domain.labels import LabelKind
from auditor.errors import EmptyStorageError, NotAllowedError
from auditor.reports.data.audit_status import load_audit_status
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession
from auditor.run import resume_after_review
from auditor.storage import audits, hash_chain, review_queue
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database, open_database, run_lock, upgrade_database
from auditor.storage.records import save_records
from auditor.storage.roles import build_roles_sql
from tests.storage.test_database import CELL, SURVEY
from tests.storage.test_engine import record_answer
from tests.support.postgres_server import PASSWORD, Postgres
from tests.support.review_audit import save_review_audit
from tests.support.stored_rows import add_rating, decide

PEOPLE = {"ro": "auditor_reader", "ada": "auditor_reviewer", "robot": "auditor_runner"}


@pytest.fixture(scope="module")
def team(postgres: Postgres) -> Iterator[Callable[[str], Database]]:
    """A function that opens the shared database as one of three people, each with one role."""
    name = postgres.database()
    with pytest.raises(EmptyStorageError):
        open_database(postgres.url(name), create=False)
    assert upgrade_database(postgres.url(name)) is None  # creates the tables
    with open_database(postgres.url(name)) as db:
        save_review_audit(db, conflicts=4)
    with postgres.connect(name) as connection:
        for _ in range(2):  # the SQL is run again after each upgrade
            connection.execute(build_roles_sql())
        for person, role in PEOPLE.items():
            connection.execute(f"CREATE ROLE {person} LOGIN PASSWORD '{PASSWORD}' IN ROLE {role}")
    opened: list[Database] = []

    def as_person(person: str) -> Database:
        opened.append(open_database(postgres.url(name, person), create=False))
        return opened[-1]

    yield as_person
    for db in opened:
        db.close()


def decide_one(db: Database) -> None:
    audit = audits.get_audit(db, "moral")
    key, _ = review_queue.ConflictQueue(db, audit.id, "ada").keys(QueueFilter())[0]
    decide(db, audit, key, Decision.LEFT)


def label(db: Database) -> None:
    audit = audits.get_audit(db, "moral")
    draw_label_sample(db, audit, LabelKind.TRACE, 10)
    session = LabellingSession(db, audit, "ada")
    session.save(session.sample[0].unit, "VALID")
    session.undo()


def run_audit_steps(db: Database) -> None:
    with run_lock(db, "theirs"):
        record_answer(db)
        audit = audits.save_audit(db, name="theirs", config="{}", config_hash="h", survey=SURVEY, environment={})
        save_records(db, audit.id, [Trace("m", CELL, 0, Outcome.OK, 0.5, "t", "k")])
        audits.save_audit(db, name="theirs", config="{}", config_hash="h2", survey=SURVEY, environment={})
        audits.set_stage(db, audit.id, "elicit")


def import_rating(db: Database) -> None:
    decided = Rating(CELL, "a", "b", 0.1, 0.9, "robot", Decision.LEFT, datetime.now(UTC))
    add_rating(db, audits.get_audit(db, "moral").id, decided)


def execute_statement(statement: str) -> Callable[[Database], Any]:
    return lambda db: db.write(lambda connection: connection.execute(text(statement)))


Action = Callable[[Database], None]
FORBIDDEN_TO_ALL = [
    execute_statement("UPDATE rating SET decision = 'right'"), execute_statement("UPDATE label SET value = 'VALID'"),
    execute_statement("DELETE FROM sampled_unit"), execute_statement("DELETE FROM link"),
    execute_statement("UPDATE answer SET text = 'other'"), execute_statement("DELETE FROM attempt"),
    execute_statement("DELETE FROM audit"), execute_statement("UPDATE auditor_version SET version_num = '9999'"),
    execute_statement("DROP TABLE trace"), execute_statement("CREATE TABLE own (a int)"),
    execute_statement("TRUNCATE verdict"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("person", "allowed", "forbidden"),
    [
        ("ro", [], [decide_one, label, record_answer, run_audit_steps, import_rating]),
        ("ada", [decide_one, label], [record_answer, run_audit_steps]),
        ("robot", [record_answer, run_audit_steps], [decide_one, label, import_rating]),
    ],
)
def test_each_role_may_do_its_work_and_no_more(
    team: Callable[[str], Database], person: str, allowed: list[Action], forbidden: list[Action]
) -> None:
    db = team(person)
    for action in allowed:
        action(db)
    for action in [*forbidden, *FORBIDDEN_TO_ALL]:
        with pytest.raises(NotAllowedError) as refused:
            action(db)
        assert "docs/team.md" in refused.value.how_to_fix
    assert audits.load_audits(db)[0].name == "moral"
    assert hash_chain.verify_chain(db).breaks == []


def test_a_reviewer_settles_the_last_conflict_and_a_runner_ends_the_audit(
    postgres: Postgres, team: Callable[[str], Database]
) -> None:
    def stage_and_open_count() -> tuple[str, int]:
        return audits.get_audit(ada, "moral").stage, load_audit_status(ada, audits.get_audit(ada, "moral"))["open"]

    ada, robot = team("ada"), team("robot")
    audit = audits.get_audit(ada, "moral")
    audits.set_stage(robot, audit.id, audits.AWAITING_HUMAN)
    for key, _ in review_queue.ConflictQueue(ada, audit.id, "ada").keys(QueueFilter()):
        decide(ada, audit, key, Decision.LEFT)
    url = ada.engine.url.render_as_string(hide_password=False)
    assert resume_after_review("moral", storage=url) == 0
    # Saved without an error: a reviewer may not finish an audit.
    assert stage_and_open_count() == (audits.AWAITING_HUMAN, 0)
    assert resume_after_review("moral", storage=robot.engine.url.render_as_string(hide_password=False)) == 0
    assert stage_and_open_count() == (audits.FINISHED, 0)
