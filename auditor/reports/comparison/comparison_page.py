"""Build the page of a comparison: sentences, tables and plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from auditor.reports.comparison.verdict_sections import (
    format_p_in_sentence,
    format_signed_estimate,
    resolution_section,
    resolution_sentence,
    verdict_section,
    verdict_sentence,
)
from auditor.reports.data.comparison.schema import ComparisonReport, SeriesDifference, SeriesPairComparison
from auditor.reports.number_format import (
    format_count,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    format_signed,
    pluralize,
)
from auditor.reports.pages.report_page import PagePlot, PageSection, PageTable, ReportPage
from auditor.reports.pages.svg_charts import IntervalMark, difference_axis, interval_plot

METRIC_NAMES = ("r", "MAE")
CHANGE_PHRASES = {
    "better": "is nearer to people than",
    "worse": "is further from people than",
    "not told apart": "cannot be told apart from",
    "not measurable": "cannot be compared with",
}
MAX_PLOTTED = 60
MAX_DETAILED = 10
"""Pairs with tables by region, country and topic."""


def build_comparison_page(comparison: ComparisonReport) -> ReportPage:
    """Build the page of a comparison: overall, coverage, each pair in detail, judges' verdicts, settled conflicts."""
    sections = [_overall_section(comparison), _coverage_section(comparison)] if comparison.pairs else []
    for pair in comparison.pairs[:MAX_DETAILED]:
        sections += _pair_sections(pair, is_only_pair=len(comparison.pairs) == 1)
    if len(comparison.pairs) > MAX_DETAILED:
        omitted_note = (
            f"Regions, countries and topics are shown for the first {MAX_DETAILED} pairs; --json has them for all."
        )
        sections.append(PageSection("Not shown", [omitted_note]))
    sections += [verdict_section(judge_comparison) for judge_comparison in comparison.judges]
    sections += [resolution_section(resolution_comparison) for resolution_comparison in comparison.settlements]
    names = list(dict.fromkeys([*(series.label for series in comparison.series), *_judge_names(comparison)]))
    return ReportPage(
        kicker="Comparison",
        title=" · ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else ""),
        subtitle=f"Measured against {comparison.survey}" if comparison.survey else "Verdicts on the same traces",
        headline=comparison_headline(comparison),
        bullets=[
            *(
                pair_sentence(pair) for pair in comparison.pairs[:6] if len(comparison.pairs) > 1
            ),  # a single pair is the headline
            *(verdict_sentence(pair.verdicts) for pair in comparison.pairs[:6] if pair.verdicts),
            *map(resolution_sentence, comparison.settlements),
        ],
        warnings=list(_comparison_warnings(comparison)),
        sections=sections,
    )


def comparison_headline(comparison: ComparisonReport) -> str:
    """Summarize the comparison in one sentence."""
    if not comparison.pairs:
        return verdict_sentence(comparison.judges[0])
    if len(comparison.pairs) == 1:
        return pair_sentence(comparison.pairs[0])
    counts = {change: sum(pair.mae.change == change for pair in comparison.pairs) for change in CHANGE_PHRASES}
    change_counts = [f"{n} {change}" for change, n in counts.items() if n]
    return f"Of {pluralize(len(comparison.pairs), 'pair')}, by mean error the second is: {', '.join(change_counts)}."


def pair_sentence(pair: SeriesPairComparison) -> str:
    """State whether the second series of a pair is nearer to people than the first, by MAE or, without it, by r."""
    mae = pair.mae
    if mae.difference.value is None:
        return _correlation_sentence(pair)
    interval_text = _format_interval_and_p(mae)
    return (
        f"{pair.second} {CHANGE_PHRASES[mae.change]} {pair.first}: its mean error differs by "
        f"{format_signed(mae.difference.value)} ({interval_text}) on {pluralize(pair.shared, 'shared cell')}."
    )


def _correlation_sentence(pair: SeriesPairComparison) -> str:
    """State the difference of r of a pair that has no MAE."""
    r, mae_reason = pair.pearson_r, pair.mae.difference.reason
    if r.difference.value is None:
        return f"{pair.second} cannot be compared with {pair.first}: {mae_reason}."
    return (
        f"{pair.second} {CHANGE_PHRASES[r.change]} {pair.first} by r, which differs by "
        f"{format_signed(r.difference.value)} ({_format_interval_and_p(r)}) on "
        f"{pluralize(pair.shared, 'shared cell')}; mean errors cannot be compared: {mae_reason}."
    )


