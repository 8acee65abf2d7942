"""What the audit's answers cost; what is not known stays unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from auditor.reports.cost.schema import CostReport, CostRow
from auditor.reports.report_source import ReportSource
from auditor.storage.costs import CallCounts, UnreturnedCallCount


def build_cost_report(source: ReportSource) -> CostReport:
    """Cost by model and purpose, and in all."""
    order = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    groups: dict[tuple[str, str], list[CallCounts]] = {}
    for tally in source.call_counts:
        groups.setdefault((tally.name, tally.purpose), []).append(tally)
    keys = sorted(groups, key=lambda key: (order.get(key[0], len(order)), key))
    return CostReport(
        total=_build_cost_row(None, None, source.call_counts),
        rows=[_build_cost_row(*key, groups[key]) for key in keys],
        lost=sum(lost.calls for lost in source.failed_attempt_counts),
        lost_usd=_bound_unanswered_cost(source.failed_attempt_counts, groups),
    )


def _bound_unanswered_cost(
    unanswered: Sequence[UnreturnedCallCount], call_groups: Mapping[tuple[str, str], Sequence[CallCounts]]
) -> float | None:
    """The most that lost calls may have cost, going by the dearest of their kind."""
    dearest = {
        k: max((t.cost_usd for t in ts if t.cost_usd is not None), default=None) for k, ts in call_groups.items()
    }
    bounds = [(tally.calls, dearest.get((tally.name, tally.purpose))) for tally in unanswered]
    known = [n * most for n, most in bounds if most is not None]
    return math.fsum(known) if len(known) == len(bounds) else None


def _build_cost_row(name: str | None, purpose: str | None, call_counts: Sequence[CallCounts]) -> CostRow:
    priced = [t.cost_usd * t.calls for t in call_counts if t.cost_usd is not None]
    unpriced = sum(t.unpriced for t in call_counts)
    return CostRow(
        name=name,
        purpose=purpose,
        calls=sum(t.calls for t in call_counts),
        attempts=sum(t.attempts for t in call_counts),
        answers=sum(t.answers for t in call_counts),
        prompt_tokens=sum(t.prompt_tokens for t in call_counts),
        completion_tokens=sum(t.completion_tokens for t in call_counts),
        untold_tokens=sum(t.answers_without_usage for t in call_counts),
        cached_tokens=sum(t.cached_tokens for t in call_counts)
        if any(t.prompt_tokens_with_cache_count for t in call_counts)
        else None,
        told_tokens=sum(t.prompt_tokens_with_cache_count for t in call_counts),
        usd=math.fsum(priced) if priced else None,
        unpriced=unpriced,
        lower_bound=unpriced > 0,
        estimated_usd=math.fsum(t.estimated_usd * t.calls for t in call_counts),
        estimated_requests=sum(t.estimated_attempts for t in call_counts),
    )
