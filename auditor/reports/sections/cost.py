"""Section on the cost of an audit, its unknown and estimated parts, and the calls that were saved."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.reports.data.cost import CostReport, CostRow, SavingsRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, CountShare, Disclosure, LowerBound, Paragraph, Reason, Section
from auditor.reports.number_format import format_count, format_percent, format_usd, pluralize
from auditor.reports.sections.phrasing import join_with_and, tabulate


def build_cost_section(report: Report) -> Section:
    """Build the section on cost, which every report has."""
    cost = report.cost
    table = tabulate(
        "cost-by-model",
        "Cost by model and purpose",
        "Requests include retries, answers those that other audits recorded. From cache: share of the prompt tokens, "
        "where providers report it. Without price: answers whose price is unknown; ≥ marks a lower bound.",
        cost.rows,
        CostRow,
        {
            "from_cache": lambda row: (
                None
                if row.sums.known_cached_tokens is None or row.excess_cached_tokens
                else CountShare(row.sums.cached_tokens, row.sums.prompt_tokens_with_cache_count)
            ),
            "usd": lambda row: (
                Reason("unknown") if row.usd is None else LowerBound(row.usd) if row.lower_bound else row.usd
            ),
            "reasoning_usd": lambda row: (
                Reason("unknown")
                if row.reasoning_usd is None and row.sums.known_reasoning_tokens is not None
                else row.reasoning_usd
            ),
        },
        cost.total.model_copy(update={"name": "All", "purpose": ""}),
    )
    paragraphs = [" ".join(describe_cost(cost)), *map(describe_savings, report.savings)]
    blocks: list[Block] = [
        Paragraph(paragraphs[0], "finding"),
        *map(Paragraph, paragraphs[1:]),
        *([Disclosure("Calls, tokens and cost by model", [table])] if cost.rows else []),
    ]
    return Section("cost", "What did it cost?", blocks, "Cost")


def describe_cost(cost: CostReport) -> Iterator[str]:
    """Yield the sentences on the cost, its estimated part, cached tokens and calls without an answer."""
    total, sums = cost.total, cost.total.sums
    yield from _describe_known_cost(total)
    if total.estimated_usd:
        yield (
            f"Of this, {format_usd(total.estimated_usd)} is an estimate: "
            f"{pluralize(sums.estimated_attempts, 'request')} returned no usable token counts or no answer. Prompt "
            "tokens are estimated as characters / 4, completion tokens as max_tokens, or as the model’s maximum if "
            "unset."
        )
    if sums.answers and sums.known_cached_tokens is not None and not total.excess_cached_tokens:
        n_tokens = sums.prompt_tokens_with_cache_count
        scope = "" if n_tokens == sums.prompt_tokens else " in answers that report this"
        share = format_percent(sums.cached_tokens, n_tokens)
        yield f"Of the prompt tokens{scope}, providers read {share} from their caches."
    if sums.known_reasoning_tokens is not None and sums.completion_tokens:
        amount = "at an unknown cost" if total.reasoning_usd is None else f"for {format_usd(total.reasoning_usd)}"
        yield (
            f"Of the completion tokens, {format_percent(sums.reasoning_tokens, sums.completion_tokens)} were hidden "
            f"reasoning, {amount}, as far as providers report it."
        )
    if lost_note := describe_lost_requests(cost):
        yield lost_note


def describe_lost_requests(cost: CostReport) -> str:
    """Say how many requests an interrupted run may have paid for without an answer; empty if there are none."""
    if not cost.lost:
        return ""
    amount = "the amount is unknown" if cost.lost_usd is None else f"up to {format_usd(cost.lost_usd)}"
    return (
        f"{pluralize(cost.lost, 'further request')} without an answer may have been charged, {amount}. They were "
        "in flight, or about to be sent, when a run was interrupted, or are so now, or in a batch that was not "
        "collected."
    )


def _describe_known_cost(total: CostRow) -> Iterator[str]:
    """Yield the sentences on the known cost, a lower bound where prices are unknown, and on what it was spent."""
    sums = total.sums
    if not sums.calls:
        yield "No calls are recorded: the results were imported, and their cost is not known."
        return
    unpriced = f"{pluralize(sums.unpriced, 'answer')} {'has' if sums.unpriced == 1 else 'have'} no known price"
    if total.usd is None:
        yield "The cost is unknown, which does not mean zero: no answer has a known price."
    elif total.lower_bound:
        excess = "some answers report more cached tokens than prompt tokens, so that the latter are incomplete"
        reasons = [*([unpriced] if sums.unpriced else []), *([excess] if total.excess_cached_tokens else [])]
        yield f"The audit cost at least {format_usd(total.usd)}: {join_with_and(reasons)}."
    else:
        yield f"The audit cost {format_usd(total.usd)}."
    yield (
        f"{pluralize(sums.calls, 'call')} received {pluralize(sums.answers, 'answer')}, with "
        f"{pluralize(sums.attempts, 'request')} and {format_count(sums.prompt_tokens + sums.completion_tokens)} "
        "tokens."
    )


def describe_savings(row: SavingsRow) -> str:
    """State how many calls of a stage were made, compared with the full design, and which settings saved the others."""
    noun, qualifier = ("answers", "") if row.stage == "direct" else ("verdicts", "about ")
    setting = "this setting" if len(row.means) == 1 else "these settings"
    return (
        f"{format_count(row.made)} {noun} were requested ({format_percent(row.made, row.full)} of the full design), "
        f"because of {join_with_and(row.means)}. Without {setting}, it would be {qualifier}{format_count(row.full)}."
    )