def _format_interval_and_p(difference: SeriesDifference) -> str:
    """Format the interval and corrected p-value of a difference, or the reason why there is no interval."""
    estimate = difference.difference
    if estimate.ci_low is None:
        return f"no interval: {estimate.reason}"
    return (
        f"95% interval {format_interval(estimate.ci_low, estimate.ci_high)}, "
        f"{format_p_in_sentence(difference.p_holm)} after Holm’s correction"
    )


def _comparison_warnings(comparison: ComparisonReport) -> Iterator[str]:
    """Yield reasons for caution: unfinished audits, unequal coverage, different scores of people."""
    for series in comparison.series:
        if not series.complete:
            yield f"The audit of {series.label} has not run to its end; its figures are provisional."
    for pair in comparison.pairs:
        if pair.bounds is not None:
            low, high = pair.bounds  # worst-case bounds of the difference of MAE over all cells
            yield (
                f"{pair.first} and {pair.second} answered different shares of the cells. What is said holds for the "
                "cells that both answered; over all cells the difference of mean error may be anything from "
                f"{format_signed(low)} to {format_signed(high)}."
            )
        if pair.truth_differs:
            yield (
                f"{pluralize(pair.truth_differs, 'cell')} of {pair.first} and {pair.second} have another people’s "
                "score in each audit and are left out."
            )


# --- sections ---------------------------------------------------------------------------------------------------


def _overall_section(comparison: ComparisonReport) -> PageSection:
    """Build the section on the overall differences of MAE and r: a row per pair, and a plot unless there are many."""
    explanation = (
        "Differences are the second’s figure less the first’s, over the cells that both have. The second is nearer to "
        "people where the difference of mean absolute error (MAE) is negative, or that of r positive. Intervals "
        "are over other countries and other topics (a jackknife of both, the same for both sides); "
        f"p-values are corrected for {pluralize(comparison.tests, 'pair')} by Holm’s method. A change is named where "
        "the corrected p is below 0.05."
    )
    columns = ["Second against first", "MAE first", "MAE second", "Difference", "p (Holm)", "The second is"]
    columns += ["r first", "r second", "Difference of r", "p (Holm) of r", "By r", "Cells"]
    rows = [
        [
            f"{pair.second} against {pair.first}",
            *_difference_cells(pair.mae),
            *_difference_cells(pair.pearson_r),
            format_count(pair.shared),
        ]
        for pair in comparison.pairs
    ]
    table = PageTable("Overall, on the shared cells of each pair.", columns, rows)
    plots = []
    if len(comparison.pairs) <= MAX_PLOTTED:
        labelled_differences = list(zip(_pair_labels(comparison), (pair.mae for pair in comparison.pairs), strict=True))
        plots = [
            _difference_plot(
                labelled_differences, "Difference of MAE", "Differences of mean absolute error, second less first"
            )
        ]
    return PageSection("Overall", [explanation], plots=[plot for plot in plots if plot], tables=[table])


def _pair_labels(comparison: ComparisonReport) -> list[str]:
    """Labels of the pairs in plots: only the model, if it is the same on both sides and the labels stay unique."""
    model_by_label = {series.label: series.model for series in comparison.series}
    full_labels = [f"{pair.second} – {pair.first}" for pair in comparison.pairs]
    short_labels = [
        model_by_label[pair.second] if model_by_label[pair.second] == model_by_label[pair.first] else full_label
        for pair, full_label in zip(comparison.pairs, full_labels, strict=True)
    ]
    return short_labels if len(set(short_labels)) == len(short_labels) else full_labels


def _difference_cells(difference: SeriesDifference) -> list[str]:
    """Table cells of a difference: first, second, difference with interval, corrected p, change."""
    p_text = "–" if difference.p_holm is None else format_p_value(difference.p_holm)
    return [
        format_number(difference.first),
        format_number(difference.second),
        format_signed_estimate(difference.difference),
        p_text,
        difference.change,
    ]


