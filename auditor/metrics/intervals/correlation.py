"""Correlations with intervals: over cells, over observations that share units, and over countries within topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import tanh

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import (
    CONSTANT_TOLERANCE,
    NORMAL_QUANTILE,
    Floats,
    Tested,
    complete_cases,
    is_constant,
)
from auditor.metrics.intervals.jackknife_interval import (
    FISHER_Z,
    IDENTITY,
    Transform,
    jackknife_interval,
    replicate_over_units,
)
from auditor.metrics.intervals.special_functions import stdtr
from auditor.metrics.intervals.two_way import UnitLabels, crossed_jackknife, select_labels
from auditor.metrics.people.alignment import PEARSON, Statistic, TwoWayEstimate


def pearson(x: ArrayLike, y: ArrayLike) -> Tested:
    """Pearson's product-moment correlation.

    The p-value is of the two-sided t test against 0, the 95% interval from Fisher's z with variance 1 / (n - 3). Both
    assume independent pairs; where cells share countries and topics, see `crossed_jackknife`.

    Args:
        x, y: shape (n,); pairs with nan on either side are left out.

    Returns:
        r in [-1, 1]; None with a reason for fewer than 3 pairs or a constant side. No interval for 3 pairs or |r| = 1.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), _ = complete_cases(x, y)
    return _correlation(a, b, ranks=False)


def spearman(x: ArrayLike, y: ArrayLike) -> Tested:
    """Spearman's rank correlation; ties have their mean rank.

    As `pearson`, but Fisher's z has the variance (1 + r²/2) / (n - 3) of Bonett and Wright (Psychometrika 65, 2000,
    23-28): the usual one gives intervals that are too narrow for ranks.
    """
    (a, b), _ = complete_cases(x, y)
    return _correlation(_ranks(a), _ranks(b), ranks=True)


def pearson_by_row(x: ArrayLike, y: ArrayLike) -> Floats:
    """Pearson's r of each row, as `pearson` computes it for one.

    Args:
        x, y: shapes that broadcast to (..., n); pairs with nan on either side are left out.

    Returns:
        Shape (...); nan where `pearson` has no value.
    """
    columns = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    is_pair = ~np.isnan(columns[0]) & ~np.isnan(columns[1])
    n = is_pair.sum(axis=-1)
    is_defined, product = n >= 3, np.ones(is_pair.shape)
    for column in columns:
        highest, lowest = (
            extreme(column, axis=-1, where=is_pair, initial=initial)
            for extreme, initial in ((np.max, -np.inf), (np.min, np.inf))
        )
        is_defined &= highest - lowest > CONSTANT_TOLERANCE * np.maximum(np.abs(highest), np.abs(lowest))
        mean = column.sum(axis=-1, where=is_pair) / np.maximum(n, 1)
        centered = np.where(is_pair, column - mean[..., None], 0.0)
        scaled = centered / np.where(is_defined, np.abs(centered).max(axis=-1, initial=0.0), 1.0)[..., None]
        product *= scaled / np.where(is_defined, np.linalg.norm(scaled, axis=-1), 1.0)[..., None]
    r: Floats = np.where(is_defined, np.clip(product.sum(axis=-1), -1, 1), np.nan)
    return r


