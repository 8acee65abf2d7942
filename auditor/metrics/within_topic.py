"""Correlation of scores and truth over countries within topics."""

from __future__ import annotations

from dataclasses import replace
from math import tanh

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._two_way_table import UnitLabels, select_labels
from auditor.metrics.cell_statistics import Statistic, TwoWayEstimate
from auditor.metrics.jackknife import crossed_jackknife


def within_topic_correlation(
    scores: ArrayLike, truth: ArrayLike, countries: ArrayLike | UnitLabels, topics: ArrayLike
) -> TwoWayEstimate:
    """Pearson's r after centring both sides by topic (the within-group correlation).

    Knowing the mean of each topic over countries does not increase it: for scores unrelated to differences between
    countries its expectation is 0. The difference of r from that of a baseline of topic means without the cell itself
    does not have this property: within a topic such a baseline correlates -1 with the truth.

    Args:
        scores, truth: shape (n,), one value per cell; cells with a nan on either side are left out.
        countries, topics: shape (n,), labels of any kind.

    Returns:
        In [-1, 1], with the interval of `crossed_jackknife` on Fisher's z and the p-value of r = 0. None, with a
        reason, where a side is the same in all countries on every topic.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    country, topic = (select_labels(labels, is_complete) for labels in (countries, topics))
    topic_index = np.unique(topic, return_inverse=True)[1]
    centred_scores, centred_truth = _center_by_topic(x, topic_index), _center_by_topic(y, topic_index)
    z_estimate = crossed_jackknife(_within_topic_statistic(topic_index), centred_scores, centred_truth, country, topic)
    if z_estimate.value is None:
        constant_sides = [
            name for name, side in (("scores", centred_scores), ("truth", centred_truth)) if len(x) and not side.any()
        ]
        reason = f"{' and '.join(constant_sides)} constant within topics" if constant_sides else z_estimate.reason
        return replace(z_estimate, reason=reason)
    low, high = (None if end is None else tanh(end) for end in (z_estimate.ci_low, z_estimate.ci_high))
    return replace(z_estimate, value=tanh(z_estimate.value), ci_low=low, ci_high=high)


def _center_by_topic(values: Floats, topic_index: NDArray[np.intp]) -> Floats:
    """The values minus their topic's mean, in units of the largest deviation; all 0 if these are rounding errors."""
    if not len(values):
        return values
    deviation: Floats = values - (np.bincount(topic_index, values) / np.bincount(topic_index))[topic_index]
    largest = np.abs(deviation).max()
    return np.zeros_like(values) if largest <= 1e-12 * np.abs(values).max() else deviation / largest


def _within_topic_statistic(topic_index: NDArray[np.intp]) -> Statistic:
    """Fisher's z of the within-topic r as a statistic of sums; each topic has its own columns of sums."""
    n_topics = int(topic_index.max(initial=-1)) + 1

    def moments(x: Floats, y: Floats) -> Floats:
        """1, x, y, x², y² and xy in the columns of the cell's topic, shape (n, 6 topics); 0 in the others."""
        sums = np.zeros((len(x), n_topics, 6))
        sums[np.arange(len(x)), topic_index] = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
        return sums.reshape(len(x), n_topics * 6)

    def value(sums: Floats) -> Floats:
        """Fisher's z from within-topic sums of squares and products, shape (replicates,); nan if a side is constant."""
        n, x, y, xx, yy, xy = np.moveaxis(sums.reshape(len(sums), n_topics, 6), 2, 0)
        n = np.maximum(n, 1.0)
        sxx, syy, sxy = ((a - b / n).sum(axis=1) for a, b in ((xx, x * x), (yy, y * y), (xy, x * y)))
        defined = (sxx > 1e-12) & (syy > 1e-12)
        r = sxy / np.sqrt(np.where(defined, sxx * syy, 1.0))
        z: Floats = np.where(defined, np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)), np.nan)
        return z

    return Statistic(moments, value)
