"""What judges and people ruled on either side of a comparison, in words and tables."""

from __future__ import annotations

from auditor.reports.comparison.schema import ResolutionComparison, VerdictComparison, VerdictFlipRow
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import (
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
    """How far two sides' verdicts agree, in one sentence or two."""
    same = comparison.both_valid + comparison.both_invalid
    p = (
        ""
        if comparison.p_value is None
        else f" ({format_p_in_sentence(comparison.p_value)} by a sign-flip test over cells)"
    )
    on = "the same answer" if comparison.about == "answers" else "the same cell"
    told = (
        f"{comparison.first} and {comparison.second} rule alike in {format_percent(same, comparison.n)} of "
        f"{pluralize(comparison.n, 'verdict')} on {on}, of {pluralize(comparison.traces, 'trace')}; "
        f"{format_count(comparison.to_valid)} went from INVALID to VALID and {format_count(comparison.to_invalid)} "
        f"from VALID to INVALID{p}."
    )
    return (
        told
        if comparison.about == "answers"
        else f"{told} No answer is the same in both, so not only the judges changed."
    )


def verdict_section(comparison: VerdictComparison) -> PageSection:
    """Verdicts of two sides, and those that differ."""
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
    text = [
        verdict_sentence(comparison),
        f"Agreement of the two beyond chance (Scott’s pi): {format_signed_estimate(comparison.kappa)}.",
    ]
    text.append(
        f"Share of VALID, second less first: {format_signed_estimate(comparison.change)}. Intervals are over cells."
    )
    if comparison.other_answers:
        text.append(
            f"{pluralize(comparison.other_answers, 'verdict')} more are on other answers, and in none of these figures."
        )
    if comparison.not_listed:
        text.append(f"{pluralize(comparison.not_listed, 'flip')} more are not listed; --flips N lists more.")
    grids = (
        [PageTable("Verdicts that differ.", columns, [_flip_cells(f) for f in comparison.flips])]
        if comparison.flips
        else []
    )
    return PageSection(f"Verdict flips: {comparison.first} and {comparison.second}", text, tables=grids)


def _flip_cells(flip: VerdictFlipRow) -> list[str]:
    told = [
        flip.country,
        flip.topic,
        flip.model,
        flip.judge,
        flip.other_judge,
        format_count(flip.sample),
        flip.first,
        flip.second,
    ]
    return [*told, SAME_ANSWER_LABELS[flip.same_answer]]


def resolution_sentence(comparison: ResolutionComparison) -> str:
    """How many conflicts were settled otherwise, in one sentence."""
    found = f"{comparison.first} and {comparison.second} have {pluralize(comparison.shared, 'conflict')} in common"
    if comparison.n == 0:
        return f"{found}, none of which both settled for a side."
    return (
        f"{found}; of {format_count(comparison.n)} that both settled for a side, {format_count(comparison.flipped)} "
        f"({_format_percent_estimate(comparison.share)}) went the other way."
    )


def resolution_section(comparison: ResolutionComparison) -> PageSection:
    """Conflicts that two audits share, and those that they settled for different sides."""
    text = [resolution_sentence(comparison)]
    rest = [
        f"only {comparison.first} settled {format_count(comparison.only_first)}",
        f"only {comparison.second} {format_count(comparison.only_second)}",
    ]
    text.append(f"Of the conflicts in common {', '.join(rest)}, and neither {format_count(comparison.neither)}.")
    if comparison.not_listed:
        text.append(f"{pluralize(comparison.not_listed, 'conflict')} more are not listed; --flips N lists more.")
    columns = ["Country", "Topic", f"Upheld in {comparison.first}", "By", f"Upheld in {comparison.second}", "By"]
    rows = [
        [f.country, f.topic, f.first_winner, RESOLVER_LABELS[f.first_by], f.second_winner, RESOLVER_LABELS[f.second_by]]
        for f in comparison.flips
    ]
    grids = [PageTable("Conflicts settled for one side and for the other.", columns, rows)] if rows else []
    return PageSection(f"Settlement flips: {comparison.first} and {comparison.second}", text, tables=grids)


def _format_percent_estimate(estimate: Estimate) -> str:
    value, low, high = (f"{100 * (v or 0.0):.0f}%" for v in (estimate.value, estimate.ci_low, estimate.ci_high))
    return f"{value}, 95% interval {low} to {high}"


def format_signed_estimate(estimate: Estimate) -> str:
    """A signed figure with its interval, or why there is none."""
    if estimate.value is None:
        return f"not measurable: {estimate.reason}"
    between = format_interval(estimate.ci_low, estimate.ci_high) if estimate.ci_low is not None else estimate.reason
    return f"{format_signed(estimate.value)} ({between})"


def format_p_in_sentence(p: float | None) -> str:
    """A p-value as it stands in a sentence."""
    text = format_p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