def dependent_correlation_difference(truth: ArrayLike, first: ArrayLike, second: ArrayLike) -> Tested:
    """Test whether `first` correlates better with `truth` than `second` does, on the same rows.

    Test: Williams' t (Steiger, Psychological Bulletin 87, 1980, eq. 7). Interval: Zou (Psychological Methods 12, 2007,
    eq. 15), which combines the Fisher intervals of both correlations.

    Args:
        truth, first, second: shape (n,); rows with a nan are left out.

    Returns:
        The difference, in [-2, 2]; None with a reason for fewer than 4 rows, a constant or a collinear column.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    columns, _ = complete_cases(truth, first, second)
    n = len(columns[0])
    if n < 4:
        return Tested(None, n, reason=f"fewer than 4 rows ({n})")
    if any(is_constant(column) for column in columns):
        return Tested(None, n, reason="a column is constant")
    r: Floats = np.corrcoef(np.stack(columns))
    j, k, h = float(r[0, 1]), float(r[0, 2]), float(r[1, 2])
    if float(np.linalg.det(r)) < 1e-12:
        reason = "a column is a linear function of the others: no test"
        return Tested(j - k, n, reason=reason)
    p_value = _two_sided_p_value(_williams_t(j, k, h, n), n - 3)
    return Tested(j - k, n, *_zou_interval(j, k, h, n), p_value=p_value)


def _correlation(x: Floats, y: Floats, *, ranks: bool) -> Tested:
    """Pearson's r of complete pairs with its t test and Fisher interval; `ranks` selects the variance for ranks."""
    n = len(x)
    reason = _undefined_reason(x, y)
    if reason is not None:
        return Tested(None, n, reason=reason)
    r = _product_moment(x, y)
    if 1 - abs(r) < 1e-14:
        return Tested(r, n, reason="|r| = 1: no interval", p_value=0.0)
    p = _two_sided_p_value(r * float(np.sqrt((n - 2) / ((1 - r) * (1 + r)))), n - 2)
    if n == 3:
        return Tested(r, n, reason="an interval needs 4 pairs", p_value=p)
    return Tested(r, n, *_fisher_interval(r, n, 1 + r * r / 2 if ranks else 1.0), p_value=p)


def _undefined_reason(x: Floats, y: Floats) -> str | None:
    """Why r is undefined: fewer than 3 pairs, or a constant side; None where it is defined."""
    if len(x) < 3:
        return f"fewer than 3 pairs ({len(x)})"
    constant_sides = [name for name, side in (("x", x), ("y", y)) if is_constant(side)]
    return f"{' and '.join(constant_sides)} constant" if constant_sides else None


def _ranks(values: Floats) -> Floats:
    """Midranks, from 1: equal values share the mean of their ranks."""
    _, value_index, counts = np.unique(values, return_inverse=True, return_counts=True)
    midranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[value_index]
    return midranks


def _product_moment(x: Floats, y: Floats) -> float:
    """Pearson's r, clipped to [-1, 1]."""
    # Scaled to unit length before the product: the squares of small deviations would underflow.
    u, v = (_normalize(column - column.mean()) for column in (x, y))
    return float(np.clip(u @ v, -1, 1))


def _normalize(v: Floats) -> Floats:
    """The vector scaled to length 1."""
    scaled: Floats = v / np.abs(v).max()
    unit: Floats = scaled / np.linalg.norm(scaled)
    return unit


def _two_sided_p_value(t: float, df: int) -> float:
    """Two-sided p-value of Student's t with `df` degrees of freedom."""
    return float(2 * stdtr(df, -abs(t)))


def _fisher_interval(r: float, n: int, variance: float = 1.0) -> tuple[float, float]:
    """95% interval of r from Fisher's z, whose variance is `variance` / (n - 3)."""
    half_width = NORMAL_QUANTILE * float(np.sqrt(variance / (n - 3)))
    z = np.arctanh(r)
    return float(np.tanh(z - half_width)), float(np.tanh(z + half_width))


def _williams_t(j: float, k: float, h: float, n: int) -> float:
    """Williams' t for two dependent correlations (Steiger 1980, eq. 7).

    Args:
        j, k: correlations of the truth with the first and the second column.
        h: correlation of these two columns.
        n: number of rows.
    """
    det = 1 - j * j - k * k - h * h + 2 * j * k * h
    scale = 2 * det * (n - 1) / (n - 3) + ((j + k) / 2) ** 2 * (1 - h) ** 3
    return float((j - k) * np.sqrt((n - 1) * (1 + h) / scale))


def _zou_interval(j: float, k: float, h: float, n: int) -> tuple[float, float]:
    """Zou's 95% interval of j - k (2007, eq. 15); arguments as for `_williams_t`."""
    correlation = ((h - j * k / 2) * (1 - j * j - k * k - h * h) + h**3) / ((1 - j * j) * (1 - k * k))
    (low_j, high_j), (low_k, high_k) = _fisher_interval(j, n), _fisher_interval(k, n)
    lower_width, upper_width = (
        _zou_half_width(j - low_j, high_k - k, correlation),
        _zou_half_width(high_j - j, k - low_k, correlation),
    )
    return j - k - lower_width, j - k + upper_width


