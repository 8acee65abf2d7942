"""Weighted means of answers with standard errors, and bounds for nonresponse. Pure functions on numpy arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.surveys.survey_design import SurveyDesign

Floats = NDArray[np.float64]


class WeightedMean(NamedTuple):
    """A weighted mean.

    Attributes:
        mean: the weighted mean; None without answers.
        standard_error: by Taylor linearisation, as R's `survey::svymean`: it does not depend on the scale of the
            weights, and unequal weights increase it. None for fewer than two answers or sampling units.
        n: number of respondents with an answer, unweighted.
        n_effective: Kish's effective sample size, at most n; 0 if n is 0.
    """

    mean: float | None
    standard_error: float | None
    n: int
    n_effective: float


def compute_weighted_mean(answers: Floats, weights: Floats, design: SurveyDesign | None = None) -> WeightedMean:
    """Compute the weighted mean of answers with its standard error.

    With W the sum of weights w and m the mean, an answer x has the residual w (x - m) / W. Without a design the error
    is sqrt(n / (n - 1) * sum of squared residuals). With one, residuals are summed over each primary sampling unit; a
    stratum of k units adds k / (k - 1) times the sum of squared deviations of these totals from the stratum's mean, a
    stratum of one unit the square of its total (Lohr, Sampling: Design and Analysis, ch. 9). The effective size is
    W^2 / sum w^2 (Kish 1965).

    Args:
        answers: shape (respondents,); nan is left out.
        weights: shape (respondents,), above 0.
        design: of these respondents; None if each was drawn by themselves.
    """
    is_answered = ~np.isnan(answers)
    answers, weights = answers[is_answered], weights[is_answered]
    n, total_weight = answers.size, float(weights.sum())
    if n == 0:
        return WeightedMean(None, None, 0, 0.0)
    mean = float(weights @ answers) / total_weight
    residuals = weights * (answers - mean) / total_weight
    if n == 1:
        variance = None
    elif design is None:
        variance = n / (n - 1) * float(residuals @ residuals)
    else:
        variance = design.select(is_answered).sum_variance(residuals)
    error = None if variance is None else math.sqrt(variance)
    return WeightedMean(mean, error, n, total_weight**2 / float(weights @ weights))


def weighted_share(mask: NDArray[np.bool_], weights: Floats) -> float | None:
    """Weighted share of respondents for whom `mask` is true, in [0, 1]; None without respondents."""
    total_weight = float(weights.sum())
    return float(weights[mask].sum()) / total_weight if total_weight > 0 else None


def compute_neutral_mean(answers: Floats, weights: Floats, design: SurveyDesign | None = None) -> WeightedMean:
    """Compute the weighted mean with missing answers (nan) counted as 0, neutral, as in EvalMORAAL.

    Pass only respondents who were asked the question. Without any answer the mean is None.
    """
    completed = answers if np.isnan(answers).all() else np.nan_to_num(answers, nan=0.0)
    return compute_weighted_mean(completed, weights, design)


def nonresponse_bounds(answers: Floats, weights: Floats) -> tuple[float, float] | None:
    """Compute worst-case bounds of the weighted mean: all missing answers at -1, and all at +1 (Manski 1989).

    Pass only respondents who were asked the question.

    Returns:
        Lower and upper bound, or None if nobody answered.
    """
    if np.isnan(answers).all():
        return None
    low, high = (
        compute_weighted_mean(np.nan_to_num(answers, nan=assumed_answer), weights).mean
        for assumed_answer in (-1.0, 1.0)
    )
    return (low, high) if low is not None and high is not None else None
