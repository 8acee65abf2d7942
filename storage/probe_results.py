"""Rows of what probes without tables of their own read from answers."""

from __future__ import annotations

from sqlalchemy import select

from auditor.probe_interface import ProbeResult
from auditor.storage.database import Database
from auditor.storage.row_writing import table_of


def list_probes_with_results(db: Database, audit_id: int) -> list[str]:
    """List the names of the probes that an audit has results of in the common table, in order."""
    c = table_of(ProbeResult).c
    with db.read() as connection:
        query = select(c.probe).where(c.audit_id == audit_id).distinct()
        return sorted(str(name) for name in connection.execute(query).scalars())
