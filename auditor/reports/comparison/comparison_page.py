"""A comparison in words, tables and plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from auditor.reports.comparison.schema import ComparisonReport, SeriesDifference, SeriesPairComparison
from auditor.reports.comparison.verdict_sections import (
    format_p_in_sentence,
    format_signed_estimate,
    resolution_section,
    resolution_sentence,
    verdict_section,
    verdict_sentence,
)
from auditor.reports.pages.number_format import (
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
"""Pairs with tables of their own."""


def build_comparison_page(comparison: ComparisonReport) -> ReportPage:
    """The whole comparison."""
    chapters = [_overall_section(comparison), _coverage_section(comparison)] if comparison.pairs else []
    for pair in comparison.pairs[:MAX_DETAILED]:
        chapters += _pair_sections(pair, is_only_pair=len(comparison.pairs) == 1)
    if len(comparison.pairs) > MAX_DETAILED:
        text = f"Regions, countries and topics are shown for the first {MAX_DETAILED} pairs; --json has them for all."
        chapters.append(PageSection("Not shown", [text]))
    chapters += [verdict_section(part) for part in comparison.judges]
    chapters += [resolution_section(part) for part in comparison.settlements]
    names = list(dict.fromkeys([*(s.label for s in comparison.series), *_judge_names(comparison)]))
    return ReportPage(
        kicker="Comparison",
        title=" · ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else ""),
        subtitle=f"Measured against {comparison.survey}" if comparison.survey else "Verdicts on the same traces",
        headline=comparison_headline(comparison),
        bullets=[
            *(
                pair_sentence(pair) for pair in comparison.pairs[:6] if len(comparison.pairs) > 1
            ),  # one is the answer itself
            *(verdict_sentence(p.verdicts) for p in comparison.pairs[:6] if p.verdicts),
            *map(resolution_sentence, comparison.settlements),
        ],
        warnings=list(_comparison_warnings(comparison)),
        sections=chapters,
    )


def comparison_headline(comparison: ComparisonReport) -> str:
    """The whole of the answer in one sentence."""
    if not comparison.pairs:
        return verdict_sentence(comparison.judges[0])
    if len(comparison.pairs) == 1:
        return pair_sentence(comparison.pairs[0])
    counts = {word: sum(p.mae.change == word for p in comparison.pairs) for word in CHANGE_PHRASES}
    told = [f"{n} {word}" for word, n in counts.items() if n]
    return f"Of {pluralize(len(comparison.pairs), 'pair')}, by mean error the second is: {', '.join(told)}."


def pair_sentence(pair: SeriesPairComparison) -> str:
    """One pair in one sentence."""
    error = pair.mae
    if error.difference.value is None:
        return _correlation_sentence(pair)
    between = _format_interval_and_p(error)
    return (
        f"{pair.second} {CHANGE_PHRASES[error.change]} {pair.first}: its mean error differs by "
        f"{format_signed(error.difference.value)} ({between}) on {pluralize(pair.shared, 'shared cell')}."
    )


def _correlation_sentence(pair: SeriesPairComparison) -> str:
    """One pair in one sentence, where there is no mean error to compare."""
    r, why = pair.pearson_r, pair.mae.difference.reason
    if r.difference.value is None:
        return f"{pair.second} cannot be compared with {pair.first}: {why}."
    return (
        f"{pair.second} {CHANGE_PHRASES[r.change]} {pair.first} by r, which differs by "
        f"{format_signed(r.difference.value)} ({_format_interval_and_p(r)}) on "
        f"{pluralize(pair.shared, 'shared cell')}; mean errors cannot be compared: {why}."
    )


def _format_interval_and_p(difference: SeriesDifference) -> str:
    d = difference.difference
    if d.ci_low is None:
        return f"no interval: {d.reason}"
    return (
        f"95% interval {format_interval(d.ci_low, d.ci_high)}, {format_p_in_sentence(difference.p_holm)} after Holm’s "
        "correction"
    )


def _comparison_warnings(comparison: ComparisonReport) -> Iterator[str]:
    for series in comparison.series:
        if not series.complete:
            yield f"The audit of {series.label} has not run to its end; its figures are provisional."
    for pair in comparison.pairs:
        if pair.bounds is not None:
            low, high = pair.bounds
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


# --- chapters ---------------------------------------------------------------------------------------------------


def _overall_section(comparison: ComparisonReport) -> PageSection:
    text = (
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
            f"{p.second} against {p.first}",
            *_difference_cells(p.mae),
            *_difference_cells(p.pearson_r),
            format_count(p.shared),
        ]
        for p in comparison.pairs
    ]
    grid = PageTable("Overall, on the shared cells of each pair.", columns, rows)
    plots = []
    if len(comparison.pairs) <= MAX_PLOTTED:
        parts = list(zip(_pair_labels(comparison), (p.mae for p in comparison.pairs), strict=True))
        plots = [_difference_plot(parts, "Difference of MAE", "Differences of mean absolute error, second less first")]
    return PageSection("Overall", [text], plots=[p for p in plots if p], tables=[grid])


def _pair_labels(comparison: ComparisonReport) -> list[str]:
    """What a pair is called beside a plot: its model alone, where both sides have the same and no other pair has it."""
    model = {series.label: series.model for series in comparison.series}
    whole = [f"{p.second} – {p.first}" for p in comparison.pairs]
    short = [
        model[p.second] if model[p.second] == model[p.first] else name
        for p, name in zip(comparison.pairs, whole, strict=True)
    ]
    return short if len(set(short)) == len(short) else whole


def _difference_cells(difference: SeriesDifference) -> list[str]:
    p = "–" if difference.p_holm is None else format_p_value(difference.p_holm)
    return [
        format_number(difference.first),
        format_number(difference.second),
        format_signed_estimate(difference.difference),
        p,
        difference.change,
    ]


def _coverage_section(comparison: ComparisonReport) -> PageSection:
    rows = [
        [
            s.label,
            format_count(s.asked),
            format_count(s.scored),
            format_percent(s.scored, s.asked),
            "yes" if s.complete else "no",
        ]
        for s in comparison.series
    ]
    grids = [PageTable("Cells with a usable score.", ["Series", "Cells asked", "Scored", "Share", "Audit whole"], rows)]
    pairs = [
        [
            f"{p.second} against {p.first}",
            *map(format_count, (p.shared, p.only_first, p.only_second, p.neither, p.truth_differs)),
        ]
        for p in comparison.pairs
    ]
    columns = ["Pair", "Shared", "Only the first", "Only the second", "Neither", "Other people’s score"]
    return PageSection("Coverage", tables=[*grids, PageTable("What the pairs share.", columns, pairs)])


def _pair_sections(pair: SeriesPairComparison, *, is_only_pair: bool) -> Iterator[PageSection]:
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
    told = [
        f"{word.capitalize()}: {_join_changed_groups(differences, word)}."
        for word in ("better", "worse")
        if _join_changed_groups(differences, word)
    ]
    none = f"No {group_noun} can be told to have got better or worse." if not told else ""
    columns = [group_noun.capitalize(), "MAE first", "MAE second", "Difference", "p (Holm)", "The second is", "Cells"]
    rows = [[part.name, *_difference_cells(part), format_count(part.difference.n)] for part in differences]
    caption = (
        f"Difference of MAE by {group_noun}, worst first. Intervals: {interval_note}; p-values corrected for all, in "
        "all pairs."
    )
    plots = [
        _difference_plot(
            [(part.name, part) for part in differences], "Difference of MAE", f"Differences of MAE by {group_noun}"
        )
    ]
    return PageSection(
        title, [none] if none else [], told, [p for p in plots if p], [PageTable(caption, columns, rows)]
    )


def _join_changed_groups(differences: Iterable[SeriesDifference], change: str) -> str:
    return ", ".join(f"{p.name} ({format_signed(p.difference.value)})" for p in differences if p.change == change)


def _difference_plot(
    labelled_differences: Sequence[tuple[str, SeriesDifference]], label: str, title: str
) -> PagePlot | None:
    known = [(name, part.difference) for name, part in labelled_differences if part.difference.value is not None]
    if not known or len(known) > MAX_PLOTTED:
        return None
    axis = difference_axis((v for _, d in known for v in (d.value, d.ci_low, d.ci_high)), label)
    marks = [IntervalMark(name, d.value, d.ci_low, d.ci_high, format_signed(d.value)) for name, d in known]
    caption = f"{title}, with 95% intervals (not corrected). Left of the dashed line the second is nearer to people."
    return PagePlot(interval_plot(marks, axis, title, caption), caption)


def _judge_names(comparison: ComparisonReport) -> list[str]:
    return [name for part in comparison.judges for name in (part.first, part.second)]
