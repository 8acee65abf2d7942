"""Weighted means of answers with standard errors, and bounds for nonresponse. Pure functions on numpy arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class WeightedMean(NamedTuple):
    """A weighted mean.

    Attributes:
        mean: the weighted mean; None without answers.
        standard_error: standard error with the sum of the weights as the sample size, like statsmodels'
            `DescrStatsW.std_mean`: a respondent of weight 2 counts as two people. None for fewer than two answers,
            or weights that sum to 1 or less.
        design_error: standard error by Taylor linearisation, like R's `survey::svymean` without strata and clusters:
            it does not depend on the scale of the weights, and unequal weights increase it. None for fewer than two
            answers.
        n: number of respondents with an answer, unweighted.
        n_effective: Kish's effective sample size, at most n; 0 if n is 0.
    """

    mean: float | None
    standard_error: float | None
    design_error: float | None
    n: int
    n_effective: float


def compute_weighted_mean(answers: Floats, weights: Floats) -> WeightedMean:
    """Compute the weighted mean of answers, with two standard errors.

    With W the sum of weights w and m the mean: the standard error is sqrt(sum w (x - m)^2 / W / (W - 1)), and the
    design error sqrt(n / (n - 1) * sum w^2 (x - m)^2) / W (Lohr, Sampling: Design and Analysis, ch. 9).
    The effective size is W^2 / sum w^2 (Kish 1965).

    Args:
        answers: shape (respondents,); nan is left out.
        weights: shape (respondents,), above 0.
    """
    is_answered = ~np.isnan(answers)
    answers, weights = answers[is_answered], weights[is_answered]
    n, total_weight = answers.size, float(weights.sum())
    if n == 0:
        return WeightedMean(None, None, None, 0, 0.0)
    mean = float(weights @ answers) / total_weight
    weighted_squares = weights * (answers - mean) ** 2
    standard_error = (
        math.sqrt(float(weighted_squares.sum()) / total_weight / (total_weight - 1))
        if n > 1 and total_weight > 1
        else None
    )
    design_error = math.sqrt(n / (n - 1) * float(weights @ weighted_squares)) / total_weight if n > 1 else None
    return WeightedMean(mean, standard_error, design_error, n, total_weight**2 / float(weights @ weights))


def weighted_share(mask: NDArray[np.bool_], weights: Floats) -> float | None:
    """Weighted share of respondents for whom `mask` is true, in [0, 1]; None without respondents."""
    total_weight = float(weights.sum())
    return float(weights[mask].sum()) / total_weight if total_weight > 0 else None


def compute_neutral_mean(answers: Floats, weights: Floats) -> WeightedMean:
    """Compute the weighted mean with missing answers (nan) counted as 0, neutral, as in EvalMORAAL.

    Pass only respondents who were asked the question. Without any answer the mean is None.
    """
    return compute_weighted_mean(answers if np.isnan(answers).all() else np.nan_to_num(answers, nan=0.0), weights)


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
