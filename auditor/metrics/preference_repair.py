"""Preferences made consistent by a ranking of the items (REPAIR, Aligning with Logic), and noise to test this with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.preference import as_preferences
from auditor.metrics.ranking import (
    Floats,
    Ints,
    comparison_components,
    comparisons_from_preferences,
    win_loss_rate,
)


@dataclass(frozen=True, slots=True)
class Repair:
    """Comparisons made consistent.

    `rating` (N,) is the win-loss rate of the items, `order` the items that have one, best first. `preferences` and
    `negated` (N, N) are the answers implied by it, nan where there is none. `flipped` (m, 2) are the questions,
    (shown first, shown second), whose decision the repair reverses, for human review.
    """

    order: tuple[int, ...]
    rating: Floats
    preferences: Floats
    negated: Floats
    flipped: Ints


def repair(preferences: ArrayLike) -> Repair:
    """The comparisons implied by the items' win-loss rates (REPAIR, Aligning with Logic).

    They are transitive, the same in both orders, and have their negated form. There is none for two items of equal
    rate, for an item without a valid answer, and between sets of items that were never compared with each other.

    Args:
        preferences: shape (N, N), see `auditor.metrics.preference`.

    Raises:
        ValueError: as `as_preferences`.
    """
    values = as_preferences(preferences)
    comparisons = comparisons_from_preferences(values)
    rating = win_loss_rate(comparisons, len(values))
    components = comparison_components(
        comparisons[:, 0].astype(np.intp), comparisons[:, 1].astype(np.intp), len(values)
    )
    gap = rating[:, None] - rating[None, :]
    # Rates are quotients of sums: differences within rounding error are ties.
    is_comparable = (components[:, None] == components[None, :]) & (np.abs(gap) > 1e-9)
    consistent = np.where(is_comparable, (gap > 0).astype(float), np.nan)
    flipped = np.argwhere((consistent - 0.5) * (values - 0.5) < -1e-9)
    order = tuple(int(item) for item in np.argsort(-rating, kind="stable") if components[item] >= 0)
    return Repair(order, rating, consistent, 1.0 - consistent, flipped)


def add_flip_noise(preferences: ArrayLike, share: float, seed: int = 0) -> Floats:
    """A copy in which a share of the valid answers, drawn at random, is reversed: noise to test a repair with.

    Args:
        preferences: shape (N, N); the two orders of a pair are separate answers.
        share: in [0, 1], of the valid answers; their number is rounded.
        seed: of the draw.

    Raises:
        ValueError: the share is not in [0, 1], or as `as_preferences`.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be in [0, 1], but got {share!r}")
    values = as_preferences(preferences)
    valid = np.argwhere(~np.isnan(values))
    i, j = np.random.default_rng(seed).permutation(valid)[: round(share * len(valid))].T
    values[i, j] = 1.0 - values[i, j]
    return values
