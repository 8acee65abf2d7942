"""Ratings as tables of raters by items, and as indicators of categories."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats


def as_ratings(ratings: ArrayLike) -> Floats:
    """Ratings as a float array, shape (raters, items); ValueError for another shape or an infinite rating."""
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("ratings must be a table (raters, items) of numbers, nan where there is none")
    return table


def rating_indicators(ratings: Floats) -> tuple[Floats, Floats]:
    """1 where a rater put an item into a category, shape (raters, items, k), and the sorted categories."""
    categories = np.unique(ratings[~np.isnan(ratings)])
    return (ratings[:, :, None] == categories).astype(np.float64), categories
