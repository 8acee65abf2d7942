"""Alembic's environment script: run the migrations on the configured connection; see `auditor.storage.migrations`."""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy import Connection, String, Text

from auditor.storage import schema


def render_type(kind: str, schema_item: Any, _: AutogenContext) -> str | Literal[False]:
    """Render a text type by its name in script.py.mako, where PostgreSQL compares it byte by byte, as SQLite does."""
    if kind != "type" or not isinstance(schema_item, String):
        return False
    return "LONG" if isinstance(schema_item, Text) else "WORDS"


def run_migrations(connection: Connection) -> None:
    """Run the migrations that the alembic command selected."""
    context.configure(
        connection=connection,
        target_metadata=schema.load_metadata(),
        version_table=schema.VERSION_TABLE,
        render_as_batch=True,  # SQLite can alter little in place: alembic copies the table
        render_item=render_type,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run_migrations(context.config.attributes["connection"])
