"""A comparison in words, tables and plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from auditor.reports.comparison.schema import Comparison, DifferencePart, PairPart
from auditor.reports.comparison.verdict_sections import (
    p_text,
    settled_chapter,
    settled_sentence,
    verdict_sentence,
    verdicts_chapter,
    with_interval,
)
from auditor.reports.pages.number_format import count, interval, number, p_value, plural, share, signed
from auditor.reports.pages.report_page import Chapter, Grid, Page, Plot
from auditor.reports.pages.svg_charts import Mark, difference_axis, interval_plot

HEAD = ("r", "MAE")
ONE_WORDS = {
    "better": "is nearer to people than",
    "worse": "is further from people than",
    "not told apart": "cannot be told apart from",
    "not measurable": "cannot be compared with",
}
MAX_PLOTTED = 60
MAX_DETAILED = 10
"""Pairs with tables of their own."""


def page_of(comparison: Comparison) -> Page:
    """The whole comparison."""
    chapters = [_overall(comparison), _coverage(comparison)] if comparison.pairs else []
    for pair in comparison.pairs[:MAX_DETAILED]:
        chapters += _pair(pair, alone=len(comparison.pairs) == 1)
    if len(comparison.pairs) > MAX_DETAILED:
        text = f"Regions, countries and topics are shown for the first {MAX_DETAILED} pairs; --json has them for all."
        chapters.append(Chapter("Not shown", [text]))
    chapters += [verdicts_chapter(part) for part in comparison.judges]
    chapters += [settled_chapter(part) for part in comparison.settlements]
    names = list(dict.fromkeys([*(s.label for s in comparison.series), *_judge_names(comparison)]))
    return Page(
        kicker="Comparison",
        title=" · ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else ""),
        subtitle=f"Measured against {comparison.survey}" if comparison.survey else "Verdicts on the same traces",
        answer=headline(comparison),
        points=[
            *(sentence(pair) for pair in comparison.pairs[:6] if len(comparison.pairs) > 1),  # one is the answer itself
            *(verdict_sentence(p.verdicts) for p in comparison.pairs[:6] if p.verdicts),
            *map(settled_sentence, comparison.settlements),
        ],
        warnings=list(_warnings(comparison)),
        chapters=chapters,
    )


def headline(comparison: Comparison) -> str:
    """The whole of the answer in one sentence."""
    if not comparison.pairs:
        return verdict_sentence(comparison.judges[0])
    if len(comparison.pairs) == 1:
        return sentence(comparison.pairs[0])
    counts = {word: sum(p.mae.change == word for p in comparison.pairs) for word in ONE_WORDS}
    told = [f"{n} {word}" for word, n in counts.items() if n]
    return f"Of {plural(len(comparison.pairs), 'pair')}, by mean error the second is: {', '.join(told)}."


def sentence(pair: PairPart) -> str:
    """One pair in one sentence."""
    error = pair.mae
    if error.difference.value is None:
        return _by_agreement(pair)
    between = _between(error)
    return (
        f"{pair.second} {ONE_WORDS[error.change]} {pair.first}: its mean error differs by "
        f"{signed(error.difference.value)} ({between}) on {plural(pair.shared, 'shared cell')}."
    )


def _by_agreement(pair: PairPart) -> str:
    """One pair in one sentence, where there is no mean error to compare."""
    r, why = pair.pearson_r, pair.mae.difference.reason
    if r.difference.value is None:
        return f"{pair.second} cannot be compared with {pair.first}: {why}."
    return (
        f"{pair.second} {ONE_WORDS[r.change]} {pair.first} by r, which differs by {signed(r.difference.value)} "
        f"({_between(r)}) on {plural(pair.shared, 'shared cell')}; mean errors cannot be compared: {why}."
    )


def _between(part: DifferencePart) -> str:
    d = part.difference
    if d.ci_low is None:
        return f"no interval: {d.reason}"
    return f"95% interval {interval(d.ci_low, d.ci_high)}, {p_text(part.p_holm)} after Holm’s correction"


def _warnings(comparison: Comparison) -> Iterator[str]:
    for series in comparison.series:
        if not series.complete:
            yield f"The audit of {series.label} has not run to its end; its figures are provisional."
    for pair in comparison.pairs:
        if pair.bounds is not None:
            low, high = pair.bounds
            yield (
                f"{pair.first} and {pair.second} answered different shares of the cells. What is said holds for the "
                "cells that both answered; over all cells the difference of mean error may be anything from "
                f"{signed(low)} to {signed(high)}."
            )
        if pair.truth_differs:
            yield (
                f"{plural(pair.truth_differs, 'cell')} of {pair.first} and {pair.second} have another people’s score "
                "in each audit and are left out."
            )


# --- chapters ---------------------------------------------------------------------------------------------------


def _overall(comparison: Comparison) -> Chapter:
    text = (
        "Differences are the second’s figure less the first’s, over the cells that both have. The second is nearer to "
        "people where the difference of mean absolute error (MAE) is negative, or that of r positive. Intervals "
        "are over other countries and other topics (a jackknife of both, the same for both sides); "
        f"p-values are corrected for {plural(comparison.tests, 'pair')} by Holm’s method. A change is named where the "
        "corrected p is below 0.05."
    )
    columns = ["Second against first", "MAE first", "MAE second", "Difference", "p (Holm)", "The second is"]
    columns += ["r first", "r second", "Difference of r", "p (Holm) of r", "By r", "Cells"]
    rows = [
        [
            f"{p.second} against {p.first}",
            *_figures(p.mae),
            *_figures(p.pearson_r),
            count(p.shared),
        ]
        for p in comparison.pairs
    ]
    grid = Grid("Overall, on the shared cells of each pair.", columns, rows)
    plots = []
    if len(comparison.pairs) <= MAX_PLOTTED:
        parts = list(zip(_short_names(comparison), (p.mae for p in comparison.pairs), strict=True))
        plots = [_plot(parts, "Difference of MAE", "Differences of mean absolute error, second less first")]
    return Chapter("Overall", [text], plots=[p for p in plots if p], grids=[grid])


def _short_names(comparison: Comparison) -> list[str]:
    """What a pair is called beside a plot: its model alone, where both sides have the same and no other pair has it."""
    model = {series.label: series.model for series in comparison.series}
    whole = [f"{p.second} – {p.first}" for p in comparison.pairs]
    short = [
        model[p.second] if model[p.second] == model[p.first] else name
        for p, name in zip(comparison.pairs, whole, strict=True)
    ]
    return short if len(set(short)) == len(short) else whole


def _figures(part: DifferencePart) -> list[str]:
    p = "–" if part.p_holm is None else p_value(part.p_holm)
    return [number(part.first), number(part.second), with_interval(part.difference), p, part.change]


def _coverage(comparison: Comparison) -> Chapter:
    rows = [
        [s.label, count(s.asked), count(s.scored), share(s.scored, s.asked), "yes" if s.complete else "no"]
        for s in comparison.series
    ]
    grids = [Grid("Cells with a usable score.", ["Series", "Cells asked", "Scored", "Share", "Audit whole"], rows)]
    pairs = [
        [
            f"{p.second} against {p.first}",
            *map(count, (p.shared, p.only_first, p.only_second, p.neither, p.truth_differs)),
        ]
        for p in comparison.pairs
    ]
    columns = ["Pair", "Shared", "Only the first", "Only the second", "Neither", "Other people’s score"]
    return Chapter("Coverage", grids=[*grids, Grid("What the pairs share.", columns, pairs)])


def _pair(pair: PairPart, *, alone: bool) -> Iterator[Chapter]:
    name = "" if alone else f": {pair.second} against {pair.first}"
    if pair.regions:
        yield _places(f"By region{name}", pair.regions, "region", "over other countries and other topics")
    if pair.by_country:
        yield _places(f"By country{name}", pair.by_country, "country", "over its topics, taken as independent")
    if pair.by_topic:
        yield _places(f"By topic{name}", pair.by_topic, "topic", "over its countries, taken as independent")
    if pair.verdicts is not None:
        yield verdicts_chapter(pair.verdicts)


def _places(title: str, parts: Sequence[DifferencePart], what: str, how: str) -> Chapter:
    told = [f"{word.capitalize()}: {_names(parts, word)}." for word in ("better", "worse") if _names(parts, word)]
    none = f"No {what} can be told to have got better or worse." if not told else ""
    columns = [what.capitalize(), "MAE first", "MAE second", "Difference", "p (Holm)", "The second is", "Cells"]
    rows = [[part.name, *_figures(part), count(part.difference.n)] for part in parts]
    caption = f"Difference of MAE by {what}, worst first. Intervals: {how}; p-values corrected for all, in all pairs."
    plots = [_plot([(part.name, part) for part in parts], "Difference of MAE", f"Differences of MAE by {what}")]
    return Chapter(title, [none] if none else [], told, [p for p in plots if p], [Grid(caption, columns, rows)])


def _names(parts: Iterable[DifferencePart], change: str) -> str:
    return ", ".join(f"{p.name} ({signed(p.difference.value)})" for p in parts if p.change == change)


def _plot(parts: Sequence[tuple[str, DifferencePart]], label: str, title: str) -> Plot | None:
    known = [(name, part.difference) for name, part in parts if part.difference.value is not None]
    if not known or len(known) > MAX_PLOTTED:
        return None
    axis = difference_axis((v for _, d in known for v in (d.value, d.ci_low, d.ci_high)), label)
    marks = [Mark(name, d.value, d.ci_low, d.ci_high, signed(d.value)) for name, d in known]
    caption = f"{title}, with 95% intervals (not corrected). Left of the dashed line the second is nearer to people."
    return Plot(interval_plot(marks, axis, title, caption), caption)


def _judge_names(comparison: Comparison) -> list[str]:
    return [name for part in comparison.judges for name in (part.first, part.second)]
