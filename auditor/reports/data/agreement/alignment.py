"""Agreement of each model with people over all cells: the figures, and how they are computed."""

from __future__ import annotations

import numpy as np

from auditor.metrics.attenuation import CorrectedCorrelation, crossed_corrected
from auditor.metrics.cell_statistics import BIAS, MAE, PEARSON, RMSE
from auditor.metrics.correlation import pearson
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife import crossed_jackknife, spearman_jackknife
from auditor.reports.data.coverage.lost_samples import (
    LostSamples,
    SampleCounts,
    WorstCaseFigures,
    bound_figures,
    count_samples,
    has_large_loss,
)
from auditor.reports.data.coverage.missing_scores import missing_r_reason, missing_score_reason, with_missing_reason
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.rescaled_scores import RESCALED_SCORES_REASON, has_rescaled_scores


class TwoWayEstimates(ReportModel):
    """The alignment figures as estimates, with 95% intervals over other countries and other topics."""

    countries: int
    topics: int
    pearson_r: Estimate
    spearman_rho: Estimate
    corrected_r: Estimate
    mae: Estimate
    rmse: Estimate
    bias: Estimate


class AlignmentRow(ReportModel):
    """Agreement of one model's scores with people's, over the cells in which both are known.

    Intervals and the p-value are over other countries and topics, except those named after Fisher.
    """

    model: str
    survey: str
    method: str
    n: int
    """Cells with a score of the model and of people."""
    pearson_r: float | None
    p_value: float | None
    """Two-sided p-value of r = 0, below 0.05 if the interval of r excludes 0; null where there is no interval."""
    ci_low: float | None
    ci_high: float | None
    """95% interval of r."""
    fisher_ci_low: float | None
    fisher_ci_high: float | None
    """95% interval of r by Fisher's z. It assumes that cells are independent, which they are not: it is too narrow."""
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
    """The same figures, each with its sample size, reason and population."""
    lost_samples: LostSamples
    """Planned samples without a usable score, such as refusals; those inside a cell with a score count too."""
    worst_case: WorstCaseFigures | None = None
    """Bounds of r, MAE and bias over all planned samples; null unless more than 5% of them are lost."""
    ceiling: float | None = None
    """The r that a perfect model is expected to reach against this survey; null where the survey's respondents are not
    known, with the reason in the report's `ceiling`."""


def compute_alignment(source: ReportSource, ceiling: float | None = None) -> list[AlignmentRow]:
    """Compute agreement with people for each model and method.

    Args:
        ceiling: r that a perfect model is expected to reach, from the survey's reliability.
    """
    return [
        _build_alignment_row(source, column, counts, ceiling) for column, counts in enumerate(count_samples(source))
    ]


def _build_alignment_row(
    source: ReportSource, column: int, counts: SampleCounts, ceiling: float | None
) -> AlignmentRow:
    """Compute the agreement of one model and method with people over all cells.

    `column` is the index of the model and method in `source.columns`; `ceiling` is the largest r to be expected.
    """
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column], source.survey_scores
    fisher_r = pearson(scores, truth)
    places = (source.country_index, source.topic_index)
    r = crossed_jackknife(PEARSON, scores, truth, *places)
    sample_arrays = (source.variance_matrix[column], source.column_values("n_ok", column))
    corrected = crossed_corrected(scores, truth, *sample_arrays, *places)
    figures = _compute_two_way_figures(source, column, r, fisher_r, corrected)
    lost = counts.count_lost()
    values = {PEARSON: figures.pearson_r.value, MAE: figures.mae.value, BIAS: figures.bias.value}
    return AlignmentRow(
        model=model,
        survey=source.survey.name,
        method=method,
        n=fisher_r.n,
        pearson_r=figures.pearson_r.value,
        p_value=r.p_value,
        ci_low=figures.pearson_r.ci_low,
        ci_high=figures.pearson_r.ci_high,
        fisher_ci_low=fisher_r.ci_low,
        fisher_ci_high=fisher_r.ci_high,
        spearman_rho=figures.spearman_rho.value,
        spearman_ci_low=figures.spearman_rho.ci_low,
        spearman_ci_high=figures.spearman_rho.ci_high,
        mae=figures.mae.value,
        mae_ci_low=figures.mae.ci_low,
        mae_ci_high=figures.mae.ci_high,
        rmse=figures.rmse.value,
        rmse_ci_low=figures.rmse.ci_low,
        rmse_ci_high=figures.rmse.ci_high,
        bias=figures.bias,
        corrected_r=figures.corrected_r,
        reliability=corrected.reliability,
        crossed=figures,
        lost_samples=lost,
        worst_case=bound_figures(source, column, counts, ~np.isnan(truth), values) if has_large_loss(lost) else None,
        ceiling=ceiling,
        n_dropped=len(scores) - fisher_r.n,
        n_without_survey=int(np.isnan(truth).sum()),
        reason=figures.pearson_r.reason,
    )


def _compute_two_way_figures(
    source: ReportSource,
    column: int,
    r: Estimate,
    fisher_r: Estimate,
    corrected: CorrectedCorrelation,
) -> TwoWayEstimates:
    """Compute the figures with intervals over countries and topics.

    Args:
        column: index of the model and method in `source.columns`.
        r: Pearson's r with its two-way interval.
        fisher_r: the same r, which names the reason where it is undefined.
        corrected: r corrected for sampling noise.
    """
    aligned_arrays = (source.score_matrix[column], source.survey_scores, source.country_index, source.topic_index)
    has_both = ~(np.isnan(aligned_arrays[0]) | np.isnan(aligned_arrays[1]))
    score_reason = missing_score_reason(source, column)
    r_reason = missing_r_reason(fisher_r, score_reason)
    if has_rescaled_scores(source.columns[column][0]):  # a column is (method, model)
        errors = [Estimate(None, r.n, reason=RESCALED_SCORES_REASON)] * 3
    else:
        errors = [crossed_jackknife(statistic, *aligned_arrays) for statistic in (MAE, RMSE, BIAS)]
    mae_estimate, rmse_estimate, bias_estimate = (with_missing_reason(error, score_reason) for error in errors)
    return TwoWayEstimates(
        countries=len(np.unique(source.country_index[has_both])),
        topics=len(np.unique(source.topic_index[has_both])),
        pearson_r=with_missing_reason(r, r_reason),
        spearman_rho=with_missing_reason(spearman_jackknife(*aligned_arrays), r_reason),
        corrected_r=with_missing_reason(corrected, missing_r_reason(corrected, score_reason)),
        mae=mae_estimate,
        rmse=rmse_estimate,
        bias=bias_estimate,
    )