def _coverage_section(comparison: ComparisonReport) -> PageSection:
    """Build the section on coverage: a table of the scored cells per series, and one of the cells per pair."""
    rows = [
        [
            series.label,
            format_count(series.asked),
            format_count(series.scored),
            format_percent(series.scored, series.asked),
            "yes" if series.complete else "no",
        ]
        for series in comparison.series
    ]
    tables = [
        PageTable("Cells with a usable score.", ["Series", "Cells asked", "Scored", "Share", "Audit whole"], rows)
    ]
    pair_rows = [
        [
            f"{pair.second} against {pair.first}",
            *map(format_count, (pair.shared, pair.only_first, pair.only_second, pair.neither, pair.truth_differs)),
        ]
        for pair in comparison.pairs
    ]
    columns = ["Pair", "Shared", "Only the first", "Only the second", "Neither", "Other people’s score"]
    return PageSection("Coverage", tables=[*tables, PageTable("What the pairs share.", columns, pair_rows)])


def _pair_sections(pair: SeriesPairComparison, *, is_only_pair: bool) -> Iterator[PageSection]:
    """Yield the sections of one pair: by region, country and topic, and verdicts."""
    name = "" if is_only_pair else f": {pair.second} against {pair.first}"
    if pair.regions:
        yield _group_section(f"By region{name}", pair.regions, "region", "over other countries and other topics")
    if pair.by_country:
        yield _group_section(f"By country{name}", pair.by_country, "country", "over its topics, taken as independent")
    if pair.by_topic:
        yield _group_section(f"By topic{name}", pair.by_topic, "topic", "over its countries, taken as independent")
    if pair.verdicts is not None:
        yield verdict_section(pair.verdicts)


def _group_section(
    title: str, differences: Sequence[SeriesDifference], group_noun: str, interval_note: str
) -> PageSection:
    """Build a section on differences of MAE by region, country or topic: what changed, a plot and a table.

    Args:
        group_noun: "region", "country" or "topic".
        interval_note: what the intervals are over, for the caption.
    """
    change_sentences = [
        f"{change.capitalize()}: {_join_changed_groups(differences, change)}."
        for change in ("better", "worse")
        if _join_changed_groups(differences, change)
    ]
    no_change_note = f"No {group_noun} can be told to have got better or worse." if not change_sentences else ""
    columns = [group_noun.capitalize(), "MAE first", "MAE second", "Difference", "p (Holm)", "The second is", "Cells"]
    rows = [
        [difference.name, *_difference_cells(difference), format_count(difference.difference.n)]
        for difference in differences
    ]
    caption = (
        f"Difference of MAE by {group_noun}, worst first. Intervals: {interval_note}; p-values corrected for all, in "
        "all pairs."
    )
    plots = [
        _difference_plot(
            [(difference.name, difference) for difference in differences],
            "Difference of MAE",
            f"Differences of MAE by {group_noun}",
        )
    ]
    return PageSection(
        title,
        [no_change_note] if no_change_note else [],
        change_sentences,
        [plot for plot in plots if plot],
        [PageTable(caption, columns, rows)],
    )


def _join_changed_groups(differences: Iterable[SeriesDifference], change: str) -> str:
    """Join the names of the groups with a given change, each with its difference."""
    return ", ".join(
        f"{difference.name} ({format_signed(difference.difference.value)})"
        for difference in differences
        if difference.change == change
    )


def _difference_plot(
    labelled_differences: Sequence[tuple[str, SeriesDifference]], label: str, title: str
) -> PagePlot | None:
    """Plot differences with their intervals; None for no values, or more than `MAX_PLOTTED`."""
    measured = [
        (name, difference.difference)
        for name, difference in labelled_differences
        if difference.difference.value is not None
    ]
    if not measured or len(measured) > MAX_PLOTTED:
        return None
    axis = difference_axis(
        (bound for _, estimate in measured for bound in (estimate.value, estimate.ci_low, estimate.ci_high)), label
    )
    marks = [
        IntervalMark(name, estimate.value, estimate.ci_low, estimate.ci_high, format_signed(estimate.value))
        for name, estimate in measured
    ]
    caption = f"{title}, with 95% intervals (not corrected). Left of the dashed line the second is nearer to people."
    return PagePlot(interval_plot(marks, axis, title, caption), caption)


def _judge_names(comparison: ComparisonReport) -> list[str]:
    """Names of both sides of each comparison of two judges; repeated if a judge is in several."""
    return [
        name for judge_comparison in comparison.judges for name in (judge_comparison.first, judge_comparison.second)
    ]
