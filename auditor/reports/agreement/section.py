"""Agreement with people: overall, by region, and by topic and country."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.attenuation import CorrectedCorrelation, corrected_pearson, crossed_corrected
from auditor.metrics.bootstrap import BIAS, MAE, PEARSON, RMSE, TwoWayEstimate
from auditor.metrics.correlation import pearson, spearman
from auditor.metrics.error import bias, mae, rmse
from auditor.metrics.jackknife import crossed_jackknife, gap_jackknife
from auditor.metrics.max_gap import widest_gap
from auditor.metrics.missing_bounds import gap_bounds, mae_bounds
from auditor.metrics.within_topic import zero_correlation_p_value
from auditor.reports.coverage.missing_scores import missing_r_reason, missing_score_reason, with_missing_reason
from auditor.reports.estimate_conversion import (
    RESCALED_SCORES_REASON,
    has_rescaled_scores,
    interval_to_estimate,
    missing_estimate,
    to_estimate,
)
from auditor.reports.measurement_schema import (
    AlignmentRow,
    Estimate,
    GroupErrorRow,
    RegionGapRow,
    RegionRow,
    RegionsReport,
    TwoWayEstimates,
)
from auditor.reports.pages.number_format import format_signed
from auditor.reports.report_source import FloatArray, ReportSource
from auditor.surveys.regions import get_grouping

MAX_COVERAGE_GAP = 0.05
"""Difference in the share of scored cells above which two regions are not compared."""


def compute_alignment(source: ReportSource, ceiling: float | None = None) -> list[AlignmentRow]:
    """One row for each model and method; `ceiling` is the r that a perfect model is expected to reach."""
    return [_build_alignment_row(source, i, ceiling) for i in range(len(source.columns))]


def _build_alignment_row(source: ReportSource, column: int, ceiling: float | None) -> AlignmentRow:
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column], source.survey_scores
    r, rank = pearson(scores, truth), spearman(scores, truth)
    r_crossed = crossed_jackknife(PEARSON, scores, truth, source.country_index, source.topic_index)
    why = missing_score_reason(source, column)
    error, root, lean = _compute_errors(method, scores, truth, why)
    corrected = corrected_pearson(scores, truth, source.variance_matrix[column], source.column_values("n_ok", column))
    return AlignmentRow(
        model=model,
        survey=source.survey.name,
        method=method,
        n=r.n,
        pearson_r=r.r,
        p_value=r.p_value,
        ci_low=r.ci_low,
        ci_high=r.ci_high,
        spearman_rho=rank.r,
        spearman_ci_low=rank.ci_low,
        spearman_ci_high=rank.ci_high,
        mae=error.value,
        mae_ci_low=error.ci_low,
        mae_ci_high=error.ci_high,
        rmse=root.value,
        rmse_ci_low=root.ci_low,
        rmse_ci_high=root.ci_high,
        bias=lean,
        corrected_r=_to_corrected_estimate(corrected, why),
        reliability=corrected.reliability,
        crossed=_compute_two_way_figures(source, column, r_crossed, missing_r_reason(r, why)),
        crossed_p_value=zero_correlation_p_value(r_crossed),
        ceiling=ceiling,
        n_dropped=r.n_dropped,
        n_without_survey=int(np.isnan(truth).sum()),
        reason=missing_r_reason(r, why),
    )


def _to_corrected_estimate(corrected: CorrectedCorrelation, missing_reason: str | None) -> Estimate:
    reason = missing_r_reason(corrected, missing_reason)
    return Estimate(value=corrected.r, n=corrected.n, ci_low=corrected.ci_low, ci_high=corrected.ci_high, reason=reason)


def _compute_errors(method: str, scores: FloatArray, truth: FloatArray, missing_reason: str | None) -> list[Estimate]:
    """MAE, RMSE and bias, each cell for itself; none where scores have no distance, or there are none."""
    found = [to_estimate(statistic(scores, truth)) for statistic in (mae, rmse, bias)]
    if has_rescaled_scores(method):
        found = [missing_estimate(RESCALED_SCORES_REASON, e.n) for e in found]
    return [with_missing_reason(e, missing_reason) for e in found]


def _compute_two_way_figures(
    source: ReportSource, column: int, r_interval: TwoWayEstimate, r_missing_reason: str | None
) -> TwoWayEstimates:
    table = (source.score_matrix[column], source.survey_scores, source.country_index, source.topic_index)
    noise, why = (
        (source.variance_matrix[column], source.column_values("n_ok", column)),
        missing_score_reason(source, column),
    )
    corrected = crossed_corrected(*table[:2], *noise, *table[2:])
    if has_rescaled_scores(source.columns[column][0]):
        error = root = lean = missing_estimate(RESCALED_SCORES_REASON, r_interval.n_cells)
    else:
        error, root, lean = (
            interval_to_estimate(crossed_jackknife(statistic, *table)) for statistic in (MAE, RMSE, BIAS)
        )
    return TwoWayEstimates(
        countries=r_interval.n_countries,
        topics=r_interval.n_topics,
        pearson_r=with_missing_reason(interval_to_estimate(r_interval), r_missing_reason),
        corrected_r=with_missing_reason(interval_to_estimate(corrected), r_missing_reason),
        mae=with_missing_reason(error, why),
        rmse=with_missing_reason(root, why),
        bias=with_missing_reason(lean, why),
    )


def build_regions_report(source: ReportSource) -> RegionsReport:
    """Agreement in each group of countries, and the gap between the two, or the two furthest apart of several."""
    grouping = get_grouping(source.survey)
    by_country = {c: r for c, r in grouping.by_country.items() if c in source.countries}
    names = [region.name for region in grouping.regions if region.name in by_country.values()]
    place = np.array([by_country.get(c.country, "") for c in source.cells], dtype=np.str_)
    columns = range(len(source.columns))
    rows = [
        _build_region_row(source, i, name, place == name, sum(r == name for r in by_country.values()))
        for i in columns
        for name in names
    ]
    gaps = [_build_gap_row(source, i, names, place) for i in columns if len(names) == 2]
    return RegionsReport(
        grouping=grouping.name,
        title=grouping.title,
        rows=rows,
        gaps=gaps or [gap for i in columns if len(names) > 2 for gap in _build_max_gap_rows(source, i, place)],
        ungrouped=[c for c in source.countries if c not in by_country],
    )


def _build_region_row(
    source: ReportSource, column: int, region: str, in_region: NDArray[np.bool_], n_countries: int
) -> RegionRow:
    method, model = source.columns[column]
    table = [
        v[in_region]
        for v in (source.score_matrix[column], source.survey_scores, source.country_index, source.topic_index)
    ]
    r, why = pearson(*table[:2]), missing_score_reason(source, column)
    crossed = with_missing_reason(interval_to_estimate(crossed_jackknife(PEARSON, *table)), missing_r_reason(r, why))
    error = (
        missing_estimate(RESCALED_SCORES_REASON, r.n)
        if has_rescaled_scores(method)
        else interval_to_estimate(crossed_jackknife(MAE, *table))
    )
    return RegionRow(
        model=model,
        method=method,
        region=region,
        countries=n_countries,
        n=r.n,
        n_dropped=r.n_dropped,
        pearson_r=r.r,
        ci_low=crossed.ci_low,
        ci_high=crossed.ci_high,
        mae=with_missing_reason(error, why),
        reason=crossed.reason,
    )


def _build_gap_row(
    source: ReportSource, column: int, region_names: Sequence[str], region_by_cell: NDArray[np.str_]
) -> RegionGapRow:
    method, model = source.columns[column]
    asked = ~np.isnan(source.survey_scores) & (region_by_cell != "")
    table = (
        source.score_matrix[column],
        source.survey_scores,
        source.country_index,
        source.topic_index,
        region_by_cell == region_names[1],
    )
    no_distance = has_rescaled_scores(method)
    gap = (
        missing_estimate(RESCALED_SCORES_REASON)
        if no_distance
        else interval_to_estimate(gap_jackknife(MAE, *(part[asked] for part in table)))
    )
    gap = with_missing_reason(gap, missing_score_reason(source, column))
    return RegionGapRow(
        model=model,
        method=method,
        first=region_names[0],
        second=region_names[1],
        compared=2,
        left_out=[],
        **({"mae_gap": gap} if no_distance else _add_gap_bounds(source, column, region_names, region_by_cell, gap)),
    )


def _build_max_gap_rows(source: ReportSource, column: int, region_by_cell: NDArray[np.str_]) -> Iterator[RegionGapRow]:
    """One row, or none where fewer than two groups have a figure."""
    method, model = source.columns[column]
    if has_rescaled_scores(method):
        return
    table = (
        source.score_matrix[column],
        source.survey_scores,
        source.country_index,
        source.topic_index,
        region_by_cell,
    )
    found = widest_gap(MAE, *(part[region_by_cell != ""] for part in table), seed=source.seed)
    pair = (found.low_group, found.high_group)
    if found.interval.estimate is not None:
        yield RegionGapRow(
            model=model,
            method=method,
            first=pair[0],
            second=pair[1],
            compared=found.compared,
            left_out=list(found.left_out),
            **_add_gap_bounds(source, column, pair, region_by_cell, interval_to_estimate(found.interval)),
        )


def _add_gap_bounds(
    source: ReportSource, column: int, region_names: Sequence[str], region_by_cell: NDArray[np.str_], gap: Estimate
) -> dict[str, Any]:
    """The gap, with bounds where two regions differ in coverage: what is missing may be what differs.

    It is withheld where the bounds cross zero, so that not even its sign is known.
    """
    scores, truth = source.score_matrix[column], source.survey_scores
    asked = ~np.isnan(truth) & np.isin(region_by_cell, region_names)
    scored = asked & ~np.isnan(scores)
    shares = [
        scored[region_by_cell == name].sum() / max(1, asked[region_by_cell == name].sum()) for name in region_names
    ]
    if abs(shares[0] - shares[1]) <= MAX_COVERAGE_GAP:
        return {"mae_gap": gap}
    ends = [mae_bounds(scores[region_by_cell == name], truth[region_by_cell == name]) for name in region_names]
    low, high = gap_bounds(*ends)
    found = {"bound_low": low, "bound_high": high}
    if low is not None and high is not None and (low > 0 or high < 0):
        return {"mae_gap": gap, **found}
    told = " and ".join(f"{100 * share:.0f}%" for share in shares)
    why = f"withheld: coverage differs ({told} of the cells have a score)"
    if low is not None and high is not None:
        why += f", so that the gap may be anything from {format_signed(low)} to {format_signed(high)}"
    return {"mae_gap": missing_estimate(why, int(scored.sum())), **found}


def compute_topic_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Every model on every topic."""
    return _build_place_rows(source, source.topics, source.topic_index)


def compute_country_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Every model in every country."""
    return _build_place_rows(source, source.countries, source.country_index)


def _build_place_rows(
    source: ReportSource, place_names: Sequence[str], place_index: NDArray[np.intp]
) -> list[GroupErrorRow]:
    why = [missing_score_reason(source, i) for i in range(len(source.columns))]
    return [
        _build_place_row(
            name,
            source.columns[i],
            source.score_matrix[i, place_index == k],
            source.survey_scores[place_index == k],
            why[i],
        )
        for k, name in enumerate(place_names)
        for i in range(len(source.columns))
    ]


def _build_place_row(
    name: str, series: tuple[str, str], scores: FloatArray, truth: FloatArray, missing_reason: str | None
) -> GroupErrorRow:
    method, model = series
    error, _, lean = _compute_errors(method, scores, truth, missing_reason)
    return GroupErrorRow(
        name=name,
        model=model,
        method=method,
        n=error.n,
        n_dropped=len(scores) - error.n,
        mae=error,
        bias=lean,
    )
