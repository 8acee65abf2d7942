"""Rows of what probes without tables of their own read from answers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import select

from auditor.domain import Outcome, canonical_json
from auditor.probe_interface import ProbeResult
from auditor.storage.database import Database
from auditor.storage.result_tables import ProbeResultRow
from auditor.storage.row_writing import table_of, upsert


def save_probe_results(db: Database, audit_id: int, probe: str, results: Sequence[ProbeResult]) -> None:
    """Store results; a stored one of the same model, unit, sample and turn is replaced."""
    rows = [
        {
            "audit_id": audit_id,
            "probe": probe,
            "model": result.model,
            "unit": canonical_json(list(result.unit)),
            "sample": result.sample,
            "turn": result.turn,
            "outcome": result.outcome,
            "key": result.key,
            "value": None if result.value is None else canonical_json(result.value),
            "reader_version": result.reader_version,
        }
        for result in results
    ]
    if rows:
        db.write(lambda connection: upsert(connection, ProbeResultRow, rows))


def load_probe_results(db: Database, audit_id: int, probe: str) -> list[ProbeResult]:
    """Load the results of a probe in the order of their key: model, unit, sample and turn."""
    table = table_of(ProbeResultRow)
    query = select(table).where(table.c.audit_id == audit_id, table.c.probe == probe).order_by(*table.primary_key)
    with db.read() as connection:
        return [
            ProbeResult(
                model=row["model"],
                unit=tuple(json.loads(row["unit"])),
                sample=row["sample"],
                turn=row["turn"],
                outcome=Outcome(row["outcome"]),
                key=row["key"],
                value=None if row["value"] is None else json.loads(row["value"]),
                reader_version=row["reader_version"],
            )
            for row in connection.execute(query).mappings()
        ]


def list_probes_with_results(db: Database, audit_id: int) -> list[str]:
    """List the names of the probes that an audit has results of in the common table, in order."""
    c = table_of(ProbeResultRow).c
    with db.read() as connection:
        query = select(c.probe).where(c.audit_id == audit_id).distinct()
        return sorted(str(name) for name in connection.execute(query).scalars())
