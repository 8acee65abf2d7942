"""Sentences on the cost of an audit, and on unknown parts of it."""

from __future__ import annotations

from auditor.reports.data.cost.savings import SavingsRow, summarize_savings
from auditor.reports.data.cost.schema import CostRow
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import MISSING_SYMBOL, format_count, format_percent, format_usd, pluralize


def describe_savings(row: SavingsRow) -> str:
    """Describe the calls of one stage, compared with the full design."""
    return summarize_savings(row)


def describe_cost(report: Report) -> str:
    """Describe the cost, estimated parts, cached tokens and calls without an answer."""
    total = report.cost.total
    return (
        f"{_describe_known_cost(report)}{_describe_estimated_cost(total)}"
        f"{_describe_cached_tokens(total)}{_describe_unanswered_requests(report)}"
    )


def format_cached_share(row: CostRow) -> str:
    """Format the share of prompt tokens that came from the provider's cache.

    The share is of `told_tokens`: prompt tokens of the answers that report cached tokens.
    """
    return MISSING_SYMBOL if row.cached_tokens is None else format_percent(row.cached_tokens, row.told_tokens)


def _describe_estimated_cost(total: CostRow) -> str:
    """Describe the part of the cost that is estimated, in sentences that start with a space; empty without one."""
    if not total.estimated_usd:
        return ""
    return (
        f" Of this, {format_usd(total.estimated_usd)} is an estimate: {pluralize(total.estimated_requests, 'request')} "
        "brought no usable token counts, or no answer that arrived. The prompt is estimated as characters / 4, the "
        "answer as max_tokens, or as the model's largest where none was set."
    )


def _describe_cached_tokens(total: CostRow) -> str:
    """Describe the share of prompt tokens that came from a cache; empty where no answer reports them."""
    if not total.answers or total.cached_tokens is None:
        return ""
    # `told_tokens` counts prompt tokens of the answers that report cached tokens.
    scope_phrase = "" if total.told_tokens == total.prompt_tokens else ", of those of which it is told"
    return (
        f" Providers had {format_percent(total.cached_tokens, total.told_tokens)} of the tokens in from earlier "
        f"prompts{scope_phrase}."
    )


def _describe_unanswered_requests(report: Report) -> str:
    """Describe the calls without an answer and what they may have cost; empty without such calls."""
    cost = report.cost
    if not cost.lost:
        return ""
    cost_phrase = (
        "what they may have cost is not known" if cost.lost_usd is None else f"up to {format_usd(cost.lost_usd)}"
    )
    # `lost` counts calls without an answer.
    noun_phrase = "request was" if cost.lost == 1 else "requests were"
    timing = "in flight or about to go out when a run was cut short, or are now"
    return f" {format_count(cost.lost)} more {noun_phrase} {timing}: paid for perhaps, {cost_phrase}."


def _describe_known_cost(report: Report) -> str:
    """Describe answers, requests, tokens and their cost; a lower bound where some prices are unknown."""
    total = report.cost.total
    if not total.calls:
        return "No call is recorded: the scores were imported, and what they cost is not known."
    tokens = format_count(total.prompt_tokens + total.completion_tokens)
    answers_to_calls = f"{pluralize(total.answers, 'answer')} to {pluralize(total.calls, 'call')}"
    usage_sentence = f"{answers_to_calls} took {pluralize(total.attempts, 'request')} and {tokens} tokens."
    if total.usd is None:
        return f"{usage_sentence} No answer has a known price, so the cost is unknown, which is not nothing."
    if total.lower_bound:
        return (
            f"{usage_sentence} They cost at least {format_usd(total.usd)}: {pluralize(total.unpriced, 'answer')} "
            f"{'has' if total.unpriced == 1 else 'have'} no known price."
        )
    return f"{usage_sentence} They cost {format_usd(total.usd)}."
