"""Tables of every age: today's by two ways, an older program's, a newer one's, and those of somebody else."""

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

from auditor.domain import Cell, Outcome, Trace, canonical_hash
from auditor.errors import StorageError
from auditor.storage import audits, costs, hash_chain, migrations, results, schema, tables
from auditor.storage.database import Database, open_database, table_of, upgrade_database
from auditor.storage.engine import make_engine, read_only_options
from auditor.storage.schema import VERSION_TABLE_DEFINITION, SchemaState
from auditor.storage.tables import REVISION, AttemptRow, TraceRow
from tests.storage.test_database import CELL, make

NEXT = f"{tables.SCHEMA_VERSION + 1:04}"
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
    op.create_table("label", sa.Column("id", sa.Integer(), primary_key=True))
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
    """A folder with the revision after today's."""
    folder = tmp_path / "versions"
    folder.mkdir()
    (folder / "next.py").write_text(REVISION_FILE.replace("DIES", "pass"), encoding="utf-8")
    return folder


def fill(db: Database) -> None:
    audit = make(db)
    results.save_traces(db, audit.id, [Trace("m", CELL, i, Outcome.OK, 0.5, f"text {i}", "k") for i in range(50)])


def path_of(storage: str) -> Path:
    return Path(storage.removeprefix("sqlite:///"))


def described(url: str) -> dict[str, object]:
    """Columns, keys and indexes of every table."""
    engine = make_engine(url)
    with engine.connect().execution_options(**read_only_options(engine)) as connection:
        found = inspect(connection)
        told: dict[str, object] = {}
        for name in sorted(found.get_table_names()):
            columns = [(c["name"], str(c["type"]), c["nullable"], c["default"]) for c in found.get_columns(name)]
            keys = sorted(map(str, found.get_foreign_keys(name)))
            more = [sorted(map(str, part)) for part in (found.get_indexes(name), found.get_unique_constraints(name))]
            told[name] = (columns, found.get_pk_constraint(name)["constrained_columns"], keys, more)
    engine.dispose()
    return told


def test_tables_made_at_once_are_those_made_revision_by_revision(fresh: list[str]) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlmodel import SQLModel

    at_once, step_by_step = fresh
    open_database(at_once).close()
    engine = make_engine(step_by_step)
    with engine.begin() as connection:
        migrations.upgrade(connection, "head")
        settings = {"version_table": tables.VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=settings)
        assert compare_metadata(context, SQLModel.metadata) == []
    engine.dispose()
    assert described(at_once) == described(step_by_step)
    assert len(described(at_once)) > 25
    open_database(step_by_step, create=False).close()


def test_revisions_are_numbered_as_the_schema() -> None:
    from alembic.script import ScriptDirectory

    with make_engine("sqlite://").connect() as connection:
        script = ScriptDirectory.from_config(migrations.alembic_config(connection))
    found = [revision.revision for revision in script.walk_revisions()]
    assert found == [f"{n:04}" for n in range(tables.SCHEMA_VERSION, 0, -1)]


def test_a_database_of_the_first_release_becomes_todays_with_all_that_is_in_it(fresh: list[str]) -> None:
    old, new = fresh
    open_database(new).close()
    engine = make_engine(old, foreign_keys=False)
    written = {"key": "k", "model": "m", "purpose": "direct", "outcome": "ok", "created_at": "1"}
    link = {"kind": "answer", "row": "k", "digest": canonical_hash([hash_chain.START_DIGEST, "answer", written])}
    audit = {"name": "a", "survey": "{}", "stage": "done", "created_at": "1", "updated_at": "1", "environment": "{}"}
    with engine.begin() as connection:
        migrations.upgrade(connection, "0001")
        for table, row in (("audit", audit), ("answer", written), ("link", link)):
            names, values = ", ".join(f'"{name}"' for name in row), ", ".join(f":{name}" for name in row)
            connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)
    engine.dispose()
    done = upgrade_database(old)
    assert done is not None
    assert (done.from_revision, done.to_revision, done.backup is None) == (
        "0001",
        REVISION,
        old.startswith("postgresql"),
    )
    assert described(old) == described(new)
    with open_database(old, create=False) as db:
        assert [a.name for a in audits.load_audits(db)] == ["a"]
        assert hash_chain.verify_chain(db) == (1, link["digest"], [])


def test_attempts_of_an_older_program_are_kept_and_cost_what_their_answer_cost(fresh: list[str]) -> None:
    storage, _ = fresh
    engine = make_engine(storage, foreign_keys=False)
    audit: dict[str, object] = {"name": "a", "survey": "{}", "stage": "done", "environment": "{}"}
    audit |= {"created_at": "1", "updated_at": "1"}
    told: dict[str, object] = {"key": "k", "model": "m", "purpose": "direct", "outcome": "ok"}
    trace: dict[str, object] = {"audit_id": 1, "model": "m", "country": "c", "topic": "t", "sample": 0}
    trace |= {"outcome": "ok", "key": "k", "language": "en"}
    rows: list[tuple[str, dict[str, object]]] = [
        ("audit", audit),
        ("answer", told | {"request": "{}", "created_at": "1", "cost_usd": 0.25, "prompt_tokens": 7}),
        *(("attempt", told | {"number": n, "started_at": "1", "latency_s": 0.5}) for n in (1, 2)),
        ("trace", trace),
    ]
    with engine.begin() as connection:
        migrations.upgrade(connection, "0005")
        for table, row in rows:
            names, values = ", ".join(f'"{name}"' for name in row), ", ".join(f":{name}" for name in row)
            connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)
    engine.dispose()
    upgrade_database(storage)
    with open_database(storage, create=False) as db:
        with db.read() as connection:
            kept = connection.execute(select(table_of(AttemptRow))).mappings().all()
        assert [(a["number"], a["audit_id"], a["cost_usd"], a["estimated"]) for a in kept] == [
            (1, None, None, None),
            (2, None, None, None),
        ]
        assert costs.sum_audit_cost(db, 1) == (0.25, 0)
        [tally] = costs.count_calls(db, 1)
        assert (tally.attempts, tally.cost_usd, tally.prompt_tokens, tally.estimated_attempts) == (2, 0.25, 7, 0)


