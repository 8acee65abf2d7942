"""Fixtures of all tests: no API keys, no user config, and a separate database for each test."""

from __future__ import annotations

import functools
import gc
import importlib.metadata
import json
import os
import shutil
import tempfile
import traceback

os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers share the cores already: their threads would spin while waiting

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import sqlalchemy as sa
from filelock import FileLock
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from auditor.__main__ import UNEXPECTED_ERROR_PREFIX, unhandled_errors
from auditor.redaction import Redactor
from auditor.storage.database import Database, open_database
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.cli_runner import CommandOutput, auditor
from tests.support.fake_server import FakeServer
from tests.support.inspect_logs import inspect_logs, made_audit  # noqa: F401 - fixtures
from tests.support.postgres_server import Postgres, running_or_skip

if TYPE_CHECKING:
    from auditor.reports.data.report_schema import Report

MEMORY, MIN_FREE_BYTES = "/dev/shm", 4 << 30
if (  # temporary files in memory, where a database is created in half of the time, if it has room and runs programs
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > MIN_FREE_BYTES
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
):
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY
KEY_SUFFIXES = ("_API_KEY", "_BASE_URL", "_API_BASE", "_TOKEN")

# The time an example takes depends on the machine, so there is no deadline.
hypothesis.settings.register_profile("auditor", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("auditor")


importlib.metadata.version = functools.cache(importlib.metadata.version)
"""Each run of an audit records versions of packages, which are parsed from files each time."""

COMPILED_STATEMENTS: LRUCache[object, object] = LRUCache(2_000)
setattr(SQLiteDialect_pysqlite, "__hash__", lambda dialect: hash(type(dialect)))  # noqa: B010 - mypy
setattr(SQLiteDialect_pysqlite, "__eq__", lambda dialect, other: type(dialect) is type(other))  # noqa: B010 - mypy


@sa.event.listens_for(sa.Engine, "engine_connect")
def share_compiled_statements(connection: sa.Connection) -> None:
    """Compile a statement once for all SQLite databases, not once for each: it took an eighth of a small run's time."""
    if isinstance(connection.dialect, SQLiteDialect_pysqlite):
        connection.execution_options(compiled_cache=COMPILED_STATEMENTS)


def pytest_collection_finish() -> None:
    """Exclude imported objects from garbage collection and make it rare: it took a fifth of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


def list_secrets() -> list[str]:
    """Names of the developer's keys and settings in the environment."""
    return [name for name in os.environ if name.endswith(KEY_SUFFIXES) or name == "AUDITOR_STORAGE" or name[:2] == "PG"]


@pytest.fixture(scope="session", autouse=True)
def scripted_models() -> Iterator[None]:
    """Set the key of scripted models and trust their servers with it; these need no time before another try.

    For the session, and so for fixtures that outlive a test, too; the developer's own keys and settings are removed.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in list_secrets():
            patch.delenv(name)
        patch.setenv(KEY_VARIABLE, KEY)
        patch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
        patch.setattr("auditor.models.retries.INITIAL_BACKOFF_S", 0.01)
        yield


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the keys and settings from the environment that other tests have set, and forget what was redacted."""
    for name in list_secrets():
        monkeypatch.delenv(name)
    monkeypatch.setattr("auditor.redaction._redactor", Redactor(()))


@pytest.fixture
def unexpected_errors() -> Iterator[list[BaseException]]:
    """Errors that the handler of unexpected errors reported; a test that uses this fixture does not fail for them."""
    unhandled_errors.clear()
    yield unhandled_errors
    unhandled_errors.clear()


@pytest.fixture(autouse=True)
def no_unexpected_error(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail every test in which a command raised an unexpected error."""
    yield
    if "unexpected_errors" in request.fixturenames or not unhandled_errors:
        return
    error = unhandled_errors[0]
    unhandled_errors.clear()
    pytest.fail(f"{UNEXPECTED_ERROR_PREFIX}: {''.join(traceback.format_exception(error))}")


@pytest.fixture(scope="session")
def whole_report(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    """A function that returns the report of a kind of `WHOLE_REPORTS`, which is built once; reports are read-only."""
    from tests.support.whole_reports import WHOLE_REPORTS  # loads the program

    return cache(lambda kind: WHOLE_REPORTS[kind](tmp_path_factory.mktemp("report")))


@pytest.fixture(scope="session")
def worked_example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CommandOutput]:
    """A folder after `auditor demo`, without keys or models of this machine, and what it printed: for reading only.

    It takes ten seconds, and is run once for all workers of pytest-xdist.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "worked-example"
    record = folder.with_suffix(".json")
    with FileLock(folder.with_suffix(".lock")):
        if not record.exists():
            folder.mkdir(exist_ok=True)
            record.write_text(json.dumps(asdict(auditor("demo", cwd=folder, COLUMNS="200", HF_HUB_OFFLINE="1"))))
    return folder, CommandOutput(**json.loads(record.read_text()))


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A scripted server on a loopback port."""
    with FakeServer() as running:
        yield running


@pytest.fixture
def storage(tmp_path: Path) -> str:
    """URL of a database that does not exist yet."""
    return f"sqlite:///{tmp_path / 'audits.db'}"


@pytest.fixture
def db(storage: str) -> Iterator[Database]:
    """An empty database."""
    with open_database(storage) as database:
        yield database


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server; the test is skipped with the reason if none can be started."""
    with running_or_skip() as server:
        yield server
