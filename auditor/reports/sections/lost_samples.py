"""Figures over all planned samples, whatever the lost ones would have scored: warnings and a section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.reports.data.coverage.lost_samples import LostSamples, WorstCaseFigures
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Column, CountShare, Paragraph, Section, Table
from auditor.reports.number_format import NumberStyle, format_number, format_percent, pluralize
from auditor.reports.sections.phrasing import SeriesLabels
from auditor.reports.sections.tables import tabulate

MAX_WARNED_SERIES = 4
"""Series with a warning of their own on the first page; the table has all."""
ALL_COUNTRIES = "all countries"


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
    "95% CIs are about the figure over all planned samples, lost ones included, for other countries and topics like "
    "these (Imbens & Manski 2004)."
)


def count_lost(lost: LostSamples) -> CountShare:
    """The share of lost samples, for a table."""
    return CountShare(lost.lost, lost.planned)


def list_lost_sample_cautions(report: Report) -> Iterator[str]:
    """Yield a warning for each series of which more than 5% of the planned samples are lost, largest loss first."""
    labels = SeriesLabels.of(report)
    rows = sorted(
        (row for row in report.alignment if row.worst_case is not None),
        key=lambda row: -(row.lost_samples.share or 0.0),
    )
    for row in rows[:MAX_WARNED_SERIES]:
        if row.worst_case is None:
            continue
        lost = format_percent(row.lost_samples.lost, row.lost_samples.planned)
        yield (
            f"{lost} of the planned samples of {labels.label(row)} have no usable score, and may differ from the "
            f"others. Whatever they would have been, {_describe_bounds(row.worst_case)}."
        )
    if len(rows) > MAX_WARNED_SERIES:
        n_others = pluralize(len(rows) - MAX_WARNED_SERIES, "further series has", "further series have")
        yield f"{n_others} lost more than 5% of the planned samples; “What if the lost samples differ?” has them all."
    for gap in report.regions.gaps:
        if gap.worst_case is not None and gap.mae_gap.value is None and gap.worst_case.mae.bound_low is not None:
            yield (
                f"The gap of {labels.label(gap)} between {gap.first} and {gap.second} is not known, since different "
                "shares of the samples are lost."
            )


def _describe_bounds(worst_case: WorstCaseFigures) -> str:
    """Say between which values r and MAE lie: the ends of their intervals, or of the bounds without an interval."""
    texts = [
        f"{name} between {format_number(low)} and {format_number(high)}"
        for name, figure in (("r lies", worst_case.pearson_r), ("the mean absolute error", worst_case.mae))
        if (low := figure.bound_low if figure.ci_low is None else figure.ci_low) is not None
        and (high := figure.bound_high if figure.ci_high is None else figure.ci_high) is not None
    ]
    has_interval = worst_case.pearson_r.ci_low is not None
    note = " (95% CIs)" if has_interval else " (without sampling error)"
    return " and ".join(texts) + note if texts else f"no bounds are known: {worst_case.pearson_r.reason}"


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
        "More than 5% of the planned samples of these series have no usable score: they were refused, cut off, could "
        "not be read, or failed. What they would have said is not known. The bounds hold whatever it is: the lost "
        "samples of each cell are given the scores from −1 to +1 that make the figure smallest, and largest."
    )
    tables = [_tabulate_bounds(rows, *figure) for figure in FIGURES]
    return Section("lost-samples", "What if the lost samples differ?", [Paragraph(text), *tables], "Lost samples")


def _tabulate_bounds(rows: Sequence[WorstCaseRow], name: str, attribute: str, style: NumberStyle) -> Table:
    """Build the table of one figure: over the usable samples, and what it may be over all planned samples."""
    key = f"worst_case.{attribute}"
    columns = (
        Column("Model", "name"),
        Column("Countries", "name", "scope"),
        Column("Samples lost", "share", "lost"),
        Column(f"{name} over usable samples", "number", f"{key}.value", style=style),
        Column(f"Smallest {name}", "number", f"{key}.bound_low", style=style),
        Column(f"Largest {name}", "number", f"{key}.bound_high", style=style),
        Column("95% CI over all planned samples", "interval", key, style=style),
    )
    caption = (
        f"The {name} over the usable samples, and its smallest and "
        f"largest possible value over all planned samples. {INTERVAL_NOTE}"
    )
    derived = {"lost": lambda row: count_lost(row.lost)}
    return tabulate(f"lost-samples-{name.lower()}", f"Worst-case bounds of {name}", caption, rows, columns, derived)
