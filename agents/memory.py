"""Where the graph remembers its stage: a file of its own beside the database, never the results' own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


@asynccontextmanager
async def checkpointer(database: Path | None) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """A checkpointer beside a database file, or in memory where the database is a server.

    Two writers on one SQLite file ask for trouble, so it has a file of its own. A checkpoint is read as plain data:
    one that names a type to be made is refused.
    """
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    if database is None:
        yield InMemorySaver(serde=serde)
        return
    async with aiosqlite.connect(database.with_name(f"{database.stem}.graph.db")) as connection:
        saver = AsyncSqliteSaver(connection, serde=serde)
        await saver.setup()
        yield saver
