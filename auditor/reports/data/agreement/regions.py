"""Agreement with people by region, and the gaps between regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.intervals.estimate import BoundedEstimate, Estimate, Tested
from auditor.metrics.intervals.missing_bounds import ScoreRanges, bounded_gap
from auditor.metrics.intervals.multiple_testing import widest_gap
from auditor.metrics.intervals.two_way import crossed_jackknife, gap_jackknife
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic
from auditor.metrics.people.survey_error import RangeCorrection, range_corrected_gap
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.coverage.lost_samples import (
    NO_RANGE_REASON,
    UNKNOWN_SIGN_REASON,
    AnyEstimate,
    SampleCounts,
    WorstCaseDifferences,
    bound_figures,
    has_large_loss,
    has_unknown_sign,
    loss_differs,
    missing_r_reason,
    missing_score_reason,
    with_missing_reason,
)
from auditor.reports.data.measurement_schema import RegionGapRow, RegionRow, RegionsReport
from auditor.reports.data.report_source import RESCALED_SCORES_REASON, ReportSource, has_rescaled_scores
from auditor.surveys.regions import get_grouping


class _RegionPair(NamedTuple):
    """Two regions that are compared, with the gaps of one series: the second region minus the first.

    Attributes:
        n_compared: number of regions from which the two were selected.
        left_out: regions with too few countries to be compared.
    """

    first: str
    second: str
    mae_gap: Tested
    bias_gap: Tested
    r_gap: Estimate
    n_compared: int
    left_out: tuple[str, ...]


def build_regions_report(source: ReportSource) -> RegionsReport:
    """Compute agreement in each region, and the gap between the two regions, or the largest of several gaps."""
    grouping = get_grouping(source.survey)
    by_country = {
        country: region_name
        for country, region_name in grouping.region_by_country.items()
        if country in source.countries
    }
    region_names = [region.name for region in grouping.regions if region.name in by_country.values()]
    region_by_cell = np.array([by_country.get(cell.country, "") for cell in source.cells], dtype=np.str_)
    n_countries = {name: list(by_country.values()).count(name) for name in region_names}
    rows: list[RegionRow] = []
    gaps: list[RegionGapRow] = []
    for column, counts in enumerate(source.sample_counts):
        rows += [
            _build_region_row(source, column, counts, name, region_by_cell == name, n_countries[name])
            for name in region_names
        ]
        gaps += [
            _build_gap_row(source, column, counts, pair, region_by_cell)
            for pair in _compare_regions(source, column, region_names, region_by_cell)
        ]
    return RegionsReport(
        grouping=grouping.name,
        title=grouping.title,
        rows=rows,
        gaps=adjust_rows(
            adjust_rows(gaps, "mae_gap", "gaps between regions"), "bias_gap", "gaps in bias between regions"
        ),
        ungrouped=[country for country in source.countries if country not in by_country],
    )


def _build_region_row(
    source: ReportSource,
    column: int,
    counts: SampleCounts,
    region: str,
    in_region: NDArray[np.bool_],
    n_countries: int,
) -> RegionRow:
    """Compute r and MAE of one model and method over the cells of one region; `in_region` has shape (cells,)."""
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column], np.where(in_region, source.survey_scores, np.nan)
    clusters = source.cluster_countries(scores, truth)
    region_arrays = (scores[in_region], truth[in_region], clusters[in_region], source.topic_index[in_region])
    r, score_reason = pearson(scores[in_region], truth[in_region]), missing_score_reason(source, column)
    two_way_r = with_missing_reason(crossed_jackknife(PEARSON, *region_arrays), missing_r_reason(r, score_reason))
    mae, bias = (crossed_jackknife(statistic, *region_arrays) for statistic in (MAE, BIAS))
    lost = counts.count_lost(in_region)
    values = {PEARSON: r.value, MAE: mae.value, BIAS: bias.value}
    return RegionRow(
        model=model,
        method=method,
        region=region,
        countries=n_countries,
        n=r.n,
        n_dropped=int(in_region.sum()) - r.n,
        pearson_r=replace(two_way_r, value=r.value),
        mae=with_missing_reason(
            Estimate(None, r.n, reason=RESCALED_SCORES_REASON) if has_rescaled_scores(method) else mae, score_reason
        ),
        lost_samples=lost,
        worst_case=bound_figures(source, column, counts, in_region, values) if has_large_loss(lost) else None,
    )


# --- gaps -------------------------------------------------------------------------------------------------------


def _compare_regions(
    source: ReportSource, column: int, region_names: Sequence[str], region_by_cell: NDArray[np.str_]
) -> Iterator[_RegionPair]:
    """Yield the two regions, or of more than two those that differ most; nothing where no two have a figure.

    Args:
        column: index of the model and method in `source.columns`.
        region_by_cell: the region of each cell, shape (cells,); empty for countries without one.
    """
    is_rescaled = has_rescaled_scores(source.columns[column][0])
    is_compared = ~np.isnan(source.survey_scores) & (region_by_cell != "")
    cell_arrays = (
        source.score_matrix[column][is_compared],
        source.survey_scores[is_compared],
        source.country_index[is_compared],
        source.topic_index[is_compared],
    )
    regions = region_by_cell[is_compared]
    missing = Tested(None, 0, reason=RESCALED_SCORES_REASON)
    if len(region_names) == 2:
        is_second = regions == region_names[1]
        gaps = [gap_jackknife(statistic, *cell_arrays, is_second) for statistic in (MAE, BIAS, PEARSON)]
        score_reason = missing_score_reason(source, column)
        mae_gap, bias_gap, r_gap = (with_missing_reason(gap, score_reason) for gap in gaps)
        yield _RegionPair(
            region_names[0],
            region_names[1],
            missing if is_rescaled else mae_gap,
            missing if is_rescaled else bias_gap,
            r_gap,
            n_compared=2,
            left_out=(),
        )
    elif len(region_names) > 2:
        selected = widest_gap(PEARSON if is_rescaled else MAE, *cell_arrays, regions)
        if selected.value is not None:
            pair = (selected.low_group, selected.high_group)
            pair_r_gap = widest_gap(PEARSON, *cell_arrays, regions, pair=pair)
            errors = (selected, widest_gap(BIAS, *cell_arrays, regions, pair=pair))
            pair_mae_gap, pair_bias_gap = (missing, missing) if is_rescaled else errors
            yield _RegionPair(*pair, pair_mae_gap, pair_bias_gap, pair_r_gap, selected.compared, selected.left_out)


def _build_gap_row(
    source: ReportSource, column: int, counts: SampleCounts, pair: _RegionPair, region_by_cell: NDArray[np.str_]
) -> RegionGapRow:
    """Build the row of two regions, with worst-case bounds where many samples are lost, or different shares of them.

    A gap whose bounds include 0 is marked: not even its sign is known.
    """
    method, model = source.columns[column]
    in_first, in_second = (region_by_cell == name for name in (pair.first, pair.second))
    lost = [counts.count_lost(in_region) for in_region in (in_first, in_second)]
    worst_case = None
    mae_gap, r_gap = pair.mae_gap, pair.r_gap
    if loss_differs(*lost) or any(map(has_large_loss, lost)):
        worst_case = WorstCaseDifferences(
            mae=_bound_gap(MAE, mae_gap, source, column, counts, pair, in_first | in_second, in_second),
            pearson_r=_bound_gap(PEARSON, r_gap, source, column, counts, pair, in_first | in_second, in_second),
        )
        mae_gap = _mark_unknown_sign(mae_gap, worst_case.mae)
        r_gap = _mark_unknown_sign(r_gap, worst_case.pearson_r)
    return RegionGapRow(
        model=model,
        method=method,
        first=pair.first,
        second=pair.second,
        mae_gap=mae_gap,
        bias_gap=pair.bias_gap,
        r_gap=r_gap,
        first_lost_samples=lost[0],
        second_lost_samples=lost[1],
        worst_case=worst_case,
        range_corrected=_correct_range(source, column, pair, region_by_cell),
        compared=pair.n_compared,
        left_out=list(pair.left_out),
    )


def _correct_range(
    source: ReportSource, column: int, pair: _RegionPair, region_by_cell: NDArray[np.str_]
) -> RangeCorrection:
    """r in both regions at the mean variance of people's scores in them, with the slope and the residual SD."""
    in_pair = np.isin(region_by_cell, [pair.first, pair.second])
    return range_corrected_gap(
        source.score_matrix[column][in_pair],
        source.survey_scores[in_pair],
        source.country_index[in_pair],
        source.topic_index[in_pair],
        region_by_cell[in_pair] == pair.second,
    )


