"""Sections of a comparison on verdicts of judges and on settled conflicts."""

from __future__ import annotations

from auditor.metrics.estimate import Estimate
from auditor.reports.data.comparison.schema import ResolutionComparison, VerdictComparison, VerdictFlipRow
from auditor.reports.number_format import (
    format_count,
    format_interval,
    format_p_value,
    format_percent,
    format_signed,
    pluralize,
)
from auditor.reports.pages.report_page import PageSection, PageTable

RESOLVER_LABELS = {"majority": "judges", "person": "people"}
SAME_ANSWER_LABELS = {True: "the same", False: "another", None: "not recorded"}


def verdict_sentence(comparison: VerdictComparison) -> str:
    """Describe how often two sides' verdicts agree, and in which direction they changed."""
    n_same = comparison.both_valid + comparison.both_invalid
    p_text = (
        ""
        if comparison.p_value is None
        else f" ({format_p_in_sentence(comparison.p_value)} by a sign-flip test over cells)"
    )
    shared_unit = "the same answer" if comparison.about == "answers" else "the same cell"
    sentence = (
        f"{comparison.first} and {comparison.second} rule alike in {format_percent(n_same, comparison.n)} of "
        f"{pluralize(comparison.n, 'verdict')} on {shared_unit}, of {pluralize(comparison.traces, 'trace')}; "
        f"{format_count(comparison.to_valid)} went from INVALID to VALID and {format_count(comparison.to_invalid)} "
        f"from VALID to INVALID{p_text}."
    )
    return (
        sentence
        if comparison.about == "answers"
        else f"{sentence} No answer is the same in both, so not only the judges changed."
    )


def verdict_section(comparison: VerdictComparison) -> PageSection:
    """Build the section on the verdicts of two sides, with a table of those that differ.

    `comparison.change` is the share of VALID on the second side minus the first; `flips` are the differing verdicts, of
    which at most `max_listed` are listed and `not_listed` more are not.
    """
    columns = [
        "Country",
        "Topic",
        "Model",
        "Judge",
        "Other judge",
        "Sample",
        comparison.first,
        comparison.second,
        "Answer",
    ]
    paragraphs = [
        verdict_sentence(comparison),
        f"Agreement of the two beyond chance (Scott’s pi): {format_signed_estimate(comparison.kappa)}.",
    ]
    paragraphs.append(
        f"Share of VALID, second less first: {format_signed_estimate(comparison.change)}. Intervals are over cells."
    )
    if comparison.other_answers:
        paragraphs.append(
            f"{pluralize(comparison.other_answers, 'verdict')} more are on other answers, and in none of these figures."
        )
    if comparison.not_listed:
        paragraphs.append(f"{pluralize(comparison.not_listed, 'flip')} more are not listed; --flips N lists more.")
    tables = (
        [PageTable("Verdicts that differ.", columns, [_flip_cells(flip) for flip in comparison.flips])]
        if comparison.flips
        else []
    )
    return PageSection(f"Verdict flips: {comparison.first} and {comparison.second}", paragraphs, tables=tables)


def _flip_cells(flip: VerdictFlipRow) -> list[str]:
    """Table cells of one verdict that differs between the sides, in the order of the columns of `verdict_section`."""
    cells = [
        flip.country,
        flip.topic,
        flip.model,
        flip.judge,
        flip.other_judge,
        format_count(flip.sample),
        flip.first,
        flip.second,
    ]
    return [*cells, SAME_ANSWER_LABELS[flip.same_answer]]


def resolution_sentence(comparison: ResolutionComparison) -> str:
    """State how many conflicts two audits settled for different sides."""
    opening = f"{comparison.first} and {comparison.second} have {pluralize(comparison.shared, 'conflict')} in common"
    if comparison.n == 0:
        return f"{opening}, none of which both settled for a side."
    return (
        f"{opening}; of {format_count(comparison.n)} that both settled for a side, {format_count(comparison.flipped)} "
        f"({_format_percent_estimate(comparison.share)}) went the other way."
    )


def resolution_section(comparison: ResolutionComparison) -> PageSection:
    """Build the section on the conflicts of two audits, with a table of those settled for different sides."""
    paragraphs = [resolution_sentence(comparison)]
    one_sided = [
        f"only {comparison.first} settled {format_count(comparison.only_first)}",
        f"only {comparison.second} {format_count(comparison.only_second)}",
    ]
    paragraphs.append(
        f"Of the conflicts in common {', '.join(one_sided)}, and neither {format_count(comparison.neither)}."
    )
    if comparison.not_listed:
        paragraphs.append(f"{pluralize(comparison.not_listed, 'conflict')} more are not listed; --flips N lists more.")
    columns = ["Country", "Topic", f"Upheld in {comparison.first}", "By", f"Upheld in {comparison.second}", "By"]
    rows = [
        [
            flip.country,
            flip.topic,
            flip.first_winner,
            RESOLVER_LABELS[flip.first_by],
            flip.second_winner,
            RESOLVER_LABELS[flip.second_by],
        ]
        for flip in comparison.flips
    ]
    tables = [PageTable("Conflicts settled for one side and for the other.", columns, rows)] if rows else []
    return PageSection(f"Settlement flips: {comparison.first} and {comparison.second}", paragraphs, tables=tables)


def _format_percent_estimate(estimate: Estimate) -> str:
    """Format a share in whole percent with its 95% interval; the share must have a value and an interval."""
    value, low, high = (f"{100 * (share or 0.0):.0f}%" for share in (estimate.value, estimate.ci_low, estimate.ci_high))
    return f"{value}, 95% interval {low} to {high}"


def format_signed_estimate(estimate: Estimate) -> str:
    """Format a signed estimate with its interval, or the reason it is missing."""
    if estimate.value is None:
        return f"not measurable: {estimate.reason}"
    interval_text = (
        format_interval(estimate.ci_low, estimate.ci_high) if estimate.ci_low is not None else estimate.reason
    )
    return f"{format_signed(estimate.value)} ({interval_text})"


def format_p_in_sentence(p: float | None) -> str:
    """Format a p-value for a sentence, as "p = 0.012" or "p < 0.001"."""
    p_text = format_p_value(p)
    return f"p {p_text}" if p_text.startswith("<") else f"p = {p_text}"
