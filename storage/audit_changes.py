"""Rename and delete audits. Recorded answers, human decisions and the hash chain stay: they are append-only."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, func, select, update

from auditor.domain import Conflict, Rating, Trace, Verdict
from auditor.domain.audit_records import Audit
from auditor.domain.labels import LabelEntry
from auditor.errors import UsageError
from auditor.storage import hash_chain
from auditor.storage.audits import deleted_name, find_audit
from auditor.storage.call_records import ProviderBatch
from auditor.storage.database import Database
from auditor.storage.ledger import utc_now
from auditor.storage.probe_answers import count_probe_answers, name_answers
from auditor.storage.row_classes import DerivedRow, MutableRow
from auditor.storage.row_writing import replace_rows, table_of


class AuditContents(NamedTuple):
    """Number of rows that belong to one audit, by kind.

    Attributes:
        probe_answers: by their name in the singular.
        labels: rows in the log of labels.
        open_batches: batches that were submitted and not collected.
    """

    samples: int
    verdicts: int
    probe_answers: dict[str, int]
    conflicts: int
    decisions: int
    labels: int
    open_batches: int


def count_contents(db: Database, audit_id: int) -> AuditContents:
    """Count what an audit has."""
    batches = table_of(ProviderBatch)
    is_open = (batches.c.audit_id == audit_id) & batches.c.submitted_at.is_not(None) & batches.c.ended_at.is_(None)
    with db.read() as connection:
        return AuditContents(
            samples=_count_rows(connection, Trace, audit_id),
            verdicts=_count_rows(connection, Verdict, audit_id),
            probe_answers={
                name_answers(name): count.n for name, count in count_probe_answers(connection, audit_id).items()
            },
            conflicts=_count_rows(connection, Conflict, audit_id),
            decisions=_count_rows(connection, Rating, audit_id),
            labels=_count_rows(connection, LabelEntry, audit_id),
            open_batches=int(connection.execute(select(func.count()).select_from(batches).where(is_open)).scalar_one()),
        )


def require_free_name(db: Database, name: str) -> None:
    """Raise UsageError if an audit has this name."""
    if find_audit(db, name) is not None:
        raise UsageError(f"an audit named '{name}' already exists.", "Choose another name, or rename that audit first.")


def rename_audit(db: Database, audit: Audit, new_name: str, config: str | None, config_hash: str | None) -> None:
    """Give an audit another name.

    Args:
        config: the configuration with the new name, as JSON; None for an audit of imported scores.
        config_hash: its hash.

    Raises:
        UsageError: another audit has that name.
    """
    require_free_name(db, new_name)
    values = {"name": new_name, "config": config, "config_hash": config_hash}

    def job(connection: Connection) -> None:
        hash_chain.append_act(connection, audit.id, act="rename", audit=audit.name, to=new_name, at=utc_now())
        with hash_chain.record_changes(connection, audit.id, ["audit"]):
            connection.execute(update(table_of(Audit)).where(table_of(Audit).c.id == audit.id).values(values))

    db.write(job)


def delete_audit(db: Database, audit: Audit) -> None:
    """Delete an audit's configuration, survey and all rows that are derived from recorded answers.

    The row of the audit stays under a name that no command shows: human decisions refer to it, and they cannot be
    deleted without breaking the hash chain.
    """
    row_classes = [*DerivedRow.__subclasses__(), *MutableRow.__subclasses__()]

    def job(connection: Connection) -> None:
        hash_chain.append_act(connection, audit.id, act="delete", audit=audit.name, at=utc_now())
        kinds = hash_chain.input_kinds(is_imported=audit.config is None)
        with hash_chain.record_changes(connection, audit.id, kinds):
            empty_audit(connection)

    def empty_audit(connection: Connection) -> None:
        for row_class in row_classes:
            if "audit_id" in table_of(row_class).c:
                replace_rows(connection, row_class, audit.id, [])
        table = table_of(Audit)
        values = {
            "name": deleted_name(audit.id),
            "config": None,
            "config_hash": None,
            "survey": "{}",
            "environment": "{}",
            "updated_at": utc_now(),
        }
        connection.execute(update(table).where(table.c.id == audit.id).values(values))

    db.write(job)


def _count_rows(connection: Connection, row_class: type, audit_id: int) -> int:
    """Number of an audit's rows of one class."""
    table = table_of(row_class)
    query = select(func.count()).select_from(table).where(table.c.audit_id == audit_id)
    return int(connection.execute(query).scalar_one())
