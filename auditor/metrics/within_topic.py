"""Agreement on how countries differ, with the topics taken out; and the test of r = 0 that fits a crossed interval."""

from __future__ import annotations

from dataclasses import replace
from math import atanh, tanh

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics.bootstrap import Statistic, TwoWayEstimate
from auditor.metrics.jackknife import crossed_jackknife


def within_topic_correlation(
    scores: ArrayLike, truth: ArrayLike, countries: ArrayLike, topics: ArrayLike
) -> TwoWayEstimate:
    """Pearson's r after each topic's mean over countries is taken out of both sides (the within-group correlation).

    Knowing what each topic is like everywhere adds nothing to it: for scores that are unrelated to how countries
    differ, its expectation is 0. The difference of r from that of a baseline whose topic means leave the cell out does
    not have this: within a topic such a baseline correlates -1 with the truth.

    Args:
        scores, truth: shape (n,), a cell each; cells with a nan on either side are left out.
        countries, topics: shape (n,), labels of any kind.

    Returns:
        In [-1, 1], with the interval of `crossed_jackknife` on Fisher's z and the p-value of r = 0. None, with a
        reason, where a side is the same in all countries on every topic.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), keep = complete_cases(scores, truth)
    country, topic = (np.asarray(labels)[keep] for labels in (countries, topics))
    place = np.unique(topic, return_inverse=True)[1]
    left, right = _center_by_topic(x, place), _center_by_topic(y, place)
    found = crossed_jackknife(_within_topic_statistic(place), left, right, country, topic)
    if found.estimate is None:
        flat = [name for name, side in (("scores", left), ("truth", right)) if len(x) and not side.any()]
        reason = f"{' and '.join(flat)} constant within topics" if flat else found.reason
        return replace(found, reason=reason)
    low, high = (None if end is None else tanh(end) for end in (found.low, found.high))
    on_r = replace(found, estimate=tanh(found.estimate), low=low, high=high)
    return replace(on_r, p_value=zero_correlation_p_value(on_r))


def zero_correlation_p_value(correlation: TwoWayEstimate) -> float | None:
    """The two-sided p-value of r = 0 that inverts the interval of an r from `crossed_jackknife`.

    The interval is Student's on Fisher's z, so the end nearer to 0 gives back its standard error.

    Returns:
        In [0, 1], below 0.05 where the interval leaves out 0; None where there is no interval.
    """
    if correlation.estimate is None or correlation.low is None or correlation.high is None:
        return None
    freedom = min(correlation.n_countries, correlation.n_topics) - 1
    z = atanh(correlation.estimate)
    near = atanh(correlation.low if z > 0 else correlation.high)
    error = abs(z - near) / float(stdtrit(freedom, 0.975))
    return float(2 * stdtr(freedom, -abs(z) / error))


def _center_by_topic(values: Floats, topic_index: NDArray[np.intp]) -> Floats:
    """Less the mean of the topic, in units of the largest deviation; all 0 where only rounding is left."""
    if not len(values):
        return values
    deviation: Floats = values - (np.bincount(topic_index, values) / np.bincount(topic_index))[topic_index]
    most = np.abs(deviation).max()
    return np.zeros_like(values) if most <= 1e-12 * np.abs(values).max() else deviation / most


def _within_topic_statistic(topic_index: NDArray[np.intp]) -> Statistic:
    """Fisher's z of the within-topic r; a topic's sums are columns of their own."""
    topics = int(topic_index.max(initial=-1)) + 1

    def moments(x: Floats, y: Floats) -> Floats:
        sums = np.zeros((len(x), topics, 6))
        sums[np.arange(len(x)), topic_index] = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
        return sums.reshape(len(x), topics * 6)

    def value(sums: Floats) -> Floats:
        n, x, y, xx, yy, xy = np.moveaxis(sums.reshape(len(sums), topics, 6), 2, 0)
        n = np.maximum(n, 1.0)
        sxx, syy, sxy = ((a - b / n).sum(axis=1) for a, b in ((xx, x * x), (yy, y * y), (xy, x * y)))
        defined = (sxx > 1e-12) & (syy > 1e-12)
        r = sxy / np.sqrt(np.where(defined, sxx * syy, 1.0))
        z: Floats = np.where(defined, np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)), np.nan)
        return z

    return Statistic(moments, value)
