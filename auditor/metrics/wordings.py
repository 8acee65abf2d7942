"""Agreement of mean scores over several wordings of each question, with the wording as a source of uncertainty.

The figure is that of the mean over wordings. To its variance over countries (or zones) and topics the jackknife
variance over wordings is added; Student's degrees of freedom are Satterthwaite's (Biometrics Bulletin 2, 1946), rounded
down.
Ignoring the wording, intervals are too short wherever a wording shifts all answers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._special import stdtr, stdtrit
from auditor.metrics._two_way_table import UnitLabels, select_labels
from auditor.metrics.cell_statistics import MAE, Statistic, TwoWayEstimate
from auditor.metrics.confidence import UPPER_QUANTILE
from auditor.metrics.jackknife import STATISTIC_TRANSFORMS, jackknife_sums
from auditor.metrics.jackknife_interval import IDENTITY, LOG, Transform, jackknife_variance

MIN_WORDINGS = 2


def add_wording_variance(
    estimate: TwoWayEstimate, without_each: ArrayLike, transform: Transform = IDENTITY
) -> TwoWayEstimate:
    """Widen an estimate of a mean over wordings by the variance over wordings.

    Args:
        estimate: with its interval over countries and topics.
        without_each: the figure without each wording, shape (wordings,), at least 2.
        transform: the scale on which the estimate's interval is symmetric.

    Returns:
        The estimate itself where it has no interval, or the figure is undefined without a wording.
    """
    values, interval = np.asarray(without_each, dtype=np.float64), estimate.interval
    if interval is None or interval.std_error is None or interval.centre is None or len(values) < MIN_WORDINGS:
        return estimate
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates: Floats = transform.forward(values)
    if not np.isfinite(replicates).all():
        return estimate
    of_places, of_wordings = interval.std_error**2, jackknife_variance([replicates])
    variance = of_places + of_wordings
    df = int(variance**2 / (of_places**2 / interval.df + of_wordings**2 / (len(values) - 1)))
    centre, std_error = interval.centre, variance**0.5

    def compute_ends(quantile: float) -> tuple[float, float]:
        low, high = transform.inverse(centre + np.array([-quantile, quantile]) * std_error)
        return float(low), float(high)

    low, high = compute_ends(float(stdtrit(df, UPPER_QUANTILE)))
    p_value = None if estimate.p_value is None else float(2 * stdtr(df, -abs(centre) / std_error))
    widened = replace(interval, low=low, high=high, std_error=std_error, df=df, p_value=p_value, ends_at=compute_ends)
    return replace(
        estimate,
        ci_low=low,
        ci_high=high,
        p_value=p_value,
        resampled=(*estimate.resampled, "wording"),
        generalizes_to=None,
        interval=widened,
    )


def widen_for_wordings(
    estimate: TwoWayEstimate, statistic: Statistic, scores: ArrayLike, truth: ArrayLike
) -> TwoWayEstimate:
    """`add_wording_variance` to a statistic of the mean over wordings.

    Args:
        estimate: of the mean over wordings, as `crossed_jackknife` gives it.
        scores: shape (wordings, n); nan where a wording has no score of a cell.
        truth: shape (n,).
    """
    table, y = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if len(table) < MIN_WORDINGS:
        return estimate
    is_scored = ~np.isnan(table)
    total, count = np.where(is_scored, table, 0.0).sum(axis=0), is_scored.sum(axis=0)
    without_each = []
    for wording, is_in in zip(table, is_scored, strict=True):
        n_others = count - is_in
        mean = (total - np.where(is_in, wording, 0.0)) / np.maximum(n_others, 1)
        is_complete = (n_others > 0) & ~np.isnan(y)
        sums = statistic.moments(mean[is_complete], y[is_complete]).sum(axis=0)
        without_each.append(float(statistic.value(sums[None])[0]))
    return add_wording_variance(estimate, without_each, STATISTIC_TRANSFORMS.get(statistic, IDENTITY))


def error_of_one_wording(
    scores: ArrayLike, truth: ArrayLike, countries: ArrayLike | UnitLabels, topics: ArrayLike
) -> TwoWayEstimate:
    """Mean absolute error of a single wording: the mean over wordings, with its interval over places and wordings.

    The error of the mean over wordings is smaller wherever wordings differ.

    Args:
        scores: shape (wordings, n); cells with a nan in any wording or in `truth` are left out.
        truth, countries, topics: shape (n,).
    """
    table, y = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    errors = np.abs(table - y)
    is_complete: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(errors))
    if not is_complete.any():
        return TwoWayEstimate(None, 0, reason="no cell has a score in all wordings")
    by_wording = errors[:, is_complete].mean(axis=1)
    moments = np.stack([np.ones(int(is_complete.sum())), errors[:, is_complete].mean(axis=0)], axis=1)
    country, topic = (select_labels(labels, is_complete) for labels in (countries, topics))
    estimate = jackknife_sums(moments, MAE.value, country, topic, LOG)
    without_each = (by_wording.sum() - by_wording) / max(1, len(by_wording) - 1)
    return add_wording_variance(estimate, without_each, LOG)
