"""Worst-case bounds of a metric over all possible values of the missing scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats


class MissingValueBounds(NamedTuple):
    """The smallest and the largest possible value; None where there is nothing to bound."""

    low: float | None
    high: float | None


def mae_bounds(scores: ArrayLike, truth: ArrayLike) -> MissingValueBounds:
    """The MAE if every missing score equalled the truth, and if it were the end of [-1, 1] farther from it.

    Args:
        scores: shape (n,), in [-1, 1]; nan where there is none.
        truth: shape (n,), in [-1, 1]; nan where there are no human scores; such cells are left out.

    Raises:
        ValueError: shapes differ.
    """
    x, y = (np.asarray(column, dtype=np.float64) for column in (scores, truth))
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"scores and truth must have one shape (n,), but have {x.shape} and {y.shape}")
    has_truth = ~np.isnan(y)
    if not has_truth.any():
        return MissingValueBounds(None, None)
    is_missing = np.isnan(x[has_truth])
    errors: Floats = np.abs(x[has_truth] - y[has_truth])
    smallest_errors = np.where(is_missing, 0.0, errors)
    # The end of [-1, 1] farther from the truth is at a distance of 1 + |truth|.
    largest_errors = np.where(is_missing, 1.0 + np.abs(y[has_truth]), errors)
    return MissingValueBounds(float(smallest_errors.mean()), float(largest_errors.mean()))


def gap_bounds(first: MissingValueBounds, second: MissingValueBounds) -> MissingValueBounds:
    """Bounds of the second value minus the first, from the bounds of each; None where either has no bounds."""
    if None in first or None in second:
        return MissingValueBounds(None, None)
    low, high = second.low or 0.0, second.high or 0.0
    return MissingValueBounds(low - (first.high or 0.0), high - (first.low or 0.0))
