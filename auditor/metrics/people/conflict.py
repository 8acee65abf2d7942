"""Conflicts between models on one cell. Votes on them are counted in `votes`."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import UPPER_QUANTILE, Estimate
from auditor.metrics.intervals.jackknife_interval import Labels
from auditor.metrics.intervals.special_functions import stdtrit
from auditor.metrics.intervals.unit_means import share_over_units

ConflictKindName = Literal["binary", "outlier", "gradient"]

ZERO_TOLERANCE = 1e-12
"""Largest rounding error of a mean of a few decimal fractions."""
DIFFERENCE_DIGITS, MIN_THRESHOLD = 9, 1e-9
MAX_THRESHOLD = 2.0


class ConflictingPair(NamedTuple):
    """Two models that conflict, by position in the scores, and the kind of conflict."""

    left: int
    right: int
    kind: ConflictKindName


def find_conflicts(scores: ArrayLike, threshold: float) -> list[ConflictingPair]:
    """Find the pairs of models whose scores on a cell differ by at least the threshold.

    A pair is `binary` when its scores lie on opposite sides of zero; else `outlier` when one of the two conflicts with
    every other model while all the others, at least two of them, agree among themselves; else `gradient`.

    Args:
        scores: shape (models,), in [-1, 1]; nan where a model has no score, which conflicts with nothing.
        threshold: smallest absolute difference that is a conflict, in (0, 2].

    Returns:
        Pairs with left < right, in order.

    Raises:
        ValueError: the threshold is not in (0, 2].
    """
    if not 0 < threshold <= 2:
        raise ValueError(f"threshold must be in (0, 2], but got {threshold!r}")
    values = np.asarray(scores, dtype=float)
    # Scores are means of decimal fractions: a difference equal to the threshold must not be missed by a rounding error.
    differs = np.abs(values[:, None] - values[None, :]) >= threshold - ZERO_TOLERANCE
    is_outlier = _outlier_mask(differs, ~np.isnan(values))
    return [
        ConflictingPair(int(i), int(j), _classify_conflict(values[i], values[j], bool(is_outlier[i] or is_outlier[j])))
        for i, j in zip(*np.nonzero(np.triu(differs, 1)), strict=True)
    ]


def have_opposite_signs(left: ArrayLike, right: ArrayLike) -> NDArray[np.bool_]:
    """Whether two scores lie on opposite sides of zero, elementwise; False where one is zero or nan.

    Values within `ZERO_TOLERANCE` of zero count as zero: the mean of 0.1, 0.2 and -0.3 is 2e-17.
    """
    signs = [
        np.where(np.abs(scores) < ZERO_TOLERANCE, 0.0, np.sign(scores))
        for scores in (np.asarray(left), np.asarray(right))
    ]
    is_opposite: NDArray[np.bool_] = signs[0] * signs[1] < 0
    return is_opposite


def _classify_conflict(left: float, right: float, has_outlier: bool) -> ConflictKindName:
    """The kind of a conflict between two scores; `has_outlier` says whether either model is an outlier on the cell."""
    if have_opposite_signs(left, right):
        return "binary"
    return "outlier" if has_outlier else "gradient"


def _outlier_mask(conflicts: NDArray[np.bool_], present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which models conflict with every other model while the others, at least two, agree among themselves.

    Args:
        conflicts: shape (models, models), symmetric.
        present: shape (models,), models with a score.
    """
    n_present = int(present.sum())
    n_conflicts = conflicts.sum(axis=1)
    n_pairs = int(np.triu(conflicts, 1).sum())
    conflicts_with_all: NDArray[np.bool_] = present & (n_conflicts == n_present - 1)
    return conflicts_with_all if n_present >= 3 and n_pairs == n_present - 1 else np.zeros_like(present)


def third_quartile(differences: ArrayLike, units: Labels | None = None) -> Estimate:
    """The third quartile of an audit's absolute differences, from which its automatic threshold is taken.

    The value interpolates between neighbours (Hyndman and Fan, American Statistician 50, 1996, type 7). The 95%
    interval is Woodruff's (JASA 47, 1952): the quantiles at the ends of the interval of the share of differences up to
    the quartile, which is that of `share_over_units`.

    Args:
        differences: shape (cells,) or (pairs of models, cells), of any sign; absolute values are used, rounded to 1e-9;
            nan is dropped.
        units: the units of the cells that are resampled, such as countries and topics, each of shape (cells,). By
            default every difference is a unit of its own.

    Returns:
        At least 0; None with a reason for no differences. `n` counts differences.

    Raises:
        ValueError: a difference is infinite.
    """
    sizes = np.atleast_2d(np.abs(np.asarray(differences, dtype=np.float64)))
    if np.isinf(sizes).any():
        raise ValueError("differences must be finite, or nan where a score is missing, but one is infinite")
    if units is None:
        sizes = sizes.reshape(1, -1)
        units = {"pair": np.arange(sizes.size)}
    sizes = np.round(sizes, DIFFERENCE_DIGITS)
    is_known = ~np.isnan(sizes)
    if not is_known.any():
        return Estimate(None, 0, reason="no differences")
    known_sizes = sizes[is_known]
    value = float(np.quantile(known_sizes, 0.75))
    n_up_to_value = (is_known & (np.nan_to_num(sizes) <= value)).sum(axis=0)
    share = share_over_units(n_up_to_value, is_known.sum(axis=0), units)
    if share.value is None or share.ci_low is None or share.ci_high is None:
        return Estimate(value, len(known_sizes), reason=share.reason)
    levels = np.clip([0.75 + end - share.value for end in (share.ci_low, share.ci_high)], 0, 1)
    low, high = (float(end) for end in np.quantile(known_sizes, levels))
    if low == high:
        return Estimate(value, len(known_sizes), reason="too many differences equal it for an interval")
    return Estimate(value, len(known_sizes), low, high, resampled=share.resampled)


def auto_threshold(quartile: float | None) -> float:
    """The automatic threshold of an audit, from the third quartile of its differences; in (0, 2].

    If there are no differences, or three in four are zero, a threshold of 0 would make every pair a conflict. Then it
    is 2, which only opposite ends of the scale reach.
    """
    return MAX_THRESHOLD if quartile is None or quartile < MIN_THRESHOLD else quartile


def is_within_noise(
    difference: float, variances: tuple[float | None, float | None], sample_sizes: tuple[int, int]
) -> bool | None:
    """Whether the difference of two means is within the noise of their samples, at the 5% level.

    Welch's test (Biometrika 34, 1947, 28-35). It does not account for other prompts or for changes over time.

    Args:
        difference: of the means.
        variances: of the samples behind each mean (n - 1 in the denominator); None where unknown.
        sample_sizes: number of samples behind each mean.

    Returns:
        None where a variance is unknown, or both are 0 and give no estimate of the noise.
    """
    (first, second), (n, m) = variances, sample_sizes
    if first is None or second is None or min(n, m) < 2:
        return None
    u, v = first / n, second / m
    if u + v == 0:
        return None
    df = (u + v) ** 2 / (u * u / (n - 1) + v * v / (m - 1))
    return bool(abs(difference) <= float(stdtrit(df, UPPER_QUANTILE)) * float(np.sqrt(u + v)))
