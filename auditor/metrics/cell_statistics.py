"""Statistics of scores against human scores that are functions of sums over cells, and their estimates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from auditor.metrics._complete_cases import Floats, is_constant
from auditor.metrics._special import stdtr, stdtrit
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife_interval import JackknifeInterval


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
