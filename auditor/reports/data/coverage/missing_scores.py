"""Reasons why a series of scores has no figure, from the records rather than from the failed computation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from auditor.domain import Method
from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_source import ReportSource

AnyEstimate = TypeVar("AnyEstimate", bound=Estimate)

CONSTANT_SERIES_REASONS = {
    "x constant": "the model gives every cell the same score",
    "y constant": "people’s score is the same in every cell",
    "x and y constant": "the scores of the model and of people are the same in every cell",
}
"""Plain text of a metric's `reason`, where x is the model and y the survey."""


def missing_score_reason(source: ReportSource, column: int) -> str | None:
    """Return the reason why a series has no score on any cell with a survey score; None where it has one.

    Args:
        column: index into `source.columns`, a pair of method and model.
    """
    method, model = source.columns[column]
    has_truth = ~np.isnan(source.survey_scores)
    if not has_truth.any():
        return "people were asked about none of the cells"
    if (~np.isnan(source.score_matrix[column]) & has_truth).any():
        return None
    if method == Method.LOGPROB:
        return _missing_logprob_reason(source, model)
    if method == Method.DIRECT and source.config is not None:
        has_samples = any(count.model == model for count in source.trace_counts)
        return "no sample has a usable score" if has_samples else "no sample has been taken"
    return "no score is recorded"


def _missing_logprob_reason(source: ReportSource, model: str) -> str:
    """Return the reason why a model has no scaled log-probability score."""
    model_scores = [score for score in source.scores if (score.method, score.model) == (Method.LOGPROB.value, model)]
    n_complete_cells = sum(score.raw is not None for score in model_scores)
    if n_complete_cells > 1:
        return "its log-probabilities differ equally on every cell, so they cannot be scaled to [-1, 1]"
    if n_complete_cells == 1:
        return "only one cell has all its comparisons, so it cannot be scaled to [-1, 1]"
    if not any(score.measure for score in model_scores):
        return "the model's log-probabilities cannot be measured"
    return "no cell has all its comparisons"


def missing_r_reason(correlation: Estimate, score_reason: str | None = None) -> str | None:
    """Return the reason why a correlation with people, or its interval, is missing; None where both exist.

    Args:
        score_reason: why the model has no scores at all, from `missing_score_reason`.
    """
    if score_reason is not None and correlation.value is None:
        return score_reason
    return None if correlation.reason is None else CONSTANT_SERIES_REASONS.get(correlation.reason, correlation.reason)


def with_missing_reason(estimate: AnyEstimate, missing_reason: str | None) -> AnyEstimate:
    """Replace the reason of an estimate without a value, where a more specific reason is known."""
    return (
        estimate if missing_reason is None or estimate.value is not None else replace(estimate, reason=missing_reason)
    )


def replace_reason(estimate: AnyEstimate, labels: Mapping[str, str]) -> AnyEstimate:
    """The estimate with its reason in the words of `labels`, by the metric's reason; unchanged if it has no label."""
    return replace(estimate, reason=labels.get(estimate.reason or "", estimate.reason))
