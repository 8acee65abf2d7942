"""How far an audit has come, without making its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from auditor.config import AuditConfig
from auditor.domain import Outcome
from auditor.reports.conflicts.human_ratings import apply_ratings
from auditor.reports.coverage.model_versions import build_model_version_rows, find_models_with_version_changes
from auditor.reports.coverage.section import CoverageUnit, count_planned_verdicts
from auditor.storage import audits, batches, comparisons, costs, count_queries, limit_changes, results, semantic_results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.count_queries import OutcomeCount
from auditor.storage.database import Database


def load_audit_status(db: Database, audit: Audit) -> dict[str, Any]:
    """Stage, coverage, conflicts and cost of an audit, as JSON can hold them.

    `served` is what providers say they used for each model, `drift` names the models for which that changed, `limits`
    are the changes of how many requests each account was allowed in flight, `batches` those that wait at providers.
    `traces` and `verdicts` count what is recorded; `…_planned` what there is to be, None for imported scores (and the
    verdicts, until all traces are there, of the traces that have a score so far); where sampling may end early, the
    most that there can be, until it has ended. `cost_usd` is the sum of the known prices, None when none is known;
    `unpriced` counts the answers without one.
    """
    config = AuditConfig.model_validate_json(audit.config) if audit.config else None
    traces, verdicts = count_queries.count_traces(db, audit.id), count_queries.count_verdicts(db, audit.id)
    compared, moral_answers = comparisons.count_outcomes(db, audit.id), semantic_results.count_outcomes(db, audit.id)
    found = apply_ratings(results.load_conflicts(db, audit.id), results.load_ratings(db, audit.id))
    used, money = build_model_version_rows(costs.count_calls(db, audit.id)), costs.sum_audit_cost(db, audit.id)
    return {
        "audit": audit.name,
        "stage": audit.stage,
        "created_at": audit.created_at,
        "updated_at": audit.updated_at,
        "finished_at": audit.finished_at,
        "traces_planned": None if config is None else _count_planned_traces(db, audit, config, traces),
        "verdicts_planned": None if config is None else _count_planned_verdicts(db, audit, config, traces, verdicts),
        "traces": sum(t.n for t in traces),
        "traces_ok": _count_usable(traces),
        "verdicts": sum(v.n for v in verdicts),
        "verdicts_ok": _count_usable(verdicts),
        "comparisons": sum(compared.values()),
        "comparisons_ok": compared.get(Outcome.OK.value, 0),
        "moral_answers": sum(n for *_, n in moral_answers),
        "moral_answers_ok": sum(n for _, _, outcome, _, n in moral_answers if outcome == Outcome.OK.value),
        "conflicts": len(found),
        "open": sum(s.status in (ConflictStatus.OPEN, ConflictStatus.DISPUTED) for s in found),
        "cost_usd": money.usd,
        "unpriced": money.unpriced,
        "served": [row.model_dump() for row in used],
        "drift": find_models_with_version_changes(used),
        "batches": [_format_batch(waits) for waits in batches.load_uncollected_batches(db, audit.id)],
        "limits": [change._asdict() for change in limit_changes.load_limit_changes(db, audit.id)],
    }


def _format_batch(open_batch: batches.UncollectedBatch) -> dict[str, Any]:
    return {
        "model": open_batch.model_name,
        "batch": open_batch.remote_id,
        "calls": open_batch.n_missing_calls,
        "since": open_batch.prepared_at.isoformat(),
    }


def _count_planned_traces(db: Database, audit: Audit, config: AuditConfig, trace_counts: Sequence[OutcomeCount]) -> int:
    if config.direct.is_open_ended and audit.stage in audits.FINAL_STAGES:
        return sum(t.n for t in trace_counts)
    return sum(config.samples_by_cell(audits.load_audit_survey(db, audit)).values()) * len(config.models)


def _count_planned_verdicts(
    db: Database,
    audit: Audit,
    config: AuditConfig,
    trace_counts: Sequence[OutcomeCount],
    verdict_counts: Sequence[OutcomeCount],
) -> int:
    """As the report's coverage counts them: an adaptive panel may have asked more judges than it had to."""
    given = Counter[CoverageUnit]()
    for verdict in verdict_counts:
        given[CoverageUnit(verdict.model, verdict.country, verdict.topic)] += verdict.n
    planned = count_planned_verdicts(
        config, trace_counts, results.load_scored_trace_keys(db, audit.id) if config.review_varies_by_trace else ()
    )
    return sum(max(planned.get(unit, 0), given[unit]) for unit in planned.keys() | given.keys())


def _count_usable(outcome_counts: Sequence[OutcomeCount]) -> int:
    return sum(r.n for r in outcome_counts if r.outcome == Outcome.OK)
