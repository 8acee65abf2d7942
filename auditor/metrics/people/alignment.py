"""Statistics of scores against people's: errors, concordance and correlation, also by country or topic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.intervals.estimate import UPPER_QUANTILE, Estimate, Floats, Tested, complete_cases, is_constant
from auditor.metrics.intervals.jackknife_interval import (
    CONSTANT_REASON,
    MIN_UNITS,
    JackknifeInterval,
    jackknife_variance,
    too_few_reason,
)
from auditor.metrics.intervals.special_functions import stdtr, stdtrit


@dataclass(frozen=True, slots=True)
class TwoWayEstimate(Tested):
    """A statistic with its interval over other countries and topics; `n` counts cells.

    There is no p-value where a true value of 0 is no question, as for an MAE.
    """

    interval: JackknifeInterval | None = field(default=None, compare=False, repr=False)
    """The interval on the scale on which it was computed; None without a value."""

    def at_level(self, confidence_level: float) -> TwoWayEstimate:
        """The same estimate with its interval at another level, such as `bonferroni_level`; itself without one."""
        if self.interval is None or self.interval.ends_at is None:
            return self
        low, high = self.interval.ends_at(float(stdtrit(self.interval.df, (1 + confidence_level) / 2)))
        return replace(self, ci_low=low, ci_high=high)

    def against_margin(self, margin: float) -> TwoWayEstimate:
        """The same estimate with the p-value of a true value of the margin or above: that of non-inferiority.

        It is twice the one-sided p-value, so that it is below 0.05 where the 95% interval ends below the margin. Only
        for statistics whose interval is on their own scale, such as a difference in MAE.
        """
        if self.value is None or self.interval is None or not self.interval.std_error:
            return replace(self, p_value=None)
        t = (self.value - margin) / self.interval.std_error
        return replace(self, p_value=min(1.0, 2 * float(stdtr(self.interval.df, t))))


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic that is a function of sums over cells, so that a resample costs a few sums only.

    Attributes:
        moments: from scores and truth, shape (n,) each, to what is summed over cells, shape (n, k).
        value: from such sums, shape (replicates, k), to the statistic, shape (replicates,), nan where undefined.
    """

    moments: Callable[[Floats, Floats], Floats]
    value: Callable[[Floats], Floats]


def _product_moments(x: Floats, y: Floats) -> Floats:
    """Moments of Pearson's r, shape (n, 6): 1, u, v, u², v² and uv of the standardized columns."""
    u, v = _standardize(x), _standardize(y)
    return np.stack([np.ones_like(u), u, v, u * u, v * v, u * v], axis=1)


def _standardize(values: Floats) -> Floats:
    """Centre and scale, so that differences of two sums lose no digits; 0 for fewer than 3 values or equal ones."""
    if len(values) < 3 or is_constant(values):
        return np.zeros_like(values)
    centred: Floats = values - values.mean()
    scaled: Floats = centred / np.abs(centred).max()
    return scaled


def _correlation(sums: Floats) -> Floats:
    """Pearson's r from sums of `_product_moments`; nan where a side does not vary."""
    n = np.maximum(sums[:, 0], 1.0)
    mean_u, mean_v, uu, vv, uv = sums[:, 1:].T / n
    variance_u, variance_v = uu - mean_u * mean_u, vv - mean_v * mean_v
    defined = (variance_u > 1e-12) & (variance_v > 1e-12)
    r = (uv - mean_u * mean_v) / np.sqrt(np.where(defined, variance_u * variance_v, 1.0))
    return np.where(defined, np.clip(r, -1.0, 1.0), np.nan)


def _mean(sums: Floats) -> Floats:
    """The mean from sums of counts and values; nan where nothing is counted."""
    n = sums[:, 0]
    return np.where(n > 0, sums[:, 1] / np.where(n > 0, n, 1.0), np.nan)


def _root_mean(sums: Floats) -> Floats:
    """Root of the mean, 0 where the mean is below 0; nan where nothing is counted."""
    return np.sqrt(np.maximum(_mean(sums), 0.0))


def _ratio(sums: Floats) -> Floats:
    """First sum divided by the second; nan where the second is not above 0."""
    is_defined = sums[:, 1] > 0
    return np.where(is_defined, sums[:, 0] / np.where(is_defined, sums[:, 1], 1.0), np.nan)


def _both(first: Floats, second: Floats) -> Floats:
    """Moments of a ratio of sums, shape (n, 2)."""
    return np.stack([first, second], axis=1)


def _with_count(values: Floats) -> Floats:
    """Moments of a mean, shape (n, 2): 1 and the value."""
    return np.stack([np.ones_like(values), values], axis=1)


