"""Changes of the number of requests that an account may have in flight, which explain a run's pace later."""

from __future__ import annotations

from auditor.storage.call_records import LimitChange
from auditor.storage.database import Database
from auditor.storage.hash_chain import append_entry
from auditor.storage.ledger import utc_now


def record_limit_change(
    db: Database, run_id: str, audit_id: int, account: str, before: int, after: int, reason: str
) -> None:
    """Queue the record of a change, without waiting until it is durable."""
    change = LimitChange(run_id, utc_now(), account, before, after, reason)
    db.writer.submit(lambda connection: append_entry(connection, audit_id, change))
