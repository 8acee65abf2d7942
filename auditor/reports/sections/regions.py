"""Section on agreement with people by region, and on the gaps between regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.interval_plot import error_axis
from auditor.reports.data.estimate_conversion import has_rescaled_scores
from auditor.reports.data.measurement_schema import RegionGapRow, RegionRow, RegionsReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Cell, Code, Column, Figure, Name, Paragraph, Section, Table, Text
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.phrasing import SeriesLabels, join_names
from auditor.reports.sections.tables import tabulate

REGION_COLUMNS = (
    Column("Model", "name"),
    Column("Region", "name"),
    Column("Countries", "number"),
    Column("MAE", "estimate", show_n=False, emphasis=True),
    Column("r", "estimate", show_n=False),
    Column("Cells", "number", "n"),
    Column("Dropped", "number", "n_dropped"),
)
GAP_COLUMNS = (
    Column("Model", "name"),
    Column("Regions"),
    Column("Gap in MAE", "estimate", "mae_gap", style="signed"),
    Column("Smallest possible gap", "number", "bound_low", style="signed"),
    Column("Largest possible gap", "number", "bound_high", style="signed"),
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
        "Agreement with people by region. MAE is the mean absolute difference between the model’s and people’s scores, "
        "from 0 to 2 (lower is better). r is Pearson’s correlation (higher is better). 95% CIs are over countries and "
        "topics. Dropped cells lack the model’s or people’s score. The grouping is ",
        Name(regions.grouping),
        "; the key ",
        Code("survey.regions"),
        " in the configuration selects another.",
    ]
    derived: Mapping[str, Callable[[RegionRow], Cell]] = {
        "model": labels.label,
        "r": lambda row: Estimate(row.pearson_r, row.n, row.ci_low, row.ci_high, row.reason),
    }
    return tabulate("agreement-by-region", "Agreement by region", caption, regions.rows, REGION_COLUMNS, derived)


def _build_gap_table(gaps: Sequence[RegionGapRow], labels: SeriesLabels) -> Table:
    """Build the table of gaps between regions, with worst-case bounds if any gap has them."""
    # The bounds of a withheld gap are in its reason.
    has_bounds = any(gap.mae_gap.value is not None and gap.bound_low is not None for gap in gaps)
    bounds_text = (
        " The smallest and largest possible gaps are worst-case bounds, where the coverage of the two regions differs: "
        "the gap lies between them whatever the missing scores are."
    )
    derived: Mapping[str, Callable[[RegionGapRow], Cell]] = {
        "model": labels.label,
        "regions": lambda gap: (Name(gap.second), " minus ", Name(gap.first)),
        "bound_low": lambda gap: None if gap.mae_gap.value is None else gap.bound_low,
        "bound_high": lambda gap: None if gap.mae_gap.value is None else gap.bound_high,
    }
    columns = GAP_COLUMNS if has_bounds else GAP_COLUMNS[:3]
    caption = _describe_gaps(gaps) + (bounds_text if has_bounds else "")
    return tabulate("region-gaps", "Gaps between regions", caption, gaps, columns, derived)


def _describe_gaps(gaps: Sequence[RegionGapRow]) -> str:
    """Explain the gaps and their intervals."""
    if gaps[0].compared == 2:
        return (
            f"Gap in MAE between two regions: {gaps[0].second} minus {gaps[0].first}; positive means that the model is "
            "further from people in the former. The 95% CI is over countries and topics. A gap whose CI includes zero "
            "is not statistically distinguishable from zero."
        )
    left_out = list(dict.fromkeys(name for gap in gaps for name in gap.left_out))
    left_out_text = f" Excluded, with fewer than five countries: {', '.join(left_out)}." if left_out else ""
    return (
        "Largest gap in MAE between two regions, for each model. The largest of several gaps is biased upwards. Its "
        "95% CI, over countries and topics, is corrected for that: it holds for all pairs of regions simultaneously. "
        f"A gap whose CI includes zero is not statistically distinguishable from zero.{left_out_text}"
    )
