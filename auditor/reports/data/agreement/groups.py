"""Agreement with people by region, topic and country."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.metrics._complete_cases import complete_cases
from auditor.metrics.bootstrap import BIAS, MAE, PEARSON, Statistic
from auditor.metrics.correlation import pearson
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife import STATISTIC_TRANSFORMS, crossed_jackknife, gap_jackknife
from auditor.metrics.jackknife_interval import IDENTITY, estimate_from_replicates
from auditor.metrics.max_gap import widest_gap
from auditor.metrics.missing_bounds import gap_bounds, mae_bounds
from auditor.reports.data.coverage.missing_scores import missing_r_reason, missing_score_reason, with_missing_reason
from auditor.reports.data.estimate_conversion import (
    RESCALED_SCORES_REASON,
    has_rescaled_scores,
    interval_to_estimate,
    missing_estimate,
)
from auditor.reports.data.measurement_schema import (
    GroupErrorRow,
    RegionGapRow,
    RegionRow,
    RegionsReport,
)
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.number_format import format_signed
from auditor.surveys.regions import get_grouping

MAX_COVERAGE_GAP = 0.05
"""Difference in the share of scored cells above which a gap between two regions gets bounds, or is withheld."""


def build_regions_report(source: ReportSource) -> RegionsReport:
    """Compute agreement in each region, and the gap in MAE between the two regions, or the largest of several gaps."""
    grouping = get_grouping(source.survey)
    by_country = {
        country: region_name
        for country, region_name in grouping.region_by_country.items()
        if country in source.countries
    }
    region_names = [region.name for region in grouping.regions if region.name in by_country.values()]
    region_by_cell = np.array([by_country.get(country.country, "") for country in source.cells], dtype=np.str_)
    columns = range(len(source.columns))
    rows = [
        _build_region_row(
            source,
            column,
            name,
            region_by_cell == name,
            sum(region_name == name for region_name in by_country.values()),
        )
        for column in columns
        for name in region_names
    ]
    gaps = [
        _build_gap_row(source, column, region_names, region_by_cell) for column in columns if len(region_names) == 2
    ]
    return RegionsReport(
        grouping=grouping.name,
        title=grouping.title,
        rows=rows,
        gaps=gaps
        or [
            gap
            for column in columns
            if len(region_names) > 2
            for gap in _build_max_gap_rows(source, column, region_by_cell)
        ],
        ungrouped=[country for country in source.countries if country not in by_country],
    )


def _build_region_row(
    source: ReportSource, column: int, region: str, in_region: NDArray[np.bool_], n_countries: int
) -> RegionRow:
    """Compute r and MAE of one model and method over the cells of one region; `in_region` has shape (cells,)."""
    method, model = source.columns[column]
    region_arrays = [
        array[in_region]
        for array in (source.score_matrix[column], source.survey_scores, source.country_index, source.topic_index)
    ]
    # The first two arrays are the scores and the survey scores.
    r, score_reason = pearson(*region_arrays[:2]), missing_score_reason(source, column)
    two_way_r = with_missing_reason(
        interval_to_estimate(crossed_jackknife(PEARSON, *region_arrays)), missing_r_reason(r, score_reason)
    )
    mae_estimate = (
        missing_estimate(RESCALED_SCORES_REASON, r.n)
        if has_rescaled_scores(method)
        else interval_to_estimate(crossed_jackknife(MAE, *region_arrays))
    )
    return RegionRow(
        model=model,
        method=method,
        region=region,
        countries=n_countries,
        n=r.n,
        n_dropped=r.n_dropped,
        pearson_r=r.r,
        ci_low=two_way_r.ci_low,
        ci_high=two_way_r.ci_high,
        mae=with_missing_reason(mae_estimate, score_reason),
        reason=two_way_r.reason,
    )


def _build_gap_row(
    source: ReportSource, column: int, region_names: Sequence[str], region_by_cell: NDArray[np.str_]
) -> RegionGapRow:
    """Compute the MAE in the second region minus that in the first, for a grouping with two regions.

    `region_by_cell` holds the region of each cell, shape (cells,); empty for countries without one.
    """
    method, model = source.columns[column]
    is_compared = ~np.isnan(source.survey_scores) & (region_by_cell != "")
    cell_arrays = (
        source.score_matrix[column],
        source.survey_scores,
        source.country_index,
        source.topic_index,
        region_by_cell == region_names[1],
    )
    is_rescaled = has_rescaled_scores(method)
    gap = (
        missing_estimate(RESCALED_SCORES_REASON)
        if is_rescaled
        else interval_to_estimate(gap_jackknife(MAE, *(array[is_compared] for array in cell_arrays)))
    )
    gap = with_missing_reason(gap, missing_score_reason(source, column))
    return RegionGapRow(
        model=model,
        method=method,
        first=region_names[0],
        second=region_names[1],
        compared=2,
        left_out=[],
        **({"mae_gap": gap} if is_rescaled else _add_gap_bounds(source, column, region_names, region_by_cell, gap)),
    )


def _build_max_gap_rows(source: ReportSource, column: int, region_by_cell: NDArray[np.str_]) -> Iterator[RegionGapRow]:
    """Yield one row with the largest gap in MAE between two regions, of a grouping with more than two.

    Yields nothing where fewer than two regions have a figure, and for rescaled scores.
    """
    method, model = source.columns[column]
    if has_rescaled_scores(method):
        return
    cell_arrays = (
        source.score_matrix[column],
        source.survey_scores,
        source.country_index,
        source.topic_index,
        region_by_cell,
    )
    max_gap = widest_gap(MAE, *(array[region_by_cell != ""] for array in cell_arrays))
    gap_regions = (max_gap.low_group, max_gap.high_group)
    if max_gap.interval.estimate is not None:
        yield RegionGapRow(
            model=model,
            method=method,
            first=gap_regions[0],
            second=gap_regions[1],
            compared=max_gap.compared,
            left_out=list(max_gap.left_out),
            **_add_gap_bounds(source, column, gap_regions, region_by_cell, interval_to_estimate(max_gap.interval)),
        )


def _add_gap_bounds(
    source: ReportSource, column: int, region_names: Sequence[str], region_by_cell: NDArray[np.str_], gap: Estimate
) -> dict[str, Any]:
    """Return the gap as fields of `RegionGapRow`, with bounds where the coverage of the two regions differs.

    The bounds are the gaps if the missing scores were as favourable as possible to one region, and to the other.
    The gap is withheld where they include zero, since then not even its sign is known.
    """
    scores, truth = source.score_matrix[column], source.survey_scores
    has_truth = ~np.isnan(truth) & np.isin(region_by_cell, region_names)
    has_score = has_truth & ~np.isnan(scores)
    scored_shares = [
        has_score[region_by_cell == name].sum() / max(1, has_truth[region_by_cell == name].sum())
        for name in region_names
    ]
    if abs(scored_shares[0] - scored_shares[1]) <= MAX_COVERAGE_GAP:
        return {"mae_gap": gap}
    mae_limits = [mae_bounds(scores[region_by_cell == name], truth[region_by_cell == name]) for name in region_names]
    low, high = gap_bounds(*mae_limits)  # for each of the two regions: smallest and largest possible MAE
    bounds = {"bound_low": low, "bound_high": high}
    if low is not None and high is not None and (low > 0 or high < 0):
        return {"mae_gap": gap, **bounds}
    coverages = " and ".join(f"{100 * share:.0f}%" for share in scored_shares)
    withheld_reason = f"withheld: coverage differs ({coverages} of the cells have a score)"
    if low is not None and high is not None:
        withheld_reason += f", so that the gap may be anything from {format_signed(low)} to {format_signed(high)}"
    return {"mae_gap": missing_estimate(withheld_reason, int(has_score.sum())), **bounds}


def compute_topic_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Compute MAE and bias of each model on each topic, over countries."""
    return _build_place_rows(source, source.topics, source.topic_index, "country")


