"""A team on one Postgres server: a killed run resumes during reviews, with the results of an SQLite file."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from auditor.domain import RatingAction, canonical_json
from auditor.errors import StorageError
from auditor.exports.tables import export_tables
from auditor.reports.data.verification import verify_audit
from auditor.run import open_audit, run_audit
from auditor.storage import audits, hash_chain, rating_log, review_queue
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database, open_database, run_lock, upgrade_database
from auditor.storage.roles import build_roles_sql
from auditor.storage.schema import load_metadata
from tests.e2e.test_killed import small, without_times
from tests.e2e.test_run import stored
from tests.storage.test_rating_log import continue_deciding, start_deciding_process
from tests.support.fake_server import FakeServer
from tests.support.killed_runs import run_until
from tests.support.postgres_server import PASSWORD, Postgres
from tests.support.review_audit import save_review_audit

RATERS = ("ada", "grace")
DECISIONS = 100


def report(storage: str) -> str:
    """The audit's report as canonical JSON, without times, costs and failed requests: restarts cost extra calls."""
    timeless_report = json.loads(without_times(open_audit("scripted", storage=storage).report()))
    del timeless_report["cost"], timeless_report["failures"]
    return canonical_json(timeless_report)


@pytest.fixture
def team(postgres: Postgres) -> tuple[str, str]:
    """A Postgres database with an audit to review; returns the URLs of the runner's and the reviewer's roles."""
    name = postgres.database()
    upgrade_database(postgres.url(name))
    with open_database(postgres.url(name)) as db:
        save_review_audit(db)
    with postgres.connect(name) as connection:
        connection.execute(build_roles_sql())
        for person, role in (("running", "auditor_runner"), ("reviewing", "auditor_reviewer")):
            connection.execute(f"CREATE ROLE {person} LOGIN PASSWORD '{PASSWORD}' IN ROLE {role}")
    return postgres.url(name, "running"), postgres.url(name, "reviewing")


@pytest.fixture
def reviewers(team: tuple[str, str]) -> Iterator[list[tuple[subprocess.Popen[str], Iterator[str]]]]:
    """Two processes that are ready to record ratings of one rater each, with the lines that they print."""
    started = [start_deciding_process(team[1], rater) for rater in RATERS]
    yield started
    for process, _ in started:
        process.kill()
        process.communicate()


def test_a_killed_run_resumes_while_others_review(
    server: FakeServer,
    team: tuple[str, str],
    reviewers: list[tuple[subprocess.Popen[str], Iterator[str]]],
    tmp_path: Path,
) -> None:
    url, _ = team
    local_storage = f"sqlite:///{tmp_path / 'audits.db'}"
    run_audit(small(server), storage=local_storage)
    for process, output_lines in reviewers:
        assert next(output_lines) == "ready\n"
        continue_deciding(process)
    assert run_until(small(server), url, "after_response:20")[0] == -9
    for process, _ in reviewers:
        continue_deciding(process)
    run_audit(small(server), storage=url)

    for _, output_lines in reviewers:
        assert len(list(output_lines)) == DECISIONS
    assert stored(url) == stored(local_storage)
    assert report(url) == report(local_storage)
    with open_database(url) as db:
        assert verify_audit(db, "scripted").is_consistent
        decided = {
            rater: rating_log.load_entries(db, audits.get_audit(db, "moral").id, rater=rater) for rater in RATERS
        }
        assert {rater: len(rows) for rater, rows in decided.items()} == dict.fromkeys(RATERS, DECISIONS)
        assert audits.get_audit(db, "scripted").stage == audits.AWAITING_HUMAN
        with run_lock(db, "scripted"), pytest.raises(StorageError, match="is already being run by process") as refused:
            run_audit(small(server), storage=url)
        assert PASSWORD not in str(refused.value)
        for table in load_metadata().sorted_tables:
            with db.read() as connection:
                assert PASSWORD not in str(connection.execute(select(table)).all()), table.name


def copy_rows(old: Database, new: Database) -> None:
    """Copy all rows of one database into the empty tables of another."""
    for table in load_metadata().sorted_tables:
        with old.read() as connection:
            rows = [dict(row) for row in connection.execute(select(table)).mappings()]
        if rows:
            new.write(lambda c, table=table, rows=rows: c.execute(insert(table), rows))  # type: ignore[misc]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_sqlite_and_postgres_export_the_same_bytes(form: Any, postgres: Postgres, tmp_path: Path) -> None:
    hashes, chains_and_queues = [], []
    with open_database(f"sqlite:///{tmp_path / 'audits.db'}") as old, open_database(postgres.schema()) as new:
        audit = save_review_audit(old, name="moral", topics=("divorce", "Éclat", "abortion", "_x", "Zölibat"))
        keys = [key for key, _ in review_queue.ConflictQueue(old, audit.id, "ada").keys(QueueFilter())]
        for key in keys[:5]:
            rating_log.append_rating(
                old, audit.id, key, "ada", rating_log.RatingChange(RatingAction.DECIDE, note="ß 😀")
            )
        copy_rows(old, new)
        for number, db in enumerate((old, new)):
            export = export_tables(db, audit.name, tmp_path / str(number), form)
            assert export.row_counts["rating"] == 5
            files = sorted((tmp_path / str(number)).iterdir())
            hashes.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files})
            keys = [key for key, _ in review_queue.ConflictQueue(db, audit.id, "ada").keys(QueueFilter())]
            chains_and_queues.append((hash_chain.verify_chain(db), keys))
    assert hashes[0] == hashes[1]
    assert chains_and_queues[0] == chains_and_queues[1]
    assert chains_and_queues[0][0].n_by_kind["rating"] == 5
