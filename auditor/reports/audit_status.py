"""How far an audit has come, without making its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from auditor.config import AuditConfig
from auditor.domain import Outcome
from auditor.reports.conflicts.human_ratings import settled
from auditor.reports.coverage.model_versions import drifted, served
from auditor.reports.coverage.section import Unit, planned_verdicts
from auditor.storage import audits, batches, comparisons, costs, count_queries, limit_changes, results, semantic_results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import Standing
from auditor.storage.count_queries import OutcomeTally
from auditor.storage.database import Database


def status_of(db: Database, audit: Audit) -> dict[str, Any]:
    """Stage, coverage, conflicts and cost of an audit, as JSON can hold them.

    `served` is what providers say they used for each model, `drift` names the models for which that changed, `limits`
    are the changes of how many requests each account was allowed in flight, `batches` those that wait at providers.
    `traces` and `verdicts` count what is recorded; `…_planned` what there is to be, None for imported scores (and the
    verdicts, until all traces are there, of the traces that have a score so far); where sampling may end early, the
    most that there can be, until it has ended. `cost_usd` is the sum of the known prices, None when none is known;
    `unpriced` counts the answers without one.
    """
    config = AuditConfig.model_validate_json(audit.config) if audit.config else None
    traces, verdicts = count_queries.trace_tallies(db, audit.id), count_queries.verdict_tallies(db, audit.id)
    compared, moral_answers = comparisons.tally(db, audit.id), semantic_results.outcome_tallies(db, audit.id)
    found = settled(results.conflicts(db, audit.id), results.ratings(db, audit.id))
    used, money = served(costs.call_tallies(db, audit.id)), costs.cost(db, audit.id)
    return {
        "audit": audit.name,
        "stage": audit.stage,
        "created_at": audit.created_at,
        "updated_at": audit.updated_at,
        "finished_at": audit.finished_at,
        "traces_planned": None if config is None else _traces_planned(db, audit, config, traces),
        "verdicts_planned": None if config is None else _verdicts_planned(db, audit, config, traces, verdicts),
        "traces": sum(t.n for t in traces),
        "traces_ok": _ok(traces),
        "verdicts": sum(v.n for v in verdicts),
        "verdicts_ok": _ok(verdicts),
        "comparisons": sum(compared.values()),
        "comparisons_ok": compared.get(Outcome.OK.value, 0),
        "moral_answers": sum(n for *_, n in moral_answers),
        "moral_answers_ok": sum(n for _, _, outcome, _, n in moral_answers if outcome == Outcome.OK.value),
        "conflicts": len(found),
        "open": sum(s.standing in (Standing.OPEN, Standing.DISPUTED) for s in found),
        "cost_usd": money.usd,
        "unpriced": money.unpriced,
        "served": [row.model_dump() for row in used],
        "drift": drifted(used),
        "batches": [_batch(waits) for waits in batches.waiting(db, audit.id)],
        "limits": [change._asdict() for change in limit_changes.changes(db, audit.id)],
    }


def _batch(waits: batches.Waiting) -> dict[str, Any]:
    return {"model": waits.name, "batch": waits.remote, "calls": waits.calls, "since": waits.prepared_at.isoformat()}


def _traces_planned(db: Database, audit: Audit, config: AuditConfig, traces: Sequence[OutcomeTally]) -> int:
    if config.direct.is_open_ended and audit.stage in audits.WHOLE:
        return sum(t.n for t in traces)
    return sum(config.samples_on(audits.survey_of(db, audit)).values()) * len(config.models)


def _verdicts_planned(
    db: Database,
    audit: Audit,
    config: AuditConfig,
    traces: Sequence[OutcomeTally],
    verdicts: Sequence[OutcomeTally],
) -> int:
    """As the report's coverage counts them: an adaptive panel may have asked more judges than it had to."""
    given = Counter[Unit]()
    for verdict in verdicts:
        given[Unit(verdict.model, verdict.country, verdict.topic)] += verdict.n
    planned = planned_verdicts(config, traces, results.readable(db, audit.id) if config.is_thinned else ())
    return sum(max(planned.get(unit, 0), given[unit]) for unit in planned.keys() | given.keys())


def _ok(rows: Sequence[OutcomeTally]) -> int:
    return sum(r.n for r in rows if r.outcome == Outcome.OK)
