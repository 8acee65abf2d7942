"""Cost of an audit's requests by model and purpose; unknown prices are reported, not counted as 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from auditor.reports.data.cost.schema import CostReport, CostRow
from auditor.reports.data.report_source import ReportSource
from auditor.storage.costs import CallCounts, UnreturnedCallCount


def build_cost_report(source: ReportSource) -> CostReport:
    """Compute the cost by model and purpose, and in total; models in the order of the audit, then judges."""
    order = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    groups: dict[tuple[str, str], list[CallCounts]] = {}  # by (model or judge, purpose)
    for counts in source.call_counts:
        groups.setdefault((counts.name, counts.purpose), []).append(counts)
    keys = sorted(groups, key=lambda key: (order.get(key[0], len(order)), key))
    return CostReport(
        total=_build_cost_row(None, None, source.call_counts),
        rows=[_build_cost_row(*key, groups[key]) for key in keys],
        lost=sum(unreturned.calls for unreturned in source.failed_attempt_counts),
        lost_usd=_bound_unanswered_cost(source.failed_attempt_counts, groups),
    )


def _bound_unanswered_cost(
    unanswered: Sequence[UnreturnedCallCount], call_groups: Mapping[tuple[str, str], Sequence[CallCounts]]
) -> float | None:
    """Bound the cost of calls without an answer, by the dearest call of the same model and purpose.

    Returns:
        US dollars; None where a model and purpose with such calls has no known price.
    """
    max_cost_by_group = {
        key: max((counts.cost_usd for counts in group if counts.cost_usd is not None), default=None)
        for key, group in call_groups.items()
    }
    bounds = [
        (unreturned.calls, max_cost_by_group.get((unreturned.name, unreturned.purpose))) for unreturned in unanswered
    ]
    known = [n_calls * max_cost for n_calls, max_cost in bounds if max_cost is not None]
    return math.fsum(known) if len(known) == len(bounds) else None


def _build_cost_row(name: str | None, purpose: str | None, call_counts: Sequence[CallCounts]) -> CostRow:
    """Sum calls, tokens and cost over groups of like calls.

    `cost_usd` and `estimated_usd` of a group are US dollars per call. `name` and `purpose` are None in the total.
    """
    priced = [counts.cost_usd * counts.calls for counts in call_counts if counts.cost_usd is not None]
    unpriced = sum(counts.unpriced for counts in call_counts)
    return CostRow(
        name=name,
        purpose=purpose,
        calls=sum(counts.calls for counts in call_counts),
        attempts=sum(counts.attempts for counts in call_counts),
        answers=sum(counts.answers for counts in call_counts),
        prompt_tokens=sum(counts.prompt_tokens for counts in call_counts),
        completion_tokens=sum(counts.completion_tokens for counts in call_counts),
        # Answers that report no token counts.
        untold_tokens=sum(counts.answers_without_usage for counts in call_counts),
        cached_tokens=sum(counts.cached_tokens for counts in call_counts)
        if any(counts.prompt_tokens_with_cache_count for counts in call_counts)
        else None,
        # Prompt tokens of the answers that report how many of them were cached.
        told_tokens=sum(counts.prompt_tokens_with_cache_count for counts in call_counts),
        usd=math.fsum(priced) if priced else None,
        unpriced=unpriced,
        lower_bound=unpriced > 0,
        estimated_usd=math.fsum(counts.estimated_usd * counts.calls for counts in call_counts),
        estimated_requests=sum(counts.estimated_attempts for counts in call_counts),
    )
