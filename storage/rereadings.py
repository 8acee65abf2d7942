"""Results that a present reader read again, in place of stored ones, and those that they replaced.

Earlier rows are kept as JSON in the table `excluded_content`, under a source that names the rereading.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from auditor.domain import CellScore, canonical_json
from auditor.domain.audit_records import Audit, ExcludedContent
from auditor.errors import UsageError
from auditor.storage import exclusions, hash_chain
from auditor.storage.call_records import ChainLink
from auditor.storage.database import Database
from auditor.storage.ledger import utc_now
from auditor.storage.row_classes import table_of, upsert
from auditor.storage.schema import load_tables

REREADING = "rereading"
AUDIT_COLUMNS = ("config_hash", "environment")
"""Columns of an audit that say by which readers its results were read."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that is read otherwise now; `earlier` or `later` is None where there is none."""

    table: sa.Table
    earlier: Mapping[str, Any] | None
    later: Mapping[str, Any] | None

    @property
    def key(self) -> list[Any]:
        """Values of the primary key."""
        row = self.earlier if self.earlier is not None else self.later
        assert row is not None
        return [row[column.name] for column in self.table.primary_key]

    def describe_earlier(self) -> dict[str, str]:
        """The earlier row as values of `ExcludedContent`."""
        content = json.dumps(None if self.earlier is None else dict(self.earlier))
        return {"source": f"{REREADING}/{self.table.name}", "row": canonical_json(self.key), "content": content}


def store_rereading(
    db: Database, audit: Audit, changes: Sequence[RowChange], config_hash: str | None, environment: str
) -> None:
    """Store results that a present reader read, and keep those that they replace.

    Args:
        db: the database.
        audit: the audit.
        changes: the rows.
        config_hash, environment: of the audit from now on, with the present readers.
    """
    audits = table_of(Audit)
    later_values = {"config_hash": config_hash, "environment": environment}
    of_audit = RowChange(audits, {"id": audit.id} | {name: getattr(audit, name) for name in AUDIT_COLUMNS}, None)

    def job(connection: sa.Connection) -> None:
        _delete_kept(connection, audit.id)
        hash_chain.append_act(
            connection, audit.id, act="reread", audit=audit.name, rows=len(changes), readers=environment, at=utc_now()
        )
        _write_rows(connection, audit.id, [(change.table, change.key, change.later) for change in changes])
        with hash_chain.record_changes(connection, audit.id, ["audit", *hash_chain.EXPERIMENT_KINDS]):
            rows = [{"audit_id": audit.id, **change.describe_earlier()} for change in [*changes, of_audit]]
            upsert(connection, ExcludedContent, rows)
            connection.execute(sa.update(audits).where(audits.c.id == audit.id).values(later_values))

    db.write(job)


def undo_rereading(db: Database, audit: Audit) -> int:
    """Restore the results that the last rereading replaced, and return their number.

    Raises:
        UsageError: there is none, or a run came after it, or other answers are excluded now: they would count again.
    """
    audits, earlier_rows = table_of(Audit), table_of(ExcludedContent)
    query = sa.select(earlier_rows.c.source, earlier_rows.c.row, earlier_rows.c.content).where(_is_kept(audit.id))

    def job(connection: sa.Connection) -> int:
        rows = connection.execute(query).all()
        if not rows:
            raise UsageError(
                f"no rereading of '{audit.name}' can be undone: there is none, or the audit was run again since.",
                "Nothing is needed.",
            )
        if exclusions.changed_after(connection, audit.id, _find_link(connection, audit.id)):
            raise UsageError(
                f"other answers of '{audit.name}' are excluded now than at its last rereading, so it cannot be undone.",
                "Undo the exclusions since then, or repeat those that were undone: auditor exclude AUDIT --list",
            )
        hash_chain.append_act(connection, audit.id, act="undo reread", audit=audit.name, at=utc_now())
        replaced = [
            (load_tables()[source.partition("/")[2]], json.loads(key), json.loads(content))
            for source, key, content in rows
        ]
        _write_rows(connection, audit.id, [row for row in replaced if row[0] is not audits])
        with hash_chain.record_changes(connection, audit.id, ["audit"]):
            values = next(content for table, _, content in replaced if table is audits)
            connection.execute(sa.update(audits).where(audits.c.id == audit.id).values(values))
        _delete_kept(connection, audit.id)
        return len(rows) - 1

    return db.write(job)


def forget_rereading(db: Database, audit_id: int) -> None:
    """Let no rereading be undone any more: a run's results would stand beside those of earlier readers."""
    with db.read() as connection:
        is_undoable = connection.execute(sa.select(sa.exists().where(_is_kept(audit_id)))).scalar_one()
    if is_undoable:
        db.write(lambda connection: _delete_kept(connection, audit_id))


def _find_link(connection: sa.Connection, audit_id: int) -> int:
    """Id of the link of an audit's last rereading."""
    link = table_of(ChainLink).c
    query = sa.select(link.id, link.row).where(link.audit_id == audit_id, link.kind == hash_chain.ACT)
    acts = connection.execute(query.order_by(link.id.desc()))
    return next(int(link_id) for link_id, act in acts if json.loads(act)["act"] == "reread")


def _write_rows(
    connection: sa.Connection, audit_id: int, rows: Sequence[tuple[sa.Table, Sequence[Any], Mapping[str, Any] | None]]
) -> None:
    """Replace rows of derived tables, each given by its table, key and new content; None deletes it."""
    scores = [row for row in rows if row[0] is table_of(CellScore)]
    measured = [dict(zip(table.primary_key.columns.keys(), key, strict=True)) for table, key, _ in scores]
    # Rows of experiments and self-consistencies are not derived: what changes in them gets links.
    with hash_chain.record_measured(connection, CellScore, measured, audit_id):
        for row in scores:
            _write(connection, *row)
    with hash_chain.record_changes(connection, audit_id, hash_chain.EXPERIMENT_KINDS):
        for row in rows:
            if row[0] is not table_of(CellScore):
                _write(connection, *row)


def _write(connection: sa.Connection, table: sa.Table, key: Sequence[Any], values: Mapping[str, Any] | None) -> None:
    connection.execute(
        sa.delete(table).where(sa.and_(*(c == value for c, value in zip(table.primary_key, key, strict=True))))
    )
    if values is not None:
        connection.execute(sa.insert(table).values(dict(values)))


def _is_kept(audit_id: int) -> sa.ColumnElement[bool]:
    """Condition on rows that a rereading replaced."""
    c = table_of(ExcludedContent).c
    return sa.and_(c.audit_id == audit_id, c.source.startswith(f"{REREADING}/"))


def _delete_kept(connection: sa.Connection, audit_id: int) -> None:
    with hash_chain.record_changes(connection, audit_id, [table_of(ExcludedContent).name]):
        connection.execute(sa.delete(table_of(ExcludedContent)).where(_is_kept(audit_id)))
