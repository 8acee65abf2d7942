"""Progress of an audit, computed without building its report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from auditor.config import AuditConfig, load_stored_config
from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import Outcome, Purpose
from auditor.reports.data.coverage.counts import (
    CoverageRow,
    CoverageUnit,
    build_model_version_rows,
    count_planned_verdicts,
    find_models_with_version_changes,
)
from auditor.storage import audits, batches, costs, count_queries, results
from auditor.storage.audits import Audit
from auditor.storage.call_records import LimitChange
from auditor.storage.conflict_status import UNSETTLED
from auditor.storage.costs import CallCounts
from auditor.storage.count_queries import OutcomeCount
from auditor.storage.database import Database
from auditor.storage.probe_results import AnswerCount, count_probe_answers
from auditor.storage.records import load_records
from auditor.storage.review_queue import ConflictQueue


def load_audit_status(db: Database, audit: Audit) -> dict[str, Any]:
    """Stage, coverage, conflicts and cost of an audit, as values that JSON can represent.

    - `served`: the model versions that providers reported; `drift`: the models whose version changed.
    - `limits`: changes of the maximum number of concurrent requests of each account.
    - `batches`: batches that were submitted to a provider and not yet collected.
    - `traces_refused`, `traces_lost`: recorded refusals, and requests without an answer. `traces_never_asked`: planned
      ones that were not sent, or not within the budget. `complete`: see `CoverageRow.is_incomplete`.
    - `traces`, `verdicts`: recorded so far. `…_planned`: expected in total; None for imported scores. Until all traces
      are recorded, planned verdicts count only the traces that have a score. Where sampling may stop early, planned
      traces are the maximum until sampling has ended.
    - `conflicts_looked_for`: False for imported scores, whose numbers of conflicts are 0 for no other reason.
    - `cost_usd`: sum of the known prices, None if none is known; `unpriced`: number of answers without a price.
    - `unavailable_probes`: why probes of other packages cannot be used; left out if all can.
    - `preflight`: requests, and the part of these costs, that only found out what judges accept.
    """
    config = load_stored_config(audit.config)
    trace_counts, verdict_counts = count_queries.count_traces(db, audit.id), count_queries.count_verdicts(db, audit.id)
    with db.read() as connection:
        probe_answers = count_probe_answers(connection, audit.id)
    n_by_status = ConflictQueue(db, audit.id, rater="").count_by_status()
    call_counts = costs.count_calls(db, audit.id, for_cost=True)
    audit_cost = costs.sum_cost(call_counts)
    versions = build_model_version_rows(call_counts)
    planned_traces = None if config is None else _count_planned_traces(db, audit, config, trace_counts)
    trace_coverage = _sum_trace_coverage(trace_counts, planned_traces)
    return {
        "audit": audit.name,
        "stage": audit.stage,
        "created_at": audit.created_at,
        "updated_at": audit.updated_at,
        "finished_at": audit.finished_at,
        "complete": audit.stage in audits.FINAL_STAGES and (config is None or not trace_coverage.is_incomplete),
        "traces_planned": planned_traces,
        "verdicts_planned": None
        if config is None
        else _count_planned_verdicts(db, audit, config, trace_counts, verdict_counts),
        "traces": sum(count.n for count in trace_counts),
        "traces_ok": trace_coverage.ok,
        "traces_refused": trace_coverage.losses.get(Outcome.REFUSED, 0),
        "traces_lost": trace_coverage.lost_requests,
        "traces_never_asked": trace_coverage.never_asked,
        "verdicts": sum(count.n for count in verdict_counts),
        "verdicts_ok": _count_usable(verdict_counts),
        **{key: n for name, count in probe_answers.items() for key, n in _name_counts(name, count).items()},
        "conflicts_looked_for": config is not None or bool(sum(n_by_status.values())),
        "conflicts": sum(n_by_status.values()),
        "open": sum(map(n_by_status.__getitem__, UNSETTLED)),
        "cost_usd": audit_cost.usd,
        "unpriced": audit_cost.unpriced,
        "preflight": _sum_preflight(call_counts),
        "served": [row.model_dump() for row in versions],
        "drift": find_models_with_version_changes(versions),
        "batches": [_format_batch(open_batch) for open_batch in batches.load_uncollected_batches(db, audit.id)],
        **({"unavailable_probes": config.probes.missing} if config is not None and config.probes.missing else {}),
        "limits": [_describe_limit_change(change) for change in load_records(db, audit.id, LimitChange)],
    }


def _name_counts(probe: str, count: AnswerCount) -> dict[str, int]:
    """The entries on the answers of a probe: how many there are, and how many can be used."""
    key = load_built_in(probe).answers_key if probe in list_built_in_names() else f"probe_{probe}"
    return {key: count.n, f"{key}_ok": count.ok}


def _sum_preflight(call_counts: Sequence[CallCounts]) -> dict[str, Any]:
    """The entry `preflight`: requests, cost in US dollars (None if unknown), and answers without a price."""
    counts = [count for count in call_counts if count.purpose == Purpose.PREFLIGHT]
    known_costs = [count.cost_usd * count.sums.calls for count in counts if count.cost_usd is not None]
    return {
        "requests": sum(count.sums.attempts for count in counts),
        "cost_usd": math.fsum(known_costs) if known_costs else None,
        "unpriced": sum(count.sums.unpriced for count in counts),
    }


def _describe_limit_change(change: LimitChange) -> dict[str, Any]:
    """The entry of `limits` on one change."""
    return {name: value for name, value in asdict(change).items() if name != "run"}


def _format_batch(open_batch: batches.UncollectedBatch) -> dict[str, Any]:
    """The entry of `batches` on one uncollected batch; `calls` is the number of its calls without an answer yet."""
    return {
        "model": open_batch.model_name,
        "batch": open_batch.remote_id,
        "calls": open_batch.n_missing_calls,
        "since": open_batch.prepared_at.isoformat(),
    }


def _count_planned_traces(db: Database, audit: Audit, config: AuditConfig, trace_counts: Sequence[OutcomeCount]) -> int:
    """Planned number of traces; after an open-ended sampling has finished, the recorded number."""
    if config.direct.is_open_ended and audit.stage in audits.FINAL_STAGES:
        return sum(count.n for count in trace_counts)
    return sum(config.samples_by_cell(audits.load_audit_survey(db, audit)).values()) * len(config.models)


def _count_planned_verdicts(
    db: Database,
    audit: Audit,
    config: AuditConfig,
    trace_counts: Sequence[OutcomeCount],
    verdict_counts: Sequence[OutcomeCount],
) -> int:
    """Number of verdicts to expect, counted as in the report's coverage.

    An adaptive panel may ask more judges than the minimum, so for each unit the larger of the planned and the recorded
    number counts.
    """
    recorded = Counter[CoverageUnit]()
    for count in verdict_counts:
        recorded[CoverageUnit(count.model, count.country, count.topic)] += count.n
    planned = count_planned_verdicts(
        config, trace_counts, results.load_scored_trace_keys(db, audit.id) if config.review_varies_by_trace else ()
    )
    return sum(max(planned.get(unit, 0), recorded[unit]) for unit in planned.keys() | recorded.keys())


def _sum_trace_coverage(trace_counts: Sequence[OutcomeCount], planned: int | None) -> CoverageRow:
    """The coverage of all direct answers; without planned ones, as in an import, all recorded ones are planned."""
    counts = Counter[str]()
    for count in trace_counts:
        counts[count.outcome] += count.n
    ok, total = counts.pop(Outcome.OK, 0), counts.total()
    n_planned = ok + total if planned is None else planned
    missing = max(0, n_planned - ok - total)
    return CoverageRow(
        stage="direct", method=None, name=None, planned=n_planned, ok=ok, losses=dict(counts), missing=missing
    )


def _count_usable(outcome_counts: Sequence[OutcomeCount]) -> int:
    """Number of recorded answers with the outcome `ok`."""
    return sum(count.n for count in outcome_counts if count.outcome == Outcome.OK)
