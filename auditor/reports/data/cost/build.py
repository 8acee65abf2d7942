"""Cost of an audit's requests by model and purpose; unknown prices are reported, not counted as 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from auditor.config import ModelSection
from auditor.domain import total_cost
from auditor.models.model_prices import token_price
from auditor.reports.data.cost.schema import CostReport, CostRow
from auditor.reports.data.report_source import ReportSource
from auditor.storage.costs import CallCounts, UnreturnedCallCount

SUMMED_COUNTS = ("calls", "attempts", "answers", "prompt_tokens", "completion_tokens")


def build_cost_report(source: ReportSource) -> CostReport:
    """Compute the cost by model and purpose, and in total; models in the order of the audit, then judges."""
    order = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    groups: dict[tuple[str, str], list[CallCounts]] = {}  # by (model or judge, purpose)
    for counts in source.call_counts:
        groups.setdefault((counts.name, counts.purpose), []).append(counts)
    keys = sorted(groups, key=lambda key: (order.get(key[0], len(order)), key))
    sections = source.config.models_by_name if source.config else {}
    rows = [_build_cost_row(*key, groups[key], sections.get(key[0])) for key in keys]
    total = _build_cost_row(None, None, source.call_counts)
    return CostReport(
        total=total.model_copy(update={"reasoning_usd": _sum_reasoning_cost(rows)}),
        rows=rows,
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


def _sum_reasoning_cost(rows: Sequence[CostRow]) -> float | None:
    """Cost of all hidden reasoning in US dollars; None where a part is unknown, or no answer reports any."""
    return total_cost([row.reasoning_usd for row in rows if row.reasoning_tokens is not None])


def _reasoning_cost(call_counts: Sequence[CallCounts], model: ModelSection | None) -> float | None:
    """Cost of the hidden reasoning of one model's calls in US dollars; None where a price is unknown.

    It is a share of the recorded cost, so that the lower price of a batch counts. Of the model's price, only the ratios
    between prompt, cached and completion tokens matter.
    """
    reasoning_counts = [counts for counts in call_counts if counts.reasoning_tokens]
    if not reasoning_counts:
        return 0.0
    price = None if model is None else token_price(model)
    if price is None or any(counts.cost_usd is None for counts in reasoning_counts):
        return None
    costs = []
    for counts in reasoning_counts:
        cached_tokens = min(counts.cached_tokens, counts.prompt_tokens)
        list_cost = price.request_cost(counts.prompt_tokens, counts.completion_tokens, cached_tokens)
        share = counts.reasoning_tokens * price.completion_usd / list_cost if list_cost else 0.0
        costs.append(min(share, 1.0) * (counts.cost_usd or 0.0) * counts.calls)
    return math.fsum(costs)


def _build_cost_row(
    name: str | None, purpose: str | None, call_counts: Sequence[CallCounts], model: ModelSection | None = None
) -> CostRow:
    """Sum calls, tokens and cost over groups of like calls.

    `cost_usd` and `estimated_usd` of a group are US dollars per call. `name` and `purpose` are None in the total, whose
    cost of reasoning is the sum of the other rows'.
    """
    priced = [counts.cost_usd * counts.calls for counts in call_counts if counts.cost_usd is not None]
    unpriced = sum(counts.unpriced for counts in call_counts)
    has_excess = any(counts.cached_tokens > counts.prompt_tokens_with_cache_count for counts in call_counts)
    has_reasoning_count = any(counts.answers_with_reasoning_count for counts in call_counts)
    return CostRow(
        name=name,
        purpose=purpose,
        **{name: sum(getattr(counts, name) for counts in call_counts) for name in SUMMED_COUNTS},
        # Answers that report no token counts.
        untold_tokens=sum(counts.answers_without_usage for counts in call_counts),
        cached_tokens=sum(counts.cached_tokens for counts in call_counts)
        if any(counts.prompt_tokens_with_cache_count for counts in call_counts)
        else None,
        # Prompt tokens of the answers that report how many of them were cached.
        told_tokens=sum(counts.prompt_tokens_with_cache_count for counts in call_counts),
        usd=math.fsum(priced) if priced else None,
        unpriced=unpriced,
        lower_bound=unpriced > 0 or has_excess,
        excess_cached_tokens=has_excess,
        estimated_usd=math.fsum(counts.estimated_usd * counts.calls for counts in call_counts),
        estimated_requests=sum(counts.estimated_attempts for counts in call_counts),
        reasoning_tokens=sum(counts.reasoning_tokens for counts in call_counts) if has_reasoning_count else None,
        reasoning_usd=_reasoning_cost(call_counts, model) if has_reasoning_count else None,
    )
