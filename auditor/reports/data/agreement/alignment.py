"""Agreement of each model with people over all cells: the figures, and how they are computed."""

from __future__ import annotations

import numpy as np

from auditor.metrics.attenuation import CorrectedCorrelation, corrected_pearson, crossed_corrected
from auditor.metrics.bootstrap import BIAS, MAE, PEARSON, RMSE, TwoWayEstimate
from auditor.metrics.correlation import pearson, spearman
from auditor.metrics.error import bias, mae, rmse
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife import crossed_jackknife
from auditor.metrics.within_topic import zero_correlation_p_value
from auditor.reports.data.coverage.missing_scores import missing_r_reason, missing_score_reason, with_missing_reason
from auditor.reports.data.estimate_conversion import (
    RESCALED_SCORES_REASON,
    has_rescaled_scores,
    interval_to_estimate,
    missing_estimate,
    to_estimate,
)
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource


class TwoWayEstimates(ReportModel):
    """The alignment figures with 95% intervals over other countries and other topics: a jackknife that treats countries
    and topics as crossed clusters."""

    countries: int
    topics: int
    pearson_r: Estimate
    corrected_r: Estimate
    mae: Estimate
    rmse: Estimate
    bias: Estimate


class AlignmentRow(ReportModel):
    """Agreement of one model's scores with people's, over the cells in which both are known."""

    model: str
    survey: str
    method: str
    n: int
    """Cells with a score of the model and of people."""
    pearson_r: float | None
    p_value: float | None
    """Two-sided p-value of r = 0 by Student's t-test, which assumes that cells are independent; see
    `crossed_p_value`."""
    ci_low: float | None
    ci_high: float | None
    """95% interval of r by Fisher's z, which assumes that cells are independent."""
    spearman_rho: float | None
    mae: float | None
    rmse: float | None
    n_dropped: int
    """Cells without a score of the model, of people, or of either."""
    n_without_survey: int
    """Dropped cells in which people were not asked."""
    reason: str | None = None
    """Why r, or its interval, is null."""
    spearman_ci_low: float | None
    spearman_ci_high: float | None
    mae_ci_low: float | None
    mae_ci_high: float | None
    rmse_ci_low: float | None
    rmse_ci_high: float | None
    bias: Estimate
    """Mean of the model's score minus people's: positive if the model is more permissive than people."""
    corrected_r: Estimate
    """r corrected for the sampling noise of the model's scores (Spearman's correction for attenuation, on the model's
    side only)."""
    reliability: float | None
    """Share of the variance of the model's scores that is not sampling noise; null where it is not known, with the
    reason in `corrected_r`."""
    crossed: TwoWayEstimates
    crossed_p_value: float | None
    """Two-sided p-value of r = 0, over countries and topics: below 0.05 if the interval of r in `crossed` excludes 0.
    Null where there is no such interval."""
    ceiling: float | None = None
    """The r that a perfect model is expected to reach against this survey; null where the survey's respondents are not
    known, with the reason in the report's `ceiling`."""


def compute_alignment(source: ReportSource, ceiling: float | None = None) -> list[AlignmentRow]:
    """Compute agreement with people for each model and method.

    Args:
        ceiling: r that a perfect model is expected to reach, from the survey's reliability.
    """
    return [_build_alignment_row(source, i, ceiling) for i in range(len(source.columns))]


def _build_alignment_row(source: ReportSource, column: int, ceiling: float | None) -> AlignmentRow:
    """Compute the agreement of one model and method with people over all cells.

    `column` is the index of the model and method in `source.columns`; `ceiling` is the largest r to be expected.
    """
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column], source.survey_scores
    r, rho = pearson(scores, truth), spearman(scores, truth)
    r_two_way = crossed_jackknife(PEARSON, scores, truth, source.country_index, source.topic_index)
    missing_reason = missing_score_reason(source, column)
    mae_estimate, rmse_estimate, bias_estimate = compute_errors(method, scores, truth, missing_reason)
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
        spearman_rho=rho.r,
        spearman_ci_low=rho.ci_low,
        spearman_ci_high=rho.ci_high,
        mae=mae_estimate.value,
        mae_ci_low=mae_estimate.ci_low,
        mae_ci_high=mae_estimate.ci_high,
        rmse=rmse_estimate.value,
        rmse_ci_low=rmse_estimate.ci_low,
        rmse_ci_high=rmse_estimate.ci_high,
        bias=bias_estimate,
        corrected_r=_to_corrected_estimate(corrected, missing_reason),
        reliability=corrected.reliability,
        crossed=_compute_two_way_figures(source, column, r_two_way, missing_r_reason(r, missing_reason)),
        crossed_p_value=zero_correlation_p_value(r_two_way),
        ceiling=ceiling,
        n_dropped=r.n_dropped,
        n_without_survey=int(np.isnan(truth).sum()),
        reason=missing_r_reason(r, missing_reason),
    )


def _to_corrected_estimate(corrected: CorrectedCorrelation, missing_reason: str | None) -> Estimate:
    """Convert r corrected for sampling noise to an estimate; its reason is None where value and interval exist."""
    reason = missing_r_reason(corrected, missing_reason)
    return Estimate(value=corrected.r, n=corrected.n, ci_low=corrected.ci_low, ci_high=corrected.ci_high, reason=reason)


def compute_errors(method: str, scores: FloatArray, truth: FloatArray, missing_reason: str | None) -> list[Estimate]:
    """Compute MAE, RMSE and bias, in this order, over cells; null for rescaled scores, whose distances mean nothing."""
    estimates = [to_estimate(statistic(scores, truth)) for statistic in (mae, rmse, bias)]
    if has_rescaled_scores(method):
        estimates = [missing_estimate(RESCALED_SCORES_REASON, estimate.n) for estimate in estimates]
    return [with_missing_reason(estimate, missing_reason) for estimate in estimates]


def _compute_two_way_figures(
    source: ReportSource, column: int, r_interval: TwoWayEstimate, r_missing_reason: str | None
) -> TwoWayEstimates:
    """Compute r, corrected r, MAE, RMSE and bias with intervals over countries and topics (two-way jackknife)."""
    aligned_arrays = (source.score_matrix[column], source.survey_scores, source.country_index, source.topic_index)
    variances_and_counts, score_reason = (
        (source.variance_matrix[column], source.column_values("n_ok", column)),
        missing_score_reason(source, column),
    )
    # The first two arrays are scores and survey scores, the last two the country and topic of each cell.
    corrected = crossed_corrected(*aligned_arrays[:2], *variances_and_counts, *aligned_arrays[2:])
    if has_rescaled_scores(source.columns[column][0]):  # a column is (method, model)
        mae_estimate = rmse_estimate = bias_estimate = missing_estimate(RESCALED_SCORES_REASON, r_interval.n_cells)
    else:
        mae_estimate, rmse_estimate, bias_estimate = (
            interval_to_estimate(crossed_jackknife(statistic, *aligned_arrays)) for statistic in (MAE, RMSE, BIAS)
        )
    return TwoWayEstimates(
        countries=r_interval.n_countries,
        topics=r_interval.n_topics,
        pearson_r=with_missing_reason(interval_to_estimate(r_interval), r_missing_reason),
        corrected_r=with_missing_reason(interval_to_estimate(corrected), r_missing_reason),
        mae=with_missing_reason(mae_estimate, score_reason),
        rmse=with_missing_reason(rmse_estimate, score_reason),
        bias=with_missing_reason(bias_estimate, score_reason),
    )
