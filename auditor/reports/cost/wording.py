"""What an audit cost in words, and what is not known of that."""

from __future__ import annotations

from auditor.reports.cost.savings import SavingRow, told
from auditor.reports.cost.schema import CostRow
from auditor.reports.pages.number_format import NONE, count, plural, share, usd
from auditor.reports.report_schema import Report


def saving(row: SavingRow) -> str:
    """What one stage asked, beside what everything would have been."""
    return told(row)


def cost(report: Report) -> str:
    """What it cost, and what is not known of that."""
    return f"{_known_cost(report)}{_estimated(report.cost.total)}{_kept(report.cost.total)}{_lost(report)}"


def kept(row: CostRow) -> str:
    """Share of the tokens in that were in the provider's cache."""
    return NONE if row.cached_tokens is None else share(row.cached_tokens, row.told_tokens)


def _estimated(total: CostRow) -> str:
    if not total.estimated_usd:
        return ""
    return (
        f" Of this, {usd(total.estimated_usd)} is an estimate: {plural(total.estimated_requests, 'request')} brought "
        "no usable token counts, or no answer that arrived. The prompt is estimated as characters / 4, the answer as "
        "max_tokens, or as the model's largest where none was set."
    )


def _kept(total: CostRow) -> str:
    if not total.answers or total.cached_tokens is None:
        return ""
    some = "" if total.told_tokens == total.prompt_tokens else ", of those of which it is told"
    return (
        f" Providers had {share(total.cached_tokens, total.told_tokens)} of the tokens in from earlier prompts{some}."
    )


def _lost(report: Report) -> str:
    part = report.cost
    if not part.lost:
        return ""
    most = "what they may have cost is not known" if part.lost_usd is None else f"up to {usd(part.lost_usd)}"
    were = "request was" if part.lost == 1 else "requests were"
    when = "in flight or about to go out when a run was cut short, or are now"
    return f" {count(part.lost)} more {were} {when}: paid for perhaps, {most}."


def _known_cost(report: Report) -> str:
    total = report.cost.total
    if not total.calls:
        return "No call is recorded: the scores were imported, and what they cost is not known."
    tokens = count(total.prompt_tokens + total.completion_tokens)
    asked = f"{plural(total.answers, 'answer')} to {plural(total.calls, 'call')}"
    told = f"{asked} took {plural(total.attempts, 'request')} and {tokens} tokens."
    if total.usd is None:
        return f"{told} No answer has a known price, so the cost is unknown, which is not nothing."
    if total.lower_bound:
        return (
            f"{told} They cost at least {usd(total.usd)}: {plural(total.unpriced, 'answer')} "
            f"{'has' if total.unpriced == 1 else 'have'} no known price."
        )
    return f"{told} They cost {usd(total.usd)}."
