"""Why a series of scores has no figure: the cause that is recorded, not the first that arithmetic meets."""

from __future__ import annotations

import numpy as np

from auditor.domain import Method
from auditor.metrics.attenuation import CorrectedCorrelation
from auditor.metrics.correlation import Correlation
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import ReportSource

CONSTANT_SERIES_REASONS = {
    "x constant": "the model gives every cell the same score",
    "y constant": "people say the same everywhere",
    "x and y constant": "the model gives every cell the same score, and people say the same everywhere",
}
"""A metric's words where its x is the model and its y the survey."""


def missing_score_reason(source: ReportSource, column: int) -> str | None:
    """Why a series has no score on any cell that people were asked about; None where it has one."""
    method, model = source.columns[column]
    asked = ~np.isnan(source.survey_scores)
    if not asked.any():
        return "people were asked about none of the cells"
    if (~np.isnan(source.score_matrix[column]) & asked).any():
        return None
    if method == Method.LOGPROB:
        return _missing_logprob_reason(source, model)
    if method == Method.DIRECT and source.config is not None:
        some = any(t.model == model for t in source.trace_counts)
        return "no sample has a usable score" if some else "no sample has been taken"
    return "no score is recorded"


def _missing_logprob_reason(source: ReportSource, model: str) -> str:
    mine = [s for s in source.scores if (s.method, s.model) == (Method.LOGPROB.value, model)]
    known = sum(s.raw is not None for s in mine)
    if known > 1:
        return "its log-probabilities differ equally on every cell: without a range they cannot be scaled to [-1, 1]"
    if known == 1:
        return "one cell only has all its comparisons: without a range it cannot be scaled to [-1, 1]"
    if not any(s.measure for s in mine):
        return "the model's log-probabilities cannot be measured"
    return "no cell has all its comparisons"


def missing_r_reason(correlation: Correlation | CorrectedCorrelation, score_reason: str | None = None) -> str | None:
    """Why a correlation of a model with people, or its interval, is missing; None where nothing is."""
    if score_reason is not None and correlation.r is None:
        return score_reason
    return None if correlation.reason is None else CONSTANT_SERIES_REASONS.get(correlation.reason, correlation.reason)


def with_missing_reason(estimate: Estimate, missing_reason: str | None) -> Estimate:
    """An estimate that says why it has no value, where that is known better."""
    return (
        estimate
        if missing_reason is None or estimate.value is not None
        else estimate.model_copy(update={"reason": missing_reason})
    )
