"""Section on agreement with people by region, and on the gaps between regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from auditor.metrics.intervals.estimate import SHARED_LEVEL
from auditor.reports.charts.interval_plot import error_axis
from auditor.reports.data.measurement_schema import RegionGapRow, RegionRow, RegionsReport
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import has_rescaled_scores
from auditor.reports.document import (
    Block,
    Cell,
    Code,
    Column,
    Disclosure,
    Figure,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import format_number, format_percent, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, build_interval_figure, join_first, join_names, tabulate

PAIR_COLUMNS = (Column("Model", "name"), Column("Regions"))
RANGE_COLUMNS = (
    Column("Gap in r corrected for range", "estimate", "range_corrected.gap", style="signed", show_n=False),
    *(
        Column(f"{title} ({side})", "estimate", f"range_corrected.{side}.{figure}", show_n=False)
        for figure, title in (("corrected_r", "r corrected"), ("slope", "Slope"), ("residual_sd", "Residual SD"))
        for side in ("first", "second")
    ),
)
RANGE_CAPTION = (
    "r is smaller where people’s scores vary less, even if a model errs equally. Corrected for range, it is r at the "
    "mean of both variances of people’s scores (Thorndike’s case 2). If slopes (change of the model’s score when "
    "people’s rises by 1) and residual SDs (scatter around that line) are equal, so is agreement. Regions are named "
    "“second minus first”. Nothing here is tested."
)
BOUNDS_CAPTION = (
    "The smallest and largest possible gaps hold whatever the lost samples would have scored. They are shown if a "
    "region lost more than 5% of its samples, or if the shares lost in the two regions differ by more than 5 "
    "percentage points. The 95% CI covers the gap over all planned samples (Imbens & Manski 2004)."
)
P_VALUE_NOTE = "P-values test the gaps in MAE and in bias, and are adjusted for the number of models (Holm)."
UNKNOWN_SIGN_NOTE = (
    " Gaps are computed from the usable samples. If lost samples could reverse a gap, its sign is not known; the next "
    "table has the smallest and largest possible gaps."
)


def build_regions_section(report: Report) -> Section | None:
    """Build the section on regions; None without scores, or if the report's grouping has no country."""
    regions, labels = report.regions, SeriesLabels.of(report)
    if not report.alignment or not (regions.rows or regions.ungrouped):
        return None
    ungrouped: Text = ["Countries in no region, which are not in the table: ", *join_names(regions.ungrouped), "."]
    blocks: list[Block] = [
        Paragraph(_summarize_gaps(regions.gaps, labels), "finding"),
        *_build_figure(regions.rows, labels),
        *([_build_region_table(regions, labels)] if regions.rows else []),
        *(_build_gap_tables(regions.gaps, labels) if regions.gaps else []),
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
            caption=(
                "Mean absolute difference from people in each group of countries, with its 95% CI. Further right "
                "means a larger error."
            ),
        )
    ]


def _build_region_table(regions: RegionsReport, labels: SeriesLabels) -> Table:
    """Build the table with MAE and r of each series in each region."""
    caption: Text = [
        "Agreement with people by region. The countries are grouped by “",
        Name(regions.grouping),
        "” (key ",
        Code("survey.regions"),
        " of the configuration).",
    ]
    derived = {"model": labels.label}
    return tabulate("agreement-by-region", "Agreement by region", caption, regions.rows, RegionRow, derived)


