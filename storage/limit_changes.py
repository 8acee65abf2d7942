"""How many requests an account was allowed in flight, and each change of it: what explains a run's pace later."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select

from auditor.storage.database import Database, insert_new, table_of
from auditor.storage.ledger import utc_now
from auditor.storage.tables import LimitChangeRow


class LimitChange(NamedTuple):
    """One change of an account's limit.

    Attributes:
        at: UTC, ISO 8601.
        account: provider and server; never a key.
        before, after: requests that may be in flight.
        why: such as `429` or `a clean round`.
    """

    at: str
    account: str
    before: int
    after: int
    why: str


def record_limit_change(
    db: Database, run_id: str, audit_id: int, account: str, before: int, after: int, reason: str
) -> None:
    """Write a change down, without waiting for it."""
    values = {
        "run": run_id,
        "audit_id": audit_id,
        "at": utc_now(),
        "account": account,
        "before": before,
        "after": after,
    }
    db.writer.submit(lambda connection: insert_new(connection, LimitChangeRow, [values | {"why": reason}]))


def load_limit_changes(db: Database, audit_id: int) -> list[LimitChange]:
    """All changes in an audit's runs, in order."""
    table = table_of(LimitChangeRow)
    query = select(*(table.c[name] for name in LimitChange._fields)).where(table.c.audit_id == audit_id)
    with db.read() as connection:
        return [LimitChange._make(row) for row in connection.execute(query.order_by(table.c.id))]
