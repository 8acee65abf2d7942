"""Ratings as tables of raters by items, and as indicators of categories."""

from __future__ import annotations

from collections.abc import Sequence

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


def share_votes(indicators: Floats, groups: Sequence[Sequence[int]] | None) -> Floats:
    """Indicators in which each group has one vote on an item, which its members with a rating share equally.

    Args:
        indicators: shape (raters, items, k).
        groups: positions of raters; together they have all raters. By default each rater is a group.

    Raises:
        ValueError: a rater is in no group or in two.
    """
    if groups is None:
        return indicators
    if sorted(rater for group in groups for rater in group) != list(range(len(indicators))):
        raise ValueError(f"each of the {len(indicators)} raters must be in one group, but got {groups!r}")
    shared = indicators.copy()
    for group in groups:
        members = list(group)
        n_ratings = indicators[members].sum(axis=(0, 2))
        shared[members] /= np.maximum(n_ratings, 1)[None, :, None]
    return shared
