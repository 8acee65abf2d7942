"""Everything that results are derived from is in the hash chain; rows of earlier versions from now on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import sqlalchemy as sa
from alembic import op

from auditor.storage import hash_chain

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
WHOLE_TABLES = (
    *("attempt", "limit_change", "capability", "vector"),
    *("audit", "survey_cell", "task_item", "batch"),
    *("trial", "contest", "claim"),
)
RESULTS = (
    *("trace", "score", "contrast", "verdict", "guess", "restatement", "conflict", "probe_result", "call", "opinion"),
    *("survey_shares", "moral_question", "moral_wording", "moral_answer", "moral_score", "moral_null", "moral_verdict"),
    *("semantic_facts", "moral_translation", "comparison_item", "comparison_set", "comparison", "excluded_content"),
)
LINKS_PER_STATEMENT = 2_000


def upgrade() -> None:
    with op.batch_alter_table("link", schema=None) as batch_op:
        batch_op.add_column(sa.Column("content", WORDS, nullable=True))
        batch_op.add_column(sa.Column("audit_id", sa.Integer(), nullable=True))
    connection = op.get_bind()
    rows = _list_rows(connection)
    is_covered = False
    while chunk := list(islice(rows, LINKS_PER_STATEMENT)):
        if not is_covered:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            hash_chain.append_act(connection, None, act="cover", at=at)
            is_covered = True
        hash_chain.append_contents(connection, chunk)


def _list_rows(connection: sa.Connection) -> Iterator[hash_chain.LinkEntry]:
    """Yield audit, kind, name and hash of the content of each row that the chain covers from this revision on."""
    tables = sa.MetaData()
    imported = sa.text("audit_id IN (SELECT id FROM audit WHERE config IS NULL)")
    for name in WHOLE_TABLES:
        yield from _hash(connection, name, sa.Table(name, tables, autoload_with=connection))
    for name in RESULTS:
        yield from _hash(connection, name, sa.Table(name, tables, autoload_with=connection), imported)
    conflict, verdict, score = tables.tables["conflict"], tables.tables["verdict"], tables.tables["score"]
    run = sa.text("audit_id IN (SELECT id FROM audit WHERE config IS NOT NULL)")
    yield from _hash(connection, "conflict", conflict, conflict.c.kind == "logic", run)
    yield from _hash(connection, "call", tables.tables["call"], sa.text("purpose = 'preflight'"), run)
    yield from _hash(
        connection, "recorded_verdict", verdict, verdict.c.key.is_(None), verdict.c.ruling.is_not(None), run
    )
    yield from _hash(connection, "self_consistency", score, score.c.self_consistency.is_not(None), run)


def _hash(connection: sa.Connection, kind: str, table: sa.Table, *conditions: Any) -> Iterator[hash_chain.LinkEntry]:
    for row in connection.execute(sa.select(table).where(*conditions)).mappings():
        audit_id = row["id"] if kind == "audit" else row.get("audit_id")
        yield hash_chain.LinkEntry(audit_id, kind, hash_chain.name_row(table, row), hash_chain.hash_content(kind, row))