def _common_scale_moments(x: Floats, y: Floats) -> Floats:
    """Moments of the concordance, shape (n, 6): as `_product_moments`, both sides centred and scaled alike."""
    both = np.concatenate([x, y])
    centre = both.mean() if len(both) else 0.0
    scale = np.abs(both - centre).max(initial=0.0) or 1.0
    u, v = (x - centre) / scale, (y - centre) / scale
    return np.stack([np.ones_like(u), u, v, u * u, v * v, u * v], axis=1)


def _concordance(sums: Floats) -> Floats:
    """Lin's concordance from sums of `_common_scale_moments`; nan where all values of both sides are equal."""
    n = np.maximum(sums[:, 0], 1.0)
    mean_u, mean_v, uu, vv, uv = sums[:, 1:].T / n
    denominator = uu - mean_u * mean_u + vv - mean_v * mean_v + (mean_u - mean_v) ** 2
    is_defined = (sums[:, 0] > 1) & (denominator > 1e-12)
    concordance = 2 * (uv - mean_u * mean_v) / np.where(is_defined, denominator, 1.0)
    return np.where(is_defined, np.clip(concordance, -1.0, 1.0), np.nan)


PEARSON = Statistic(_product_moments, _correlation)
CONCORDANCE = Statistic(_common_scale_moments, _concordance)
"""Lin's concordance correlation coefficient (Biometrics 45, 1989, 255-268), with divisor n:
2 cov / (var + var + bias²). It is 1 only for equal scores, and below r wherever the mean or the spread differs."""
MAE = Statistic(lambda x, y: _with_count(np.abs(x - y)), _mean)
RMSE = Statistic(lambda x, y: _with_count((x - y) ** 2), lambda sums: np.sqrt(_mean(sums)))
BIAS = Statistic(lambda x, y: _with_count(x - y), _mean)
ROOT_MEAN_DISTANCE = Statistic(lambda x, y: _with_count(x - y), _root_mean)
"""Root of the mean of squared distances, of which some may be below 0 (`squared_distance`); the second column is 0."""
SKILL = Statistic(_both, lambda sums: 1 - _ratio(sums))
"""Skill of a model's squared distances (first column) against a baseline's (second): 1 is a perfect model, 0 as good as
the baseline, below 0 worse. With the distances from a group after and before it is named: the part that naming removes.
"""
VARIANCE_RATIO = Statistic(_both, _ratio)
"""Sum of a model's variances of answers (first column) divided by that of people's (second): 1 is as diverse as people,
below 1 less diverse, 0 one answer in each cell. Also for entropies."""


def mae(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Mean absolute difference, in the units of the scores, with Student's interval for a mean, clipped at 0.

    The interval assumes independent pairs; where cells share countries and topics, see `crossed_jackknife`.

    Args:
        x, y: shape (n,); pairs with nan on either side are left out.

    Returns:
        At least 0; None with a reason for no pairs. No interval for one pair, or when all differences are equal.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), _ = complete_cases(x, y)
    return _mean_estimate(np.abs(a - b), lower_bound=0.0)


