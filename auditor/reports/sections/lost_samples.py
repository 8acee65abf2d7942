"""Figures over all planned samples, whatever the lost ones would have scored: warnings and a section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.metrics.estimate import BoundedEstimate
from auditor.reports.data.coverage.lost_samples import LostSamples, WorstCaseFigures, has_unknown_sign
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Column, Paragraph, Section, Table
from auditor.reports.number_format import NumberStyle, format_number, format_percent, format_signed
from auditor.reports.sections.phrasing import SeriesLabels, join_first
from auditor.reports.sections.tables import MAX_LONG_TABLE_ROWS, tabulate

ALL_COUNTRIES = "all countries"
TITLE = "What if the lost samples differ?"


class WorstCaseRow(NamedTuple):
    """Worst-case bounds of one series in one scope."""

    model: str
    scope: str
    lost: LostSamples
    worst_case: WorstCaseFigures


FIGURES: Sequence[tuple[str, str, NumberStyle]] = (
    ("r", "pearson_r", "decimal"),
    ("MAE", "mae", "decimal"),
    ("bias", "bias", "signed"),
)
"""Name of each figure, its attribute, and how it is formatted."""
INTERVAL_NOTE = (
    "95% CIs cover the figure over all planned samples, including lost ones, for other countries and topics like "
    "these (Imbens & Manski 2004)."
)


def list_lost_sample_cautions(report: Report) -> Iterator[str]:
    """Yield a warning on the models of which more than 5% of the planned samples are lost, and on unknown gaps."""
    labels = SeriesLabels.of(report)
    bounded = [(row, row.worst_case) for row in report.alignment if row.worst_case is not None]
    if bounded:
        bounded.sort(key=lambda pair: -(pair[0].lost_samples.share or 0.0))
        shares = [format_percent(row.lost_samples.lost, row.lost_samples.planned) for row, _ in bounded]
        share = shares[0] if shares[0] == shares[-1] else f"{shares[-1]} to {shares[0]}"
        names = join_first([labels.label(row) for row, _ in bounded], "model" if not labels.shows_method else "")
        reference = f" “{TITLE}” has each model." if len(bounded) > 1 else ""
        yield (
            f"{share} of the planned samples of {names} have no usable score, and may differ from the others. Whatever "
            f"the missing scores are, {_describe_bounds([worst_case for _, worst_case in bounded])}.{reference}"
        )
    yield from _list_gap_cautions(report, labels)


def _list_gap_cautions(report: Report, labels: SeriesLabels) -> Iterator[str]:
    """Yield a warning on each two regions between which lost samples leave the sign of a gap open, for any model."""
    bounds_by_pair: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
    for gap in report.regions.gaps:
        if gap.worst_case is None or not has_unknown_sign(gap.worst_case.mae):
            continue
        low, high = gap.worst_case.mae.bound_low, gap.worst_case.mae.bound_high
        if low is not None and high is not None:
            bounds_by_pair.setdefault((gap.first, gap.second), []).append((labels.label(gap), low, high))
    for (first, second), bounds in bounds_by_pair.items():
        names = join_first([name for name, _, _ in bounds], "model" if not labels.shows_method else "")
        low, high = min(low for _, low, _ in bounds), max(high for _, _, high in bounds)
        yield (
            f"Because of lost samples, it is not known in which of two regions, {first} or {second}, the mean absolute "
            f"error of {names} is larger: the difference lies between {format_signed(low)} and {format_signed(high)}."
        )


def _describe_bounds(worst_cases: Sequence[WorstCaseFigures]) -> str:
    """Say between which values r and MAE of all models lie: the ends of intervals, or of bounds without an interval."""
    known = [(case.pearson_r, case.mae) for case in worst_cases if _get_range(case.mae) or _get_range(case.pearson_r)]
    unbounded = [case for case in worst_cases if not (_get_range(case.mae) or _get_range(case.pearson_r))]
    if not known:
        return f"no bounds are available: {unbounded[0].pearson_r.reason}"
    texts: list[str] = []
    names = ("r", "the mean absolute error") if len(worst_cases) == 1 else ("each r", "each mean absolute error")
    for name, figures in zip(names, zip(*known, strict=True), strict=True):
        if ranges := [ends for figure in figures if (ends := _get_range(figure)) is not None]:
            low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
            texts.append(f"{name} {'' if texts else 'lies '}between {format_number(low)} and {format_number(high)}")
    has_interval = [figure.ci_low is not None for pair in known for figure in pair if _get_range(figure)]
    note = (
        "ends of the 95% CIs"
        if all(has_interval)
        else "ends of the 95% CIs where available"
        if any(has_interval)
        else "without sampling error"
    )
    unknown = (
        f". For {len(unbounded)} of these models, bounds are not available: {unbounded[0].pearson_r.reason}"
        if unbounded
        else ""
    )
    return f"{' and '.join(texts)} ({note}){unknown}"


def _get_range(figure: BoundedEstimate) -> tuple[float, float] | None:
    """The interval of a figure, or its bounds where it has none; None without either."""
    low = figure.bound_low if figure.ci_low is None else figure.ci_low
    high = figure.bound_high if figure.ci_high is None else figure.ci_high
    return None if low is None or high is None else (low, high)


def build_lost_samples_section(report: Report) -> Section | None:
    """Build the section on worst-case bounds; None where few samples are lost."""
    labels = SeriesLabels.of(report)
    rows = [
        *(
            WorstCaseRow(labels.label(row), ALL_COUNTRIES, row.lost_samples, row.worst_case)
            for row in report.alignment
            if row.worst_case is not None
        ),
        *(
            WorstCaseRow(labels.label(region), region.region, region.lost_samples, region.worst_case)
            for region in report.regions.rows
            if region.worst_case is not None
        ),
    ]
    if not rows:
        return None
    text = (
        "More than 5% of the planned samples of these models have no usable score: they were refused, cut off, "
        "unreadable or failed. The bounds hold whatever scores these lost samples would have had: they assume the "
        "scores from −1 to +1 that make the figure smallest, or largest."
    )
    finding = next(list_lost_sample_cautions(report), "Some regions have lost more than 5% of their planned samples.")
    tables = [_tabulate_bounds(rows, *figure) for figure in FIGURES]
    return Section(
        "lost-samples", TITLE, [Paragraph(finding, "finding"), Paragraph(text, "note"), *tables], "Lost samples"
    )


def _tabulate_bounds(rows: Sequence[WorstCaseRow], name: str, attribute: str, style: NumberStyle) -> Table:
    """Build the table of one figure: over the usable samples, and what it may be over all planned samples."""
    key = f"worst_case.{attribute}"
    columns = (
        Column("Model", "name"),
        Column("Countries", "name", "scope"),
        Column("Samples lost", "share", "lost", path="lost.as_count"),
        Column(f"{name} over usable samples", "number", f"{key}.value", style=style),
        Column(f"Smallest {name}", "number", f"{key}.bound_low", style=style),
        Column(f"Largest {name}", "number", f"{key}.bound_high", style=style),
        Column("95% CI over all planned samples", "interval", key, style=style),
    )
    caption = (
        f"The {name} over the usable samples, and its smallest and largest possible value over all planned samples. "
        f"{INTERVAL_NOTE} The rows with the largest shares of lost samples come first."
    )
    return tabulate(
        f"lost-samples-{name.lower()}",
        f"Worst-case bounds of {name}",
        caption,
        sorted(rows, key=lambda row: -(row.lost.share or 0.0)),
        columns,
        max_rows=MAX_LONG_TABLE_ROWS,
    )