def _summarize_gaps(gaps: Sequence[RegionGapRow], labels: SeriesLabels) -> str:
    """Name the series whose error differs between regions, given the number of series."""
    tested = [gap for gap in gaps if gap.mae_gap.adjusted_p_value is not None]
    if not tested:
        return "Whether errors differ between regions cannot be tested: there is no 95% CI of a gap."
    shown = [gap for gap in tested if gap.is_gap_shown]
    if not shown:
        reversible = [labels.label(gap) for gap in tested if gap.mae_gap.is_significant_at(SHARED_LEVEL)]
        other = f", but for {join_first(reversible)}, where lost samples could reverse it" if reversible else ""
        return (
            "No gap in mean absolute error between regions is statistically distinguishable from zero at the 1% level "
            f"({pluralize(len(tested), 'comparison')}, Holm){other}."
        )
    largest = max(shown, key=lambda gap: abs(gap.mae_gap.value or 0.0))
    worse, better = largest.by_error
    names = join_first([labels.label(gap) for gap in shown])
    size = format_number(abs(largest.mae_gap.value or 0.0))
    return (
        f"The mean absolute error differs between regions for {names}. The largest gap is that of "
        f"{labels.label(largest)}: it is larger in {worse} than in {better} by {size}."
    )


def _build_gap_tables(gaps: Sequence[RegionGapRow], labels: SeriesLabels) -> Iterator[Table | Disclosure]:
    """Build the table of gaps between regions, and that of their worst-case bounds if any gap has them."""
    derived: dict[str, Callable[[RegionGapRow], Cell]] = {
        "model": labels.label,
        "regions": lambda gap: (Name(gap.second), " minus ", Name(gap.first)),
        "lost_samples": _list_lost_samples,
    }
    bounded = [gap for gap in gaps if gap.worst_case is not None]
    caption = _describe_gaps(gaps) + (UNKNOWN_SIGN_NOTE if bounded else "")
    losses = _list_loss_columns(gaps)
    yield tabulate("region-gaps", "Gaps between regions", caption, gaps, RegionGapRow, derived, more_columns=losses)
    columns = [*PAIR_COLUMNS, *RANGE_COLUMNS]
    ranges = tabulate("region-ranges", "r at equal range in both regions", RANGE_CAPTION, gaps, columns, derived)
    yield Disclosure("r at equal range in both regions", [ranges])
    if bounded:
        title = "Worst-case bounds of the gaps"
        yield tabulate("region-gap-bounds", title, BOUNDS_CAPTION, bounded, RegionGapRow, derived)


def _list_loss_columns(gaps: Sequence[RegionGapRow]) -> list[Column]:
    """The columns of lost samples: one for each region if all gaps are between the same two, else one with both."""
    if len({(gap.first, gap.second) for gap in gaps}) > 1:
        return [Column("Samples lost", "text", "lost_samples")]
    return [
        Column(
            f"Samples lost in {gaps[0].second}", "share", "second_lost_samples", path="second_lost_samples.as_count"
        ),
        Column(f"Samples lost in {gaps[0].first}", "share", "first_lost_samples", path="first_lost_samples.as_count"),
    ]


def _list_lost_samples(gap: RegionGapRow) -> Text:
    """The share of lost samples in each of two regions, such as "Asia 4%, Europe 0%"."""
    both = (gap.second_lost_samples, gap.first_lost_samples)
    second, first = (format_percent(lost.lost, lost.planned) for lost in both)
    return (Name(gap.second), f" {second}, ", Name(gap.first), f" {first}")


def _describe_gaps(gaps: Sequence[RegionGapRow]) -> str:
    """Explain the gaps and their intervals."""
    if gaps[0].compared == 2:
        return (
            f"Gaps between two regions: {gaps[0].second} minus {gaps[0].first}. A positive gap in MAE means larger "
            "errors in the first, one in bias more permissive scores. A gap in r is mostly a difference of people’s "
            f"range. {P_VALUE_NOTE}"
        )
    left_out = list(dict.fromkeys(name for gap in gaps for name in gap.left_out))
    left_out_text = f" Excluded, with fewer than five countries: {', '.join(left_out)}." if left_out else ""
    return (
        "Largest gap in MAE between two regions, for each model, and the gaps in bias and r between the same two. The "
        "largest of several gaps is biased upwards. The 95% CIs, for other countries and topics like these, are "
        "corrected for that: they hold for all pairs of regions simultaneously. "
        f"{P_VALUE_NOTE}{left_out_text}"
    )
