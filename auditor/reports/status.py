"""How far an audit has come, without making its report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from auditor.domain import Outcome
from auditor.reports.people import settled
from auditor.storage import results, tallies
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.standing import Standing
from auditor.storage.tallies import OutcomeTally


def status_of(db: Database, audit: Audit) -> dict[str, Any]:
    """Stage, coverage, conflicts and cost of an audit, as JSON can hold them.

    `cost_usd` is the sum of the known prices, None when none is known; `unpriced` counts the answers without one.
    """
    traces, verdicts = tallies.trace_tallies(db, audit.id), tallies.verdict_tallies(db, audit.id)
    found = settled(results.conflicts(db, audit.id), results.ratings(db, audit.id))
    calls = tallies.call_tallies(db, audit.id)
    priced = [c.cost_usd * c.answers for c in calls if c.cost_usd is not None]
    return {
        "audit": audit.name,
        "stage": audit.stage,
        "created_at": audit.created_at,
        "updated_at": audit.updated_at,
        "finished_at": audit.finished_at,
        "traces": sum(t.n for t in traces),
        "traces_ok": _ok(traces),
        "verdicts": sum(v.n for v in verdicts),
        "verdicts_ok": _ok(verdicts),
        "conflicts": len(found),
        "open": sum(s.standing in (Standing.OPEN, Standing.DISPUTED) for s in found),
        "cost_usd": math.fsum(priced) if priced else None,
        "unpriced": sum(c.answers for c in calls if c.cost_usd is None),
    }


def _ok(rows: Sequence[OutcomeTally]) -> int:
    return sum(r.n for r in rows if r.outcome == Outcome.OK)