def rmse(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Root of the mean squared difference, in the units of the scores.

    The interval is Student's for the mean of the squares, clipped at 0, with the root taken of both ends. The root is
    monotone, so both intervals have the same coverage. With heavy tails and few pairs that is less than 95%.

    Args, Returns, Raises: as `mae`.
    """
    (a, b), _ = complete_cases(x, y)
    mean_square = _mean_estimate((a - b) ** 2, lower_bound=0.0)
    value, low, high = (
        None if end is None else float(np.sqrt(end))
        for end in (mean_square.value, mean_square.ci_low, mean_square.ci_high)
    )
    return Estimate(value, mean_square.n, low, high, mean_square.reason)


def bias(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Mean of x - y, with Student's interval: positive where x is the more permissive.

    Args, Returns, Raises: as `mae`, but of either sign.
    """
    (a, b), _ = complete_cases(x, y)
    return _mean_estimate(a - b, lower_bound=-np.inf)


def _mean_estimate(values: Floats, lower_bound: float) -> Estimate:
    """The mean of the values with Student's 95% interval, whose lower end is clipped at `lower_bound`."""
    n = len(values)
    if n == 0:
        return Estimate(None, 0, reason="no pairs")
    value = float(values.mean())
    if n == 1:
        return Estimate(value, n, reason="an interval needs 2 pairs")
    if is_constant(values):
        return Estimate(value, n, reason="all differences are equal: no interval")
    half_width = float(stdtrit(n - 1, UPPER_QUANTILE) * values.std(ddof=1) / np.sqrt(n))
    return Estimate(value, n, max(lower_bound, value - half_width), value + half_width)


FEW_CELLS_REASON = f"an error is compared with those of others only where it is of at least {MIN_UNITS} cells"
FEW_PLACES_REASON = "there is no other with enough cells to compare with"
PERFECT_REASON = "an error of 0 has no ratio to others"


def compare_place_errors(
    scores: ArrayLike, truth: ArrayLike, places: ArrayLike, units: ArrayLike, unit: str
) -> dict[int, Tested]:
    """The mean absolute error of each place as a multiple of the geometric mean of those of the other places.

    Args:
        scores, truth: shape (n,), one value per cell; cells with a nan on either side are left out.
        places: shape (n,), the number of each cell's place, such as its country.
        units: shape (n,), the number of the unit on the other side, such as the cell's topic.
        unit: what these units are, `topic` or `country`.

    Returns:
        By place, of those with a cell: the ratio with its 95% interval over other units, and the p-value of a ratio of
        1; `n` counts the cells of the place. None for places of fewer than 5 cells, which are in no mean of others
        either, and where an error is 0, with the reason.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    names, rows = np.unique(np.asarray(places)[is_complete], return_inverse=True)
    columns = np.unique(np.asarray(units)[is_complete], return_inverse=True)[1]
    errors, counts = (np.zeros((len(names), int(columns.max(initial=-1)) + 1)) for _ in range(2))
    np.add.at(errors, (rows, columns), np.abs(x - y))
    np.add.at(counts, (rows, columns), 1.0)
    n_cells = counts.sum(axis=1)
    is_compared = n_cells >= MIN_UNITS
    reasons = np.where(is_compared, FEW_PLACES_REASON, FEW_CELLS_REASON)
    ratios = [Tested(None, int(n), reason=str(reason)) for n, reason in zip(n_cells, reasons, strict=True)]
    compared = np.nonzero(is_compared)[0]
    if len(compared) > 1:
        tested = _compare(errors[compared], counts[compared], unit)
        for place, ratio in zip(compared, tested, strict=True):
            ratios[place] = ratio
    return {int(name): ratio for name, ratio in zip(names, ratios, strict=True)}


def _compare(errors: Floats, counts: Floats, unit: str) -> list[Tested]:
    """The ratios of at least two places; arguments have shape (places, units), 0 without a cell."""
    total, n = errors.sum(axis=1), counts.sum(axis=1)
    maes = total / n
    without = (total[:, None] - errors) / (n[:, None] - counts)  # of each place without each unit
    if maes.min() <= 1e-12 or without.min() <= 1e-12:
        return [Tested(None, int(size), reason=PERFECT_REASON) for size in n]
    logs, replicates = _compare_with_others(np.log(maes)), _compare_with_others(np.log(without))
    ratios, n_units = np.exp(logs), replicates.shape[1]
    if (reason := too_few_reason({unit: [n_units]})) is not None:
        return [Tested(float(ratio), int(size), reason=reason) for ratio, size in zip(ratios, n, strict=True)]
    variances = np.array([jackknife_variance([row]) for row in replicates])
    if variances.mean() <= 1e-24:
        return [Tested(float(ratio), int(size), reason=CONSTANT_REASON) for ratio, size in zip(ratios, n, strict=True)]
    # A variance of few units is uncertain: each is averaged with the one that is expected from the numbers of cells of
    # its place and of the others, if errors vary as much everywhere.
    shares = np.where(np.eye(len(n), dtype=np.bool_), 1.0, (len(n) - 1) ** -2.0) / n
    expected = shares.sum(axis=1)
    std_errors = ((variances + (variances / expected).mean() * expected) / 2) ** 0.5
    df = 2 * np.minimum(n_units - 1, expected**2 / (shares**2 / (n - 1)).sum(axis=1))  # Satterthwaite's
    steps, p_values = stdtrit(df, UPPER_QUANTILE) * std_errors, 2 * stdtr(df, -np.abs(logs) / std_errors)
    lows, highs = np.exp(logs - steps), np.exp(logs + steps)
    return [
        Tested(float(ratio), int(size), float(low), float(high), None, (unit,), p_value=float(p_value))
        for ratio, size, low, high, p_value in zip(ratios, n, lows, highs, p_values, strict=True)
    ]


def _compare_with_others(logs: Floats) -> Floats:
    """Each place minus the mean of the other places, along the first axis."""
    differences: Floats = logs - (logs.sum(axis=0) - logs) / (len(logs) - 1)
    return differences
