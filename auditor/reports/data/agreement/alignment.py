"""Agreement of each model with people over all cells: the figures, and how they are computed."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.designs.run_effects import error_of_one_wording, widen_for_wordings
from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.intervals.estimate import Estimate, Tested, bonferroni_level
from auditor.metrics.intervals.two_way import UnitLabels, bias_of_these_countries, crossed_jackknife, spearman_jackknife
from auditor.metrics.people.alignment import BIAS, CONCORDANCE, MAE, PEARSON, RMSE, Statistic, TwoWayEstimate
from auditor.metrics.people.survey_error import CorrectedCorrelation, crossed_corrected
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.coverage.lost_samples import (
    LostSamplesShown,
    SampleCounts,
    WorstCaseFigures,
    bound_figures,
    has_large_loss,
    missing_r_reason,
    missing_score_reason,
    with_missing_reason,
)
from auditor.reports.data.report_model import P_VALUE_KEYS, FlatRow, ModelName, PublishedAs, interval_keys
from auditor.reports.data.report_source import RESCALED_SCORES_REASON, ReportSource, has_rescaled_scores
from auditor.reports.document import Column


class AlignmentRow(FlatRow):
    """Agreement of one model's scores with people's, over the cells in which both are known.

    Intervals and p-values are over other countries and topics, except those named after Fisher. Countries are clustered
    by cultural zone where the cells are in at least six.
    """

    model: ModelName
    survey: str
    method: str
    countries: int
    """Countries with a cell that counts."""
    topics: int
    mae: Annotated[Estimate, interval_keys("mae", "mae"), Column("MAE", show_n=False, emphasis=True)]
    bias: Annotated[Estimate, Column("Bias", style="signed", show_n=False)]
    """Mean of the model's score minus people's: positive if the model is more permissive than people. Its reason is
    also that of a missing MAE or RMSE."""
    one_wording_mae: Annotated[Estimate | None, Column("MAE of one wording", show_n=False)] = None
    """Mean absolute error of the scores in a single wording, where questions were asked in several: the other figures
    are those of the mean over wordings."""
    bias_of_these_countries: Annotated[Estimate, Column("Bias, for these countries", style="signed", show_n=False)]
    """`bias` with an interval over other topics only, for the audit's own countries."""
    concordance: Annotated[Estimate, Column("Concordance", show_n=False)]
    """Lin's concordance, from -1 to 1: 1 only if the model's scores are equal to people's. It is below r wherever the
    mean or the spread of the scores differs from people's."""
    concordance_simultaneous: Estimate
    """`concordance` with an interval that holds for all series of scores together (Bonferroni): for the words of
    sentences about them."""
    rmse: Annotated[Estimate, interval_keys("rmse", "rmse"), Column("RMSE", show_n=False)]
    pearson_r: Annotated[
        Tested,
        PublishedAs(
            {"value": "pearson_r", "ci_low": "ci_low", "ci_high": "ci_high", "reason": "reason"} | P_VALUE_KEYS
        ),
        Column("r", key="r", show_n=False),
    ]
    """Pearson's r. Its p-values are of r = 0, the adjusted one for all series of scores; the first is below 0.05 if the
    interval excludes 0."""
    fisher_ci_low: float | None
    fisher_ci_high: float | None
    """95% interval of r by Fisher's z. It assumes that cells are independent, which they are not: it is too narrow."""
    spearman_rho: Annotated[Estimate, interval_keys("spearman_rho", "spearman"), Column("Spearman ρ", show_n=False)]
    corrected_r: Annotated[
        CorrectedCorrelation,
        PublishedAs({"reliability": "reliability"}, Estimate),
        Column("r without sampling noise", show_n=False),
    ]
    """r corrected for the sampling noise of the model's scores (Spearman's correction for attenuation, on the model's
    side only)."""
    ceiling: Annotated[
        float | None, Column("Highest r"), Column("p", "number", "p_value", style="p_value", path="pearson_r.p_value")
    ] = None
    """The r that a perfect model is expected to reach against this survey; null where the survey's respondents are not
    known, with the reason in the report's `ceiling`."""
    n: Annotated[int, Column("Cells")]
    """Cells with a score of the model and of people."""
    n_dropped: Annotated[int, Column("Dropped")]
    """Cells without a score of the model, of people, or of either."""
    n_without_survey: int
    """Dropped cells in which people were not asked."""
    lost_samples: LostSamplesShown
    """Planned samples without a usable score, such as refusals; those inside a cell with a score count too."""
    worst_case: WorstCaseFigures | None = None
    """Bounds of r, MAE and bias over all planned samples; null unless more than 5% of them are lost."""


