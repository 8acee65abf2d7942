"""Schemas: tables and their policies; created and migrated, of older and newer versions, and of other programs."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, select, text

from auditor.domain import Cell, Outcome, Trace
from auditor.domain.records import CallKey, RowPolicy
from auditor.errors import StorageError
from auditor.probes.semantic.records import MoralAnswerRecord, MoralTranslation, MoralWording, PairVerdict
from auditor.storage import audit_archive, audits, costs, migrations, results, schema
from auditor.storage.call_records import NotedCall, StoredAttempt
from auditor.storage.database import open_database, upgrade_database
from auditor.storage.engine import make_engine, read_only_options
from auditor.storage.migrations import FIRST_REVISION, LAST_SQUASHED_REVISION, UPGRADING_COMMIT
from auditor.storage.records import save_records
from auditor.storage.row_classes import METADATA, table_of
from auditor.storage.schema import (
    REVISION,
    VERSION_TABLE_DEFINITION,
    SchemaState,
    list_record_classes,
    load_metadata,
    load_tables,
)
from tests.storage.test_database import CELL, save_sample_audit
from tests.support.known import known
from tests.support.postgres_server import Postgres

NEXT = f"{schema.SCHEMA_VERSION + 1:04}"
REVISION_FILE = f'''
"""A change that SQLite cannot make in place, to a table that others refer to."""
import os, signal
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "{NEXT}", "{REVISION}", None, None

def upgrade():
    with op.batch_alter_table("audit") as batch:
        batch.alter_column("stage", nullable=True)
        batch.add_column(sa.Column("owner", sa.String(), nullable=False, server_default="nobody"))
    op.create_table("mark", sa.Column("id", sa.Integer(), primary_key=True))
    DIES
    with op.batch_alter_table("trace") as batch:
        batch.drop_column("repair_key")
'''
UPGRADE = (
    "import sys\nfrom pathlib import Path\nfrom auditor.storage import schema\n"
    "schema.upgrade_schema(sys.argv[1], Path(sys.argv[2]), to=sys.argv[3], versions=(Path(sys.argv[4]),))\n"
)


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """A folder with a revision that follows the current one."""
    folder = tmp_path / "versions"
    folder.mkdir()
    (folder / "next.py").write_text(REVISION_FILE.replace("DIES", "pass"), encoding="utf-8")
    return folder


def save_audit_with_traces(url: str) -> None:
    with open_database(url) as db:
        audit = save_sample_audit(db)
        save_records(db, audit.id, [Trace("m", CELL, i, Outcome.OK, 0.5, f"text {i}", "k") for i in range(50)])


def path_of(storage: str) -> Path:
    return Path(storage.removeprefix("sqlite:///"))


def describe_schema(url: str) -> dict[str, object]:
    engine = make_engine(url)
    with engine.connect().execution_options(**read_only_options(engine)) as connection:
        inspector = inspect(connection)
        description_by_table: dict[str, object] = {}
        for name in sorted(inspector.get_table_names()):
            columns = [(c["name"], str(c["type"]), c["nullable"], c["default"]) for c in inspector.get_columns(name)]
            keys = sorted(map(str, inspector.get_foreign_keys(name)))
            primary_key = inspector.get_pk_constraint(name)["constrained_columns"]
            indexes = sorted(map(str, inspector.get_indexes(name)))
            constraints = sorted(map(str, inspector.get_unique_constraints(name)))
            description_by_table[name] = (columns, primary_key, keys, indexes, constraints)
    engine.dispose()
    return description_by_table


def test_created_tables_equal_migrated_ones(two_storages: list[str]) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    at_once, step_by_step = two_storages
    open_database(at_once).close()
    engine = make_engine(step_by_step)
    with engine.begin() as connection:
        migrations.upgrade(connection, "head")
        settings = {"version_table": schema.VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=settings)
        assert compare_metadata(context, schema.load_metadata()) == []
    engine.dispose()
    assert describe_schema(at_once) == describe_schema(step_by_step)
    assert len(describe_schema(at_once)) > 25
    open_database(step_by_step, create=False).close()


def test_revisions_are_numbered_as_the_schema() -> None:
    from alembic.script import ScriptDirectory

    with make_engine("sqlite://").connect() as connection:
        script = ScriptDirectory.from_config(migrations.alembic_config(connection))
    revisions = [revision.revision for revision in script.walk_revisions()]
    assert revisions == [f"{n:04}" for n in range(schema.SCHEMA_VERSION, int(LAST_SQUASHED_REVISION), -1)]


def set_revision(storage: str, revision: str) -> None:
    with open_database(storage, create=False) as db:
        db.write(lambda connection: connection.execute(VERSION_TABLE_DEFINITION.update().values(version_num=revision)))


def load_revision(storage: str) -> str | None:
    engine = make_engine(storage)
    revision = schema.detect_schema(engine).revision
    engine.dispose()
    return revision


@pytest.mark.parametrize("create", [True, False])
def test_a_file_at_the_last_revision_before_the_squash_gets_the_number_of_the_new_one(
    file_storage: str, tmp_path: Path, create: bool
) -> None:
    save_audit_with_traces(file_storage)
    set_revision(file_storage, LAST_SQUASHED_REVISION)
    with open_database(file_storage, create=create) as db:
        assert db.upgraded == (LAST_SQUASHED_REVISION, FIRST_REVISION, None)
        assert len(results.load_traces(db, audits.get_audit(db, "a").id)) == 50
    assert load_revision(file_storage) == REVISION
    assert not list(tmp_path.glob("*.bak*"))
    with open_database(file_storage, create=create) as db:
        assert db.upgraded is None


def test_a_server_at_the_last_revision_before_the_squash_is_open_to_all_and_numbered_by_its_owner(
    postgres: Postgres,
) -> None:
    url = postgres.schema()
    with open_database(url) as db:
        save_sample_audit(db)
    set_revision(url, LAST_SQUASHED_REVISION)
    for create in (True, False):
        with open_database(url, create=create) as db:
            assert db.upgraded is None
            assert audits.find_audit(db, "a") is not None
    assert load_revision(url) == LAST_SQUASHED_REVISION
    assert upgrade_database(url) == (LAST_SQUASHED_REVISION, FIRST_REVISION, None)
    assert load_revision(url) == REVISION
    assert upgrade_database(url) is None


def test_an_older_database_is_refused_with_the_commit_that_upgrades_it(storage: str) -> None:
    open_database(storage).close()
    set_revision(storage, "0022")
    for open_or_upgrade in (open_database, upgrade_database, lambda url: open_database(url, create=False)):
        with pytest.raises(StorageError, match=r"revision 0022.* cannot upgrade") as refused:
            open_or_upgrade(storage)
        assert f"pip install 'auditor @ git+ADDRESS@{UPGRADING_COMMIT}'" in refused.value.how_to_fix
        assert "auditor doctor --upgrade" in refused.value.how_to_fix
    assert load_revision(storage) == "0022"


def test_attempts_of_an_older_program_are_kept_and_cost_what_their_answer_cost(storage: str) -> None:
    open_database(storage).close()
    engine = make_engine(storage, foreign_keys=False)
    audit: dict[str, object] = {"name": "a", "survey": "{}", "stage": "done", "environment": "{}"}
    audit |= {"created_at": "1", "updated_at": "1"}
    call_columns: dict[str, object] = {"key": "k", "model": "m", "purpose": "direct", "outcome": "ok"}
    trace: dict[str, object] = {"audit_id": 1, "model": "m", "country": "c", "topic": "t", "sample": 0}
    trace |= {"outcome": "ok", "key": "k", "language": "en"}
    rows: list[tuple[str, dict[str, object]]] = [
        ("audit", audit),
        ("answer", call_columns | {"request": "{}", "created_at": "1", "cost_usd": 0.25, "prompt_tokens": 7}),
        *(("attempt", call_columns | {"number": n, "started_at": "1", "latency_s": 0.5}) for n in (1, 2)),
        ("trace", trace),
    ]
    with engine.begin() as connection:
        for table, row in rows:
            names, values = ", ".join(f'"{name}"' for name in row), ", ".join(f":{name}" for name in row)
            connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)
    engine.dispose()
    with open_database(storage, create=False) as db:
        with db.read() as connection:
            attempts = connection.execute(select(table_of(StoredAttempt))).mappings().all()
        details = [(a["number"], a["audit_id"], a["cost_usd"], a["estimated"]) for a in attempts]
        assert details == [(1, None, None, None), (2, None, None, None)]
        assert costs.sum_audit_cost(db, 1) == (0.25, 0)
        [call_count] = costs.count_calls(db, 1)
        sums = call_count.sums
        assert (sums.attempts, call_count.cost_usd, sums.prompt_tokens, sums.estimated_attempts) == (2, 0.25, 7, 0)


def test_an_upgrade_keeps_every_row_and_a_backup(file_storage: str, versions: Path) -> None:
    save_audit_with_traces(file_storage)
    path = path_of(file_storage)
    upgrade = known(schema.upgrade_schema(file_storage, path, to=NEXT, versions=(versions,)))
    assert upgrade.backup == path.with_name(f"{path.name}.bak-{REVISION}")
    assert (upgrade.from_revision, upgrade.to_revision) == (REVISION, NEXT)
    assert schema.upgrade_schema(file_storage, path, to=NEXT, versions=(versions,)) is None
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name, owner FROM audit").fetchall() == [("a", "nobody")]
        assert connection.execute("SELECT count(*), count(DISTINCT text) FROM trace").fetchone() == (50, 50)
        assert connection.execute("SELECT count(*) FROM survey_cell").fetchone() == (2,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert "repair_key" not in {row[1] for row in connection.execute("PRAGMA table_info(trace)")}
    with pytest.raises(StorageError, match="newer version"):
        open_database(file_storage)
    with open_database(f"sqlite:///{upgrade.backup}", create=False) as copy:
        assert len(results.load_traces(copy, audits.get_audit(copy, "a").id)) == 50


def test_an_upgrade_killed_midway_changes_nothing(file_storage: str, versions: Path) -> None:
    save_audit_with_traces(file_storage)
    before = describe_schema(file_storage)
    file = versions / "next.py"
    file.write_text(REVISION_FILE.replace("DIES", "os.kill(os.getpid(), signal.SIGKILL)"), encoding="utf-8")
    command = [sys.executable, "-c", UPGRADE, file_storage, str(path_of(file_storage)), NEXT, str(versions)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert describe_schema(file_storage) == before
    with open_database(file_storage, create=False) as db:
        assert len(results.load_traces(db, audits.get_audit(db, "a").id)) == 50
    file.write_text(REVISION_FILE.replace("DIES", "pass"), encoding="utf-8")
    upgrade = known(schema.upgrade_schema(file_storage, path_of(file_storage), to=NEXT, versions=(versions,)))
    assert upgrade.backup is not None
    assert upgrade.backup.name.endswith(f".bak-{REVISION}-2")  # the first backup is kept
    assert "mark" in describe_schema(file_storage)


def test_an_upgrade_that_would_break_references_is_undone(file_storage: str, versions: Path) -> None:
    save_audit_with_traces(file_storage)
    before = describe_schema(file_storage)
    text = REVISION_FILE.replace("DIES", 'op.execute("DELETE FROM audit")')
    (versions / "next.py").write_text(text, encoding="utf-8")
    with pytest.raises(StorageError, match="'audit' that do not exist"):
        schema.upgrade_schema(file_storage, path_of(file_storage), to=NEXT, versions=(versions,))
    assert describe_schema(file_storage) == before


def test_a_writer_upgrades_and_a_reader_explains_how(file_storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(file_storage) as db:
        save_sample_audit(db)
    upgraded_to: list[str] = []

    def add_table(connection: Connection, to: str, versions: tuple[Path, ...]) -> None:
        upgraded_to.append(to)
        connection.execute(VERSION_TABLE_DEFINITION.update().values(version_num=to))

    monkeypatch.setattr(schema, "REVISION", NEXT)
    monkeypatch.setattr(migrations, "upgrade", add_table)
    monkeypatch.setattr(schema.upgrade_schema, "__kwdefaults__", {"to": NEXT, "versions": ()})
    with pytest.raises(StorageError, match="older version of auditor") as refused:
        open_database(file_storage, create=False)
    assert refused.value.how_to_fix.endswith(f"auditor doctor --upgrade --storage {file_storage}")
    with open_database(file_storage) as db:
        assert f"from revision {REVISION} to {NEXT}" in str(db.upgraded)
        assert audits.find_audit(db, "a") is not None
    with open_database(file_storage) as db:
        assert db.upgraded is None
    assert upgraded_to == [NEXT]
    assert upgrade_database(file_storage) is None


def test_databases_of_other_programs_are_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "foreign")) as connection:
        connection.execute("CREATE TABLE pets (name TEXT)")
    for open_or_upgrade in (open_database, upgrade_database):
        with pytest.raises(StorageError, match="not created by auditor"):
            open_or_upgrade(f"sqlite:///{tmp_path / 'foreign'}")
    (tmp_path / "empty").touch()
    with pytest.raises(StorageError, match="contains no audits yet"):
        open_database(f"sqlite:///{tmp_path / 'empty'}", create=False)


def test_concurrent_opens_create_one_database(storage: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        for opened in pool.map(lambda _: open_database(storage), range(4)):
            opened.close()
    engine = make_engine(storage)
    assert schema.detect_schema(engine) == (SchemaState.CURRENT, REVISION)
    engine.dispose()


def test_opening_today_s_database_loads_neither_alembic_nor_the_orm(file_storage: str) -> None:
    """The ORM and the classes of all rows took a third of the time of a short command; no query needs them."""
    with open_database(file_storage) as db:
        audit = save_sample_audit(db)
        save_records(db, audit.id, [Trace("m", Cell("NO", "x"), 0, Outcome.OK, 0.5, "t", "k")])
        with db.read() as connection:
            assert connection.execute(select(table_of(Trace).c.text)).scalars().all() == ["t"]
    program = (
        "import sys\nfrom auditor.storage.database import open_database\nopen_database(sys.argv[1]).close()\n"
        "print({'alembic', 'mako', 'psycopg', 'sqlmodel', 'sqlalchemy.orm'} & sys.modules.keys())"
    )
    command = [sys.executable, "-c", program, file_storage]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "set()\n"


CALLS_RECORDED_APART = {NotedCall, MoralAnswerRecord, MoralTranslation, MoralWording, PairVerdict}
"""Tables of the probe `semantic`, which stores its calls by `costs.record_calls`."""


def test_every_table_is_append_only_mutable_or_derived() -> None:
    names = [table_of(record_class).name for policy in RowPolicy for record_class in list_record_classes(policy)]
    assert sorted(names) == sorted(load_tables()) == sorted(load_metadata().tables)
    assert load_metadata() is METADATA


def test_derived_tables_belong_to_an_audit() -> None:
    assert all("audit_id" in table_of(record_class).c for record_class in list_record_classes(RowPolicy.DERIVED))


def test_every_key_of_a_call_counts_towards_the_cost() -> None:
    recorded_apart = {table_of(record_class) for record_class in CALLS_RECORDED_APART}
    tables = set(map(table_of, list_record_classes(RowPolicy.DERIVED))) - recorded_apart
    keys = {column for table in tables for column in table.c if audit_archive.is_call_key(column.name)}
    references = {column: column.info[CallKey] for table in tables for column in table.c if column.info}
    assert references.keys() == keys
    assert len(keys) == 22
    assert all(reference.name_column in key.table.c for key, reference in references.items())