def _bound_gap(
    statistic: Statistic,
    gap: Estimate,
    source: ReportSource,
    column: int,
    counts: SampleCounts,
    pair: _RegionPair,
    in_pair: NDArray[np.bool_],
    in_second: NDArray[np.bool_],
) -> BoundedEstimate:
    """Bound the gap in one statistic between the regions of a pair; masks have shape (cells,)."""
    if has_rescaled_scores(source.columns[column][0]):
        return BoundedEstimate(gap.value, gap.n, reason=gap.reason if gap.value is None else NO_RANGE_REASON)
    has_truth = in_pair & ~np.isnan(source.survey_scores)
    ranges = counts.score_ranges(source.score_matrix[column])
    return bounded_gap(
        statistic,
        gap.value,
        ScoreRanges(ranges.low[has_truth], ranges.high[has_truth]),
        source.survey_scores[has_truth],
        source.country_index[has_truth],
        source.topic_index[has_truth],
        in_second[has_truth],
        n_pairs=pair.n_compared * (pair.n_compared - 1) // 2,
    )


def _mark_unknown_sign(gap: AnyEstimate, bounds: BoundedEstimate) -> AnyEstimate:
    """The gap over the usable samples, with a remark if the lost ones leave its sign open."""
    if not has_unknown_sign(bounds):
        return gap
    return replace(gap, reason="; ".join(filter(None, (gap.reason, UNKNOWN_SIGN_REASON))))
