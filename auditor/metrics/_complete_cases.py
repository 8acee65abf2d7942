"""Input checks shared by the metrics: drop rows with a missing value, detect constant columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
CONSTANT_TOLERANCE = 1e-12
"""Range of values, as a share of the largest absolute one, up to which they are equal but for rounding."""


def complete_cases(*columns: ArrayLike) -> tuple[list[Floats], NDArray[np.bool_]]:
    """Drop the rows in which any column is nan (listwise deletion).

    Args:
        columns: shape (n,) each.

    Returns:
        The columns without these rows, and the mask, shape (n,), of the rows that remain.

    Raises:
        ValueError: a column is not one-dimensional, the lengths differ, or a value is infinite.
    """
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    array_shapes = [array.shape for array in arrays]
    if len(array_shapes[0]) != 1 or len(set(array_shapes)) > 1:
        raise ValueError(f"columns must be one-dimensional and of one length, but have shapes {array_shapes}")
    if any(np.isinf(array).any() for array in arrays):
        raise ValueError("columns must be finite, or nan where a value is missing, but one holds an infinity")
    is_complete = np.asarray(~np.isnan(np.stack(arrays)).any(axis=0))
    return [array[is_complete] for array in arrays], is_complete


def is_constant(values: Floats) -> bool:
    """Whether all values are equal up to rounding (0.1 + 0.2 counts as 0.3)."""
    return bool(np.ptp(values) <= CONSTANT_TOLERANCE * np.abs(values).max())
