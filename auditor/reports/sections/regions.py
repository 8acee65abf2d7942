"""Section on agreement with people by region, and on the gaps between regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.interval_plot import error_axis
from auditor.reports.data.coverage.lost_samples import WorstCaseDifferences
from auditor.reports.data.estimate_conversion import has_rescaled_scores
from auditor.reports.data.measurement_schema import RegionGapRow, RegionRow, RegionsReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Cell, Code, Column, Figure, Name, Paragraph, Section, Table, Text
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.lost_samples import count_lost
from auditor.reports.sections.phrasing import SeriesLabels, describe_interval, join_names
from auditor.reports.sections.tables import tabulate

REGION_COLUMNS = (
    Column("Model", "name"),
    Column("Region", "name"),
    Column("Countries", "number"),
    Column("MAE", "estimate", show_n=False, emphasis=True),
    Column("r", "estimate", show_n=False),
    Column("Cells", "number", "n"),
    Column("Dropped", "number", "n_dropped"),
    Column("Samples lost", "share", "lost_samples"),
)
GAP_COLUMNS = (
    Column("Model", "name"),
    Column("Regions"),
    Column("Gap in MAE", "estimate", "mae_gap", style="signed"),
    Column("Gap in r", "estimate", "r_gap", style="signed", show_n=False),
    Column("Samples lost in first", "share", "first_lost_samples"),
    Column("Samples lost in second", "share", "second_lost_samples"),
)
BOUND_COLUMNS = tuple(
    Column(f"{title} possible gap in {label}", "number", f"worst_case.{figure}.{end}", style="signed")
    for figure, label in (("mae", "MAE"), ("pearson_r", "r"))
    for title, end in (("Smallest", "bound_low"), ("Largest", "bound_high"))
) + tuple(
    Column(f"{label} CI over all samples", "text", f"{figure}_interval")
    for figure, label in (("mae", "MAE"), ("pearson_r", "r"))
)


def build_regions_section(report: Report) -> Section | None:
    """Build the section on regions; None without scores, or if the report's grouping has no country."""
    regions, labels = report.regions, SeriesLabels.of(report)
    if not report.alignment or not (regions.rows or regions.ungrouped):
        return None
    ungrouped: Text = ["Countries in no region, which are not in the table: ", *join_names(regions.ungrouped), "."]
    blocks: list[Block] = [
        *_build_figure(regions.rows, labels),
        *([_build_region_table(regions, labels)] if regions.rows else []),
        *([_build_gap_table(regions.gaps, labels)] if regions.gaps else []),
        *([Paragraph(ungrouped, "note")] if regions.ungrouped else []),
    ]
    return Section("regions", Name(regions.title), blocks, "Regions")


def _build_figure(rows: Sequence[RegionRow], labels: SeriesLabels) -> list[Figure]:
    """Plot the MAE of each series in each region; empty if no series has errors."""
    estimates = [(f"{labels.label(row)}, {row.region}", row.mae) for row in rows if not has_rescaled_scores(row.method)]
    if not estimates:
        return []
    ends = (mae.value if mae.ci_high is None else mae.ci_high for _, mae in estimates)
    return [
        build_interval_figure(
            "regions",
            "Mean absolute error by region",
            estimates,
            error_axis(ends, "Mean absolute error (lower is better)"),
            table_id="agreement-by-region",
            caption="Mean absolute difference from people in each group of countries, with its 95% CI. Further right "
            "is further from people.",
        )
    ]


def _build_region_table(regions: RegionsReport, labels: SeriesLabels) -> Table:
    """Build the table with MAE and r of each series in each region."""
    caption: Text = [
        "Agreement with people by region. MAE is the mean absolute difference between the model’s and people’s "
        "scores, from 0 to 2 (lower is better). r is Pearson’s correlation (higher is better). 95% CIs are over "
        "countries and topics. Dropped cells lack the model’s or people’s score; lost samples are planned ones "
        "without a usable score. The grouping is ",
        Name(regions.grouping),
        "; the key ",
        Code("survey.regions"),
        " in the configuration selects another.",
    ]
    derived: Mapping[str, Callable[[RegionRow], Cell]] = {
        "model": labels.label,
        "r": lambda row: Estimate(row.pearson_r, row.n, row.ci_low, row.ci_high, row.reason),
        "lost_samples": lambda row: count_lost(row.lost_samples),
    }
    return tabulate("agreement-by-region", "Agreement by region", caption, regions.rows, REGION_COLUMNS, derived)


def _build_gap_table(gaps: Sequence[RegionGapRow], labels: SeriesLabels) -> Table:
    """Build the table of gaps between regions, with worst-case bounds if any gap has them."""
    has_bounds = any(gap.worst_case is not None for gap in gaps)
    bounds_text = (
        " The smallest and largest possible gaps hold whatever the lost samples would have scored, where more than 5% "
        "of the samples of a region are lost, or the shares of the two regions differ by more than 5 points. The CI "
        "over all samples covers the gap itself, between its bounds (Imbens & Manski 2004)."
    )
    derived: Mapping[str, Callable[[RegionGapRow], Cell]] = {
        "model": labels.label,
        "regions": lambda gap: (Name(gap.second), " minus ", Name(gap.first)),
        "first_lost_samples": lambda gap: count_lost(gap.first_lost_samples),
        "second_lost_samples": lambda gap: count_lost(gap.second_lost_samples),
        "mae_interval": lambda gap: _describe_bounds(gap.worst_case, "mae"),
        "pearson_r_interval": lambda gap: _describe_bounds(gap.worst_case, "pearson_r"),
    }
    columns = [*GAP_COLUMNS, *(BOUND_COLUMNS if has_bounds else ())]
    caption = _describe_gaps(gaps) + (bounds_text if has_bounds else "")
    return tabulate("region-gaps", "Gaps between regions", caption, gaps, columns, derived)


def _describe_bounds(worst_case: WorstCaseDifferences | None, figure: Literal["mae", "pearson_r"]) -> str | None:
    """The interval of a gap over all samples, in words; None without worst-case bounds."""
    return None if worst_case is None else describe_interval(getattr(worst_case, figure), style="signed")


def _describe_gaps(gaps: Sequence[RegionGapRow]) -> str:
    """Explain the gaps and their intervals."""
    if gaps[0].compared == 2:
        return (
            f"Gaps between two regions: {gaps[0].second} minus {gaps[0].first}. A positive gap in MAE, or a negative "
            "one in r, means that the model agrees less with people in the former. 95% CIs are over countries and "
            "topics; that of r is computed on Fisher’s z. A gap whose CI includes zero is not statistically "
            "distinguishable from zero."
        )
    left_out = list(dict.fromkeys(name for gap in gaps for name in gap.left_out))
    left_out_text = f" Excluded, with fewer than five countries: {', '.join(left_out)}." if left_out else ""
    return (
        "Largest gap in MAE between two regions, for each model, and the gap in r between the same two. The largest of "
        "several gaps is biased upwards. The 95% CIs, over countries and topics, are corrected for that: they hold for "
        "all pairs of regions simultaneously. "
        f"A gap whose CI includes zero is not statistically distinguishable from zero.{left_out_text}"
    )
