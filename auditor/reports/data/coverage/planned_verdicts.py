"""Verdicts that an audit is certain to ask for.

`auditor status` counts them too. So numpy, which few configurations need here, is loaded where it is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from auditor.config import AuditConfig
from auditor.domain import Cell
from auditor.reports.data.coverage.stage_coverage import OK, CoverageUnit
from auditor.storage.count_queries import OutcomeCount


def count_planned_verdicts(
    config: AuditConfig, traces: Iterable[OutcomeCount], scored_traces: Iterable[tuple[str, Cell, int]] = ()
) -> dict[CoverageUnit, int]:
    """Count verdicts that are certain to be asked for, by unit; for an adaptive panel the smallest majority.

    Args:
        traces: counts of traces by outcome.
        scored_traces: keys of the traces with a score; used only where the review depends on which they are.
    """
    verdicts_per_trace = {model.name: config.panel_size(model.name) for model in config.models}
    if config.panel.adaptive:
        from auditor.metrics.votes import min_majority

        verdicts_per_trace = {model: min_majority(n) for model, n in verdicts_per_trace.items()}
    n_traces_by_unit = count_reviewable_traces(config, traces, scored_traces)
    return {
        unit: n * verdicts_per_trace[unit.name]
        for unit, n in n_traces_by_unit.items()
        if verdicts_per_trace.get(unit.name)
    }


def count_reviewable_traces(
    config: AuditConfig | None, traces: Iterable[OutcomeCount], scored_traces: Iterable[tuple[str, Cell, int]] = ()
) -> dict[CoverageUnit, int]:
    """Count the traces of each model and cell that judges review: those with a score, up to `probes.review.traces`.

    Args:
        traces: counts of traces by outcome.
        scored_traces: keys of the traces with a score; used only where the review depends on which they are.
    """
    if config is not None and config.review_varies_by_trace:
        from auditor.panel_assignment import TraceKey, select_reviewed

        return Counter(
            CoverageUnit(trace.model, *trace.cell)
            for trace in select_reviewed(config, (TraceKey(*key) for key in scored_traces))
        )
    limit = config.probes.review.traces if config else "all"
    scored = {CoverageUnit(count.model, count.country, count.topic): count.n for count in traces if count.outcome == OK}
    return {unit: n if limit == "all" else min(n, limit) for unit, n in scored.items()}
