"""What a figure could be at most and at least, whatever the cells without a score would have said."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats


class MissingValueBounds(NamedTuple):
    """Ends between which a figure lies for certain; None where there is nothing to bound."""

    low: float | None
    high: float | None


def mae_bounds(scores: ArrayLike, truth: ArrayLike) -> MissingValueBounds:
    """The MAE if every missing score hit the truth, and if it lay at the end of [-1, 1] that is farther from it.

    Args:
        scores: shape (n,), in [-1, 1]; nan where there is none.
        truth: shape (n,), in [-1, 1]; nan where people were not asked, which leaves the cell out.

    Raises:
        ValueError: shapes differ.
    """
    x, y = (np.asarray(v, dtype=np.float64) for v in (scores, truth))
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"scores and truth must have one shape (n,), but have {x.shape} and {y.shape}")
    asked = ~np.isnan(y)
    if not asked.any():
        return MissingValueBounds(None, None)
    lost = np.isnan(x[asked])
    known: Floats = np.abs(x[asked] - y[asked])
    best = np.where(lost, 0.0, known)
    worst = np.where(lost, 1.0 + np.abs(y[asked]), known)
    return MissingValueBounds(float(best.mean()), float(worst.mean()))


def gap_bounds(first: MissingValueBounds, second: MissingValueBounds) -> MissingValueBounds:
    """Between which ends the second figure less the first lies."""
    if None in first or None in second:
        return MissingValueBounds(None, None)
    low, high = second.low or 0.0, second.high or 0.0
    return MissingValueBounds(low - (first.high or 0.0), high - (first.low or 0.0))