def _zou_half_width(a: float, b: float, correlation: float) -> float:
    """Distance from the difference to one end, from the distances a and b of the single intervals' ends."""
    return float(np.sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b)))


MIN_OBSERVATIONS = 3
"""Fewest observations for a correlation."""
UNDEFINED_REASON = "too few values, or all values of a side are equal"
SIDES = ("one side", "the other side")


def correlate_over_units(
    x: ArrayLike,
    y: ArrayLike,
    units: Mapping[str, ArrayLike],
    sides: tuple[str, str] = SIDES,
    *,
    weights: ArrayLike | None = None,
) -> Tested:
    """Pearson's r, with its interval on Fisher's z and the p-value of r = 0; `n` counts observations.

    Args:
        x, y: shape (n,); observations with a nan on either side are left out.
        units: the kind of unit, and the unit of each observation, shape (n,).
        sides: what x and y are, for the reason why there is no value.
        weights: shape (n,), for how many observations each one stands; by default each for one.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), is_complete = complete_cases(x, y)
    [(unit, labels)] = units.items()
    r, replicates = _correlation_without_units(
        a, b, np.asarray(labels)[is_complete], _select_weights(weights, is_complete)
    )
    if not np.isfinite(r):
        return Tested(None, len(a), reason=_explain_undefined(a, b, sides))
    return _to_estimate(r, len(a), unit, replicates, FISHER_Z)


def _explain_undefined(x: Floats, y: Floats, sides: tuple[str, str]) -> str:
    """Why two sides have no correlation."""
    if len(x) < MIN_OBSERVATIONS:
        return f"a correlation needs at least {MIN_OBSERVATIONS} values on both sides, but there are {len(x)}"
    constant = [side for side, values in zip(sides, (x, y), strict=True) if np.ptp(values) == 0]
    return f"all {len(x)} values of {' and of '.join(constant or sides)} are equal"


def correlation_difference_over_units(
    outcome: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    units: Mapping[str, ArrayLike],
    *,
    weights: ArrayLike | None = None,
) -> Tested:
    """The correlation of `first` with the outcome minus that of `second`, over the same observations; `n` counts them.

    Args:
        outcome, first, second, units, weights: as for `correlate_over_units`.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (y, a, b), is_complete = complete_cases(outcome, first, second)
    [(unit, labels)] = units.items()
    names = np.asarray(labels)[is_complete]
    (r_first, without_first), (r_second, without_second) = (
        _correlation_without_units(values, y, names, _select_weights(weights, is_complete)) for values in (a, b)
    )
    return _to_estimate(r_first - r_second, len(y), unit, without_first - without_second, IDENTITY, (-2.0, 2.0))


def _select_weights(weights: ArrayLike | None, is_complete: NDArray[np.bool_]) -> Floats:
    """Weights of the complete cases, with a mean of 1."""
    selected = np.ones(int(is_complete.sum())) if weights is None else np.asarray(weights, dtype=float)[is_complete]
    return selected / selected.mean() if len(selected) else selected


def _correlation_without_units(x: Floats, y: Floats, labels: ArrayLike, weights: Floats) -> tuple[float, Floats]:
    """Pearson's r, and that without each unit; nan where undefined."""
    if len(x) < MIN_OBSERVATIONS:
        return float("nan"), np.empty(0)
    moments = PEARSON.moments(x, y) * weights[:, None]
    replicates = replicate_over_units(moments, PEARSON.value, {"unit": labels})
    return float(PEARSON.value(moments.sum(axis=0)[None])[0]), replicates.units["unit"]


def _to_estimate(
    value: float,
    n: int,
    unit: str,
    replicates: Floats,
    transform: Transform,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> Tested:
    """A statistic with its interval; without a value, and a reason, where it is undefined."""
    if not np.isfinite(value):
        return Tested(None, n, reason=UNDEFINED_REASON)
    interval = jackknife_interval(value, {unit: replicates}, transform, bounds)
    if interval.low is None or interval.high is None:
        return Tested(value, n, reason=interval.reason)
    return Tested(value, n, interval.low, interval.high, resampled=(unit,), p_value=interval.p_value)


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
