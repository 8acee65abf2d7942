"""What alembic runs, on the connection that it is given; see `auditor.storage.migrations`."""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy import Connection, String, Text
from sqlmodel import SQLModel

from auditor.storage import tables


def render_type(kind: str, schema_item: Any, _: AutogenContext) -> str | Literal[False]:
    """Texts by their names in script.py.mako: on a server they are compared byte by byte, as in SQLite."""
    if kind != "type" or not isinstance(schema_item, String):
        return False
    return "LONG" if isinstance(schema_item, Text) else "WORDS"


def run_migrations(connection: Connection) -> None:
    """Run what alembic was asked for."""
    context.configure(
        connection=connection,
        target_metadata=SQLModel.metadata,
        version_table=tables.VERSION_TABLE,
        render_as_batch=True,  # SQLite changes few things in place: the table is made anew and filled
        render_item=render_type,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run_migrations(context.config.attributes["connection"])
