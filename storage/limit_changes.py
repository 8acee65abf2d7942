"""Changes of the number of requests that an account may have in flight, which explain a run's pace later."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select

from auditor.storage.call_tables import LimitChangeRow
from auditor.storage.database import Database
from auditor.storage.ledger import utc_now
from auditor.storage.row_writing import insert_new, table_of


class LimitChange(NamedTuple):
    """One change of an account's limit.

    Attributes:
        at: UTC, ISO 8601.
        account: provider and server; never an API key.
        before, after: maximum number of requests in flight.
        why: reason of the change, such as `429` or `a clean round`.
    """

    at: str
    account: str
    before: int
    after: int
    why: str


def record_limit_change(
    db: Database, run_id: str, audit_id: int, account: str, before: int, after: int, reason: str
) -> None:
    """Queue the record of a change, without waiting until it is durable."""
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
    """Load all changes in an audit's runs, oldest first."""
    table = table_of(LimitChangeRow)
    query = select(*(table.c[name] for name in LimitChange._fields)).where(table.c.audit_id == audit_id)
    with db.read() as connection:
        return [LimitChange._make(row) for row in connection.execute(query.order_by(table.c.id))]
