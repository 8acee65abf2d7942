"""Scores from log-probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats


def min_max_scale(values: ArrayLike) -> Floats:
    """Scale values linearly to [-1, 1]: the smallest becomes -1, the largest +1 (EvalMORAAL, arXiv 2510.05942).

    The result depends on the values that are present, so use it within one model and one survey only. A value near 0
    means "in the middle of this model's range", not "neutral".

    Args:
        values: shape (n,); nan where there is none.

    Returns:
        Shape (n,), nan where there is no value; all nan where the values have no range.

    Raises:
        ValueError: another shape, or a value is infinite.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or np.isinf(x).any():
        raise ValueError("values must have the shape (n,) and be finite, or nan where there is none")
    present = x[~np.isnan(x)]
    low, high = (present.min(), present.max()) if present.size else (0.0, 0.0)
    if high - low <= 1e-12 * max(1.0, abs(low), abs(high)):
        return np.full_like(x, np.nan)
    scaled: Floats = np.clip(2 * (x - low) / (high - low) - 1, -1.0, 1.0)
    return scaled