def test_an_upgrade_keeps_every_row_and_a_copy_of_what_was(file_storage: str, versions: Path) -> None:
    with open_database(file_storage) as db:
        fill(db)
    path = path_of(file_storage)
    done = schema.upgrade_schema(file_storage, path, to=NEXT, versions=(versions,))
    assert done is not None
    assert done.backup == path.with_name(f"{path.name}.bak-{REVISION}")
    assert (done.from_revision, done.to_revision) == (REVISION, NEXT)
    assert schema.upgrade_schema(file_storage, path, to=NEXT, versions=(versions,)) is None
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name, owner FROM audit").fetchall() == [("a", "nobody")]
        assert connection.execute("SELECT count(*), count(DISTINCT text) FROM trace").fetchone() == (50, 50)
        assert connection.execute("SELECT count(*) FROM survey_cell").fetchone() == (2,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert "repair_key" not in {row[1] for row in connection.execute("PRAGMA table_info(trace)")}
    with pytest.raises(StorageError, match="newer version"):
        open_database(file_storage)
    with open_database(f"sqlite:///{done.backup}", create=False) as copy:
        assert len(results.load_traces(copy, audits.get_audit(copy, "a").id)) == 50


def test_killed_in_the_middle_of_an_upgrade_it_is_as_it_was(file_storage: str, versions: Path) -> None:
    with open_database(file_storage) as db:
        fill(db)
    before = described(file_storage)
    file = versions / "next.py"
    file.write_text(REVISION_FILE.replace("DIES", "os.kill(os.getpid(), signal.SIGKILL)"), encoding="utf-8")
    words = [sys.executable, "-c", UPGRADE, file_storage, str(path_of(file_storage)), NEXT, str(versions)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert described(file_storage) == before
    with open_database(file_storage, create=False) as db:
        assert len(results.load_traces(db, audits.get_audit(db, "a").id)) == 50
    file.write_text(REVISION_FILE.replace("DIES", "pass"), encoding="utf-8")
    done = schema.upgrade_schema(file_storage, path_of(file_storage), to=NEXT, versions=(versions,))
    assert done is not None
    assert done.backup is not None
    assert done.backup.name.endswith(f".bak-{REVISION}-2")  # the first copy is left alone
    assert "label" in described(file_storage)


def test_an_upgrade_that_would_break_references_is_undone(file_storage: str, versions: Path) -> None:
    with open_database(file_storage) as db:
        fill(db)
    before = described(file_storage)
    text = REVISION_FILE.replace("DIES", 'op.execute("DELETE FROM audit")')
    (versions / "next.py").write_text(text, encoding="utf-8")
    with pytest.raises(StorageError, match="'audit' that are not there"):
        schema.upgrade_schema(file_storage, path_of(file_storage), to=NEXT, versions=(versions,))
    assert described(file_storage) == before


def test_a_writer_upgrades_and_a_reader_says_how(file_storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(file_storage) as db:
        make(db)
    asked: list[str] = []

    def add_table(connection: Connection, to: str, versions: tuple[Path, ...]) -> None:
        asked.append(to)
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
    assert asked == [NEXT]
    assert upgrade_database(file_storage) is None


def test_what_is_not_ours_is_named(tmp_path: Path) -> None:
    for name, ddl, told in (
        ("foreign", "CREATE TABLE pets (name TEXT)", "not one of auditor's"),
        ("unreleased", "CREATE TABLE meta (a); CREATE TABLE audit (a); CREATE TABLE answer (a)", "before the first"),
    ):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            connection.executescript(ddl)
        for refusing in (open_database, upgrade_database):
            with pytest.raises(StorageError, match=told):
                refusing(f"sqlite:///{tmp_path / name}")
    (tmp_path / "empty").touch()
    with pytest.raises(StorageError, match="holds no audits yet"):
        open_database(f"sqlite:///{tmp_path / 'empty'}", create=False)


def test_who_comes_at_once_makes_one_database(storage: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        for opened in pool.map(lambda _: open_database(storage), range(4)):
            opened.close()
    engine = make_engine(storage)
    assert schema.detect_schema(engine) == (SchemaState.CURRENT, REVISION)
    engine.dispose()


def test_opening_today_s_database_loads_no_alembic(file_storage: str) -> None:
    with open_database(file_storage) as db:
        audit = make(db)
        results.save_traces(db, audit.id, [Trace("m", Cell("NO", "x"), 0, Outcome.OK, 0.5, "t", "k")])
        with db.read() as connection:
            assert connection.execute(select(table_of(TraceRow).c.text)).scalars().all() == ["t"]
    program = (
        "import sys\nfrom auditor.storage.database import open_database\nopen_database(sys.argv[1]).close()\n"
        "print([n for n in sys.modules if n.split('.')[0] in ('alembic', 'mako', 'psycopg')])"
    )
    done = subprocess.run([sys.executable, "-c", program, file_storage], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
