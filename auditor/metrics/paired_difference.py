"""The mean difference of two measurements on the same cases, such as questions: an interval and a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import mean_over_units

Floats = NDArray[np.float64]

_BLOCK_SIZE = 2_000_000
"""Numbers drawn at a time, which limits memory."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of second minus first over pairs.

    Attributes:
        p_value: two-sided, of the sign-flip test against 0; None without a pair.
    """

    estimate: Estimate
    p_value: float | None


def paired_difference(
    first: ArrayLike,
    second: ArrayLike,
    units: Mapping[str, ArrayLike],
    *,
    bounds: tuple[float, float] = (-inf, inf),
    flips: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """The mean of second minus first on the same cases, with an interval and a test.

    Args:
        first, second: shape (n,); pairs with a nan are left out.
        units: the kind of unit that is resampled, such as `question`, and the unit of each pair, all different.
        bounds: smallest and largest possible difference.
        flips, seed: of `sign_flip_p_value`.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape:
        raise ValueError(f"first and second must have one shape, but have {a.shape} and {b.shape}")
    differences = b - a
    mean = mean_over_units(differences, units, bounds, empty_reason="no pair has both values")
    p_value = sign_flip_p_value(differences[~np.isnan(differences)], flips=flips, seed=seed) if mean.n else None
    return PairedDifference(mean, p_value)


def sign_flip_p_value(differences: Floats, *, flips: int = 10_000, seed: int = 0) -> float:
    """Two-sided p-value against a mean of 0, by random signs.

    Under the null hypothesis of no change, both signs of a difference are equally likely (Fisher, The Design of
    Experiments, 1935, section 21). The observed assignment counts, too.

    Args:
        differences: shape (n,), at least one, without nan.
        flips, seed: random assignments of signs.
    """
    n = len(differences)
    rng = np.random.default_rng(seed)
    block_size = max(1, _BLOCK_SIZE // n)
    observed = abs(float(differences.sum()))
    tolerance = 1e-12 * float(np.abs(differences).sum())
    n_extreme = 0
    for start in range(0, flips, block_size):
        signs = rng.integers(0, 2, (min(block_size, flips - start), n)) * 2 - 1
        n_extreme += int((np.abs(signs @ differences) >= observed - tolerance).sum())
    return (n_extreme + 1) / (flips + 1)
