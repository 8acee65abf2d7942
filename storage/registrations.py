"""Claims that a configuration states before its audit asks: appended to the hash chain when a run starts."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from auditor.domain import Trace
from auditor.domain.audit_records import Registration
from auditor.storage import hash_chain
from auditor.storage.database import Database
from auditor.storage.ledger import utc_now
from auditor.storage.row_writing import select_records, table_of


def register_claim(db: Database, audit_id: int, baseline: str, margin: float) -> Registration:
    """Register a claim of non-inferiority, unless the last registration of the audit is the same; return the last."""

    def job(connection: Connection) -> None:
        traces = table_of(Trace)
        count = select(func.count()).select_from(traces).where(traces.c.audit_id == audit_id)
        entry = Registration(0, baseline, margin, int(connection.execute(count).scalar_one()), utc_now())
        hash_chain.append_entry(connection, audit_id, entry)

    registrations = load_registrations(db, audit_id)
    if not registrations or (registrations[-1].baseline, registrations[-1].margin) != (baseline, margin):
        db.write(job)
    return load_registrations(db, audit_id)[-1]


def load_registrations(db: Database, audit_id: int) -> list[Registration]:
    """The claims of an audit in the order in which they were registered."""
    table = table_of(Registration)
    with db.read() as connection:
        return select_records(connection, Registration, table.c.audit_id == audit_id, order_by=[table.c.id])
