"""Databases for these tests: a test of `storage` or `two_storages` runs on SQLite and on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.storage.database import Database, open_database
from tests.support.postgres_server import Postgres

ENGINES = ("sqlite", "postgres")


@pytest.fixture(params=ENGINES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database that has no tables yet."""
    return new_database(request, tmp_path / "audits.db")


@pytest.fixture(scope="module", params=ENGINES)
def shared_db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database of all tests of a module, in which each finds what the others have left."""
    with open_database(new_database(request, tmp_path_factory.mktemp("shared") / "audits.db")) as database:
        yield database


@pytest.fixture(params=ENGINES)
def two_storages(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """URLs of two databases that have no tables yet."""
    return [new_database(request, tmp_path / name) for name in ("one.db", "two.db")]


@pytest.fixture
def file_storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'audits.db'}"


def new_database(request: pytest.FixtureRequest, path: Path) -> str:
    """The URL of a new database of the engine that the fixture's parameter names."""
    if request.param == "sqlite":
        return f"sqlite:///{path}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.schema()