def compute_country_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Compute MAE and bias of each model in each country, over topics."""
    return _build_place_rows(source, source.countries, source.country_index, "topic")


def _build_place_rows(
    source: ReportSource, place_names: Sequence[str], place_index: NDArray[np.intp], unit: str
) -> list[GroupErrorRow]:
    """Build one row per place and series.

    Places are countries or topics; `place_index` holds the position in `place_names` of each cell, shape (cells,), and
    `unit` names the other side, over which intervals are.
    """
    if not source.columns:  # a task: its scores are not compared with people's
        return []
    has_cell = ~np.isnan(source.score_matrix) & ~np.isnan(source.survey_scores)  # shape (series, cells)
    n_compared = [len(np.unique(place_index[mask])) for mask in has_cell]
    return [
        _build_place_row(source, column, name, place_index == place, unit, n_compared[column])
        for place, name in enumerate(place_names)
        for column in range(len(source.columns))
    ]


def _build_place_row(
    source: ReportSource, column: int, name: str, in_place: NDArray[np.bool_], unit: str, n_compared: int
) -> GroupErrorRow:
    """Compute MAE and bias of one series over the cells of one country or topic.

    Args:
        in_place: whether each cell is in the place, shape (cells,).
        unit: see `_build_place_rows`.
        n_compared: number of places for which the simultaneous interval holds.
    """
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column, in_place], source.survey_scores[in_place]
    (x, y), _ = complete_cases(scores, truth)
    missing_reason = missing_score_reason(source, column)

    def estimate_error(statistic: Statistic, n_comparisons: int = 1) -> Estimate:
        if has_rescaled_scores(method):
            error = missing_estimate(RESCALED_SCORES_REASON, len(x))
        else:
            error = _estimate_over_cells(statistic, x, y, unit, n_comparisons)
        return with_missing_reason(error, missing_reason)

    return GroupErrorRow(
        name=name,
        model=model,
        method=method,
        n=len(x),
        n_dropped=len(scores) - len(x),
        mae=estimate_error(MAE),
        mae_simultaneous=estimate_error(MAE, max(1, n_compared)),
        bias=estimate_error(BIAS),
    )


def _estimate_over_cells(
    statistic: Statistic, scores: FloatArray, truth: FloatArray, unit: str, n_comparisons: int
) -> Estimate:
    """A statistic over cells that each have a unit of their own, such as a country.

    Args:
        n_comparisons: number of estimates for which the intervals hold together (Bonferroni).
    """
    if not len(scores):
        return Estimate(None, 0, reason="no pairs")
    moments = statistic.moments(scores, truth)
    total = moments.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, without_each = float(statistic.value(total[None])[0]), statistic.value(total - moments)
    transform = STATISTIC_TRANSFORMS.get(statistic, IDENTITY)
    return estimate_from_replicates(
        value, len(scores), {unit: without_each}, transform, confidence_level=1 - 0.05 / n_comparisons
    )
