"""What every metric on two columns does first: check them, and leave out the rows with a gap."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

Z_95 = 1.959963984540054
"""The 97.5% point of the normal distribution."""


def complete_cases(*columns: ArrayLike) -> tuple[list[Floats], NDArray[np.bool_]]:
    """The rows of the columns in which no value is nan, and the mask that chose them.

    Raises:
        ValueError: a column is not one-dimensional, the lengths differ, or a value is infinite.
    """
    arrays = [np.asarray(c, dtype=np.float64) for c in columns]
    shapes = [a.shape for a in arrays]
    if len(shapes[0]) != 1 or len(set(shapes)) > 1:
        raise ValueError(f"columns must be one-dimensional and of one length, but have shapes {shapes}")
    if any(np.isinf(a).any() for a in arrays):
        raise ValueError("columns must be finite, or nan where a value is missing, but one holds an infinity")
    keep = np.asarray(~np.isnan(np.stack(arrays)).any(axis=0))
    return [a[keep] for a in arrays], keep


def is_constant(values: Floats) -> bool:
    """Whether the values are equal up to rounding (0.1 + 0.2 counts as 0.3)."""
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max())