def rank_by_error(row: AlignmentRow) -> tuple[bool, float, float]:
    """The one sorting key of series: the smallest mean absolute error first, then the largest r; without one last."""
    mae, r = row.mae.value, row.pearson_r.value
    return mae is None, mae or 0.0, -2.0 if r is None else -r


def compute_alignment(
    source: ReportSource, ceiling: float | None = None, family: str = "agreement with people"
) -> list[AlignmentRow]:
    """Compute agreement with people for each model and method.

    Args:
        ceiling: r that a perfect model is expected to reach, from the survey's reliability.
        family: of the tests of r, which are adjusted for all models and methods.
    """
    rows = [_build_alignment_row(source, column, counts, ceiling) for column, counts in enumerate(source.sample_counts)]
    return adjust_rows(rows, "pearson_r", family)


def _estimate_concordance(source: ReportSource, column: int) -> tuple[Estimate, Estimate]:
    """Lin's concordance of one series, with an interval of its own and one that holds for all series together."""
    if has_rescaled_scores(source.columns[column][0]):
        return (Estimate(None, 0, reason=RESCALED_SCORES_REASON),) * 2
    scores, truth = source.score_matrix[column], source.survey_scores
    places = (source.cluster_countries(scores, truth), source.topic_index)
    estimate = _estimate(CONCORDANCE, source, column, places)
    score_reason = missing_score_reason(source, column)
    n_compared = sum(not has_rescaled_scores(method) for method, _ in source.columns)
    simultaneous = estimate.at_level(bonferroni_level(n_compared))
    return with_missing_reason(estimate, score_reason), with_missing_reason(simultaneous, score_reason)


def _estimate(
    statistic: Statistic, source: ReportSource, column: int, places: tuple[UnitLabels, NDArray[np.intp]]
) -> TwoWayEstimate:
    """A statistic of one series, with its interval over places, and over wordings where there are several."""
    scores, truth = source.score_matrix[column], source.survey_scores
    estimate, by_wording = crossed_jackknife(statistic, scores, truth, *places), source.scores_by_wording(column)
    return estimate if by_wording is None else widen_for_wordings(estimate, statistic, by_wording, truth)


def _build_alignment_row(
    source: ReportSource, column: int, counts: SampleCounts, ceiling: float | None
) -> AlignmentRow:
    """Compute the agreement of one model and method with people over all cells.

    `column` is the index of the model and method in `source.columns`; `ceiling` is the largest r to be expected.
    """
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column], source.survey_scores
    fisher_r = pearson(scores, truth)
    places = (source.cluster_countries(scores, truth), source.topic_index)
    r = _estimate(PEARSON, source, column, places)
    sample_arrays = (source.variance_matrix[column], source.column_values("n_ok", column))
    corrected = crossed_corrected(scores, truth, *sample_arrays, *places)
    concordance, simultaneous = _estimate_concordance(source, column)
    score_reason = missing_score_reason(source, column)
    r_reason = missing_r_reason(fisher_r, score_reason)
    if has_rescaled_scores(method):
        errors = [Estimate(None, r.n, reason=RESCALED_SCORES_REASON)] * 3
    else:
        errors = [_estimate(statistic, source, column, places) for statistic in (MAE, RMSE, BIAS)]
    mae, rmse, bias = (with_missing_reason(error, score_reason) for error in errors)
    bias_here = errors[2]
    if not has_rescaled_scores(method):
        bias_here = bias_of_these_countries(scores, truth, source.topic_index)
    by_wording = source.scores_by_wording(column)
    has_both = ~(np.isnan(scores) | np.isnan(truth))
    lost = counts.count_lost()
    values = {PEARSON: r.value, MAE: mae.value, BIAS: bias.value}
    return AlignmentRow(
        model=model,
        survey=source.survey.name,
        method=method,
        countries=len(np.unique(source.country_index[has_both])),
        topics=len(np.unique(source.topic_index[has_both])),
        pearson_r=with_missing_reason(r, r_reason),
        fisher_ci_low=fisher_r.ci_low,
        fisher_ci_high=fisher_r.ci_high,
        spearman_rho=with_missing_reason(spearman_jackknife(scores, truth, *places), r_reason),
        corrected_r=with_missing_reason(corrected, missing_r_reason(corrected, score_reason)),
        ceiling=ceiling,
        mae=mae,
        rmse=rmse,
        bias=bias,
        bias_of_these_countries=with_missing_reason(bias_here, score_reason),
        one_wording_mae=None if by_wording is None else error_of_one_wording(by_wording, truth, *places),
        concordance=concordance,
        concordance_simultaneous=simultaneous,
        n=fisher_r.n,
        n_dropped=len(scores) - fisher_r.n,
        n_without_survey=int(np.isnan(truth).sum()),
        lost_samples=lost,
        worst_case=bound_figures(source, column, counts, ~np.isnan(truth), values) if has_large_loss(lost) else None,
    )
