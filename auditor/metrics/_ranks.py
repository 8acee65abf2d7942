"""Ranks with ties: scipy's are in `scipy.stats`, whose import takes 0.4 s."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from 1; equal values get the mean of their ranks.

    Args:
        values: flattened; without nan.

    Returns:
        Shape (number of values,).
    """
    _, positions, counts = np.unique(np.ravel(values), return_inverse=True, return_counts=True)
    mean_ranks: Floats = np.cumsum(counts) - (counts - 1) / 2
    return mean_ranks[positions]
