"""Checkpoints of the graph: in an SQLite file next to the database, or in a separate schema on its server."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from auditor.errors import NotAllowedError, StorageError
from auditor.storage.database import Database
from auditor.storage.engine import server_connect_args
from auditor.storage.roles import GRAPH_SCHEMA
from auditor.storage.sqlite_file import WatchedFile, create_database_file

if TYPE_CHECKING:
    from psycopg import AsyncConnection

Checkpointer = BaseCheckpointSaver[Any]
HOW_TO_FIX_DISK = "Free space on the disk, then run the same command again. Recorded answers are kept."
HOW_TO_FIX_ROLE = "Ask the database's owner for the runner role (docs/team.md)."
HOW_TO_FIX_SERVER = "Correct the cause, then run the same command again. Recorded answers are kept."


@asynccontextmanager
async def open_checkpointer(db: Database) -> AsyncIterator[Checkpointer]:
    """Open the checkpointer that belongs to a database.

    It has its own file, since two writers on one SQLite file block each other. Checkpoints are read as plain data; one
    that names a Python type to construct is refused.

    Raises:
        StorageError: checkpoints cannot be read or written; recorded answers are not affected.
    """
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    async with (
        _sqlite_checkpointer(db.path, serde) if db.path is not None else _postgres_checkpointer(db, serde) as saver
    ):
        yield saver


@asynccontextmanager
async def _sqlite_checkpointer(database: Path, serde: JsonPlusSerializer) -> AsyncIterator[Checkpointer]:
    """Open the checkpointer `<database>.graph.db` next to an SQLite database."""
    path = database.with_name(f"{database.stem}.graph.db")
    create_database_file(path)
    try:
        async with aiosqlite.connect(path) as connection:
            saver = _WatchedSqliteSaver(connection, serde, WatchedFile(path))
            await saver.setup()
            yield saver
    except sqlite3.Error as error:
        raise StorageError(f"the checkpoints of {database} cannot be written: {error}.", HOW_TO_FIX_DISK) from error


class _WatchedSqliteSaver(AsyncSqliteSaver):
    """Raises after a write if the file was moved or deleted; SQLite would silently continue to write to it."""

    def __init__(self, connection: aiosqlite.Connection, serde: JsonPlusSerializer, watched_file: WatchedFile) -> None:
        """Set up the checkpointer; `watched_file` is the file that the connection writes to."""
        super().__init__(connection, serde=serde)
        self._watched_file = watched_file

    async def aput(self, *args: Any, **options: Any) -> RunnableConfig:
        """Save a checkpoint and return its config; raises if the file was moved or deleted."""
        config = await super().aput(*args, **options)
        self._watched_file.require_unmoved()
        return config

    async def aput_writes(self, *args: Any, **options: Any) -> None:
        """Save the writes of a node; raises if the file was moved or deleted."""
        await super().aput_writes(*args, **options)
        self._watched_file.require_unmoved()


@asynccontextmanager
async def _postgres_checkpointer(db: Database, serde: JsonPlusSerializer) -> AsyncIterator[Checkpointer]:
    """Open the checkpointer in the graph's schema on a PostgreSQL server."""
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg import AsyncConnection, Error, errors
    from psycopg.rows import dict_row

    try:
        # The options that langgraph's checkpointer requires of its connection.
        connect_args = server_connect_args(db.engine) | {
            "autocommit": True,
            "prepare_threshold": 0,
            "row_factory": dict_row,
        }
        async with await AsyncConnection.connect(**connect_args) as connection:
            saver = AsyncPostgresSaver(connection, serde=serde)
            await _create_tables_if_missing(connection, saver)
            yield saver
    except errors.InsufficientPrivilege as error:
        raise NotAllowedError(
            f"this user may not use the checkpoints in {db.url}: {error}.", HOW_TO_FIX_ROLE
        ) from error
    except Error as error:
        raise StorageError(f"the checkpoints in {db.url} cannot be used: {error}.", HOW_TO_FIX_SERVER) from error


async def _create_tables_if_missing(connection: AsyncConnection[Any], saver: Any) -> None:
    """Create the graph's tables if missing; with existing tables no permission to create any is needed."""
    await connection.execute(f"SELECT pg_advisory_lock(hashtext('{GRAPH_SCHEMA}'))")
    try:
        if not await _schema_exists(connection):
            await connection.execute(f"CREATE SCHEMA {GRAPH_SCHEMA}")
        await connection.execute(f"SET search_path TO {GRAPH_SCHEMA}")
        # The last revision is the index of the last migration.
        if await _checkpoint_revision(connection) < len(saver.MIGRATIONS) - 1:
            await saver.setup()
    finally:
        await connection.execute(f"SELECT pg_advisory_unlock(hashtext('{GRAPH_SCHEMA}'))")


async def _schema_exists(connection: AsyncConnection[Any]) -> bool:
    """Whether the graph's schema exists.

    Raises:
        NotAllowedError: it exists, but this user may not use it.
    """
    existence_query = f"SELECT to_regnamespace('{GRAPH_SCHEMA}') IS NOT NULL AS found"
    row = await (await connection.execute(existence_query)).fetchone()
    if row is None or not row["found"]:
        return False
    privilege_query = f"SELECT has_schema_privilege('{GRAPH_SCHEMA}', 'USAGE') AS found"
    row = await (await connection.execute(privilege_query)).fetchone()
    if row is None or not row["found"]:
        raise NotAllowedError(f"this user may not use the checkpoints in the schema {GRAPH_SCHEMA}.", HOW_TO_FIX_ROLE)
    return True


async def _checkpoint_revision(connection: AsyncConnection[Any]) -> int:
    """Revision of the checkpoint tables: the index of the last migration applied; -1 if there are no tables."""
    table_row = await (await connection.execute("SELECT to_regclass('checkpoint_migrations') AS name")).fetchone()
    if table_row is None or table_row["name"] is None:
        return -1
    row = await (await connection.execute("SELECT max(v) AS v FROM checkpoint_migrations")).fetchone()
    return -1 if row is None or row["v"] is None else int(row["v"])


async def create_checkpoint_tables(db: Database) -> None:
    """Create the graph's tables on a server, for users who may not create tables themselves."""
    async with open_checkpointer(db):
        pass
