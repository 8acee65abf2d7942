"""How far an audit has come, without making its report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from auditor.config import AuditConfig
from auditor.domain import Outcome
from auditor.reports.coverage import reviewable
from auditor.reports.people import settled
from auditor.storage import audits, comparisons, results, tallies
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.standing import Standing
from auditor.storage.tallies import OutcomeTally


def status_of(db: Database, audit: Audit) -> dict[str, Any]:
    """Stage, coverage, conflicts and cost of an audit, as JSON can hold them.

    `traces` and `verdicts` count what is recorded; `…_planned` what there is to be, None for imported scores (and the
    verdicts, until all traces are there, of the traces that have a score so far). `cost_usd` is the sum of the known
    prices, None when none is known; `unpriced` counts the answers without one.
    """
    config = AuditConfig.model_validate_json(audit.config) if audit.config else None
    traces, verdicts = tallies.trace_tallies(db, audit.id), tallies.verdict_tallies(db, audit.id)
    compared = comparisons.tally(db, audit.id)
    found = settled(results.conflicts(db, audit.id), results.ratings(db, audit.id))
    calls = tallies.call_tallies(db, audit.id)
    priced = [c.cost_usd * c.answers for c in calls if c.cost_usd is not None]
    return {
        "audit": audit.name,
        "stage": audit.stage,
        "created_at": audit.created_at,
        "updated_at": audit.updated_at,
        "finished_at": audit.finished_at,
        "traces_planned": None if config is None else _traces_planned(db, audit, config),
        "verdicts_planned": None if config is None else _verdicts_planned(config, traces),
        "traces": sum(t.n for t in traces),
        "traces_ok": _ok(traces),
        "verdicts": sum(v.n for v in verdicts),
        "verdicts_ok": _ok(verdicts),
        "comparisons": sum(compared.values()),
        "comparisons_ok": compared.get(Outcome.OK.value, 0),
        "conflicts": len(found),
        "open": sum(s.standing in (Standing.OPEN, Standing.DISPUTED) for s in found),
        "cost_usd": math.fsum(priced) if priced else None,
        "unpriced": sum(c.answers for c in calls if c.cost_usd is None),
    }


def _traces_planned(db: Database, audit: Audit, config: AuditConfig) -> int:
    return sum(config.samples_on(audits.survey_of(db, audit)).values()) * len(config.models)


def _verdicts_planned(config: AuditConfig, traces: Sequence[OutcomeTally]) -> int:
    judges = {m.name: len(config.judges_of(m.name)) for m in config.models}
    return sum(n * judges.get(unit.name, 0) for unit, n in reviewable(config, traces).items())


def _ok(rows: Sequence[OutcomeTally]) -> int:
    return sum(r.n for r in rows if r.outcome == Outcome.OK)
