"""Preferences made consistent by a ranking of the items (REPAIR, Aligning with Logic), and noise to test this with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.preference import as_preferences, decisions
from auditor.metrics.ranking import (
    Floats,
    Ints,
    bradley_terry,
    comparison_components,
    comparisons_from_preferences,
    elo,
    win_loss_rate,
)

RatingMethod = Literal["win-loss", "elo", "bradley-terry"]
"""How REPAIR rates the items: table 7 of Aligning with Logic compares the three."""
RATING_METHODS: tuple[RatingMethod, ...] = get_args(RatingMethod)


@dataclass(frozen=True, slots=True)
class Repair:
    """Comparisons made consistent.

    `rating` (N,) is the rating of the items, `order` the items that have one, best first. `preferences` and `negated`
    (N, N) are the answers implied by it, nan where there is none. `flipped` (m, 2) are the questions, (shown first,
    shown second), whose decision the repair reverses, for human review.
    """

    order: tuple[int, ...]
    rating: Floats
    preferences: Floats
    negated: Floats
    flipped: Ints


def repair(
    preferences: ArrayLike,
    method: RatingMethod = "win-loss",
    elo_seed: int | None = None,
    positions: ArrayLike | None = None,
) -> Repair:
    """The comparisons implied by a rating of the items (REPAIR, Aligning with Logic).

    They are transitive, the same in both orders, and have their negated form. There is none for two items of equal
    rating, for an item without a valid answer, and between sets of items that were never compared with each other.

    Args:
        preferences: shape (N, N), see `auditor.metrics.preference`.
        method: of rating the items. Elo depends on the order of the comparisons.
        elo_seed: of a random order of the comparisons; None takes them in the order of `positions`.
        positions: shape (N, N), numbers by which comparisons are sorted for Elo; None takes them row by row.

    Raises:
        ValueError: the method is unknown, or as `as_preferences`.
    """
    values = as_preferences(preferences)
    comparisons = comparisons_from_preferences(values, positions)
    rating = _rate(comparisons, len(values), method, elo_seed)
    components = comparison_components(
        comparisons[:, 0].astype(np.intp), comparisons[:, 1].astype(np.intp), len(values)
    )
    gap = rating[:, None] - rating[None, :]
    # Ratings are sums and quotients: differences within rounding error are ties.
    is_comparable = (components[:, None] == components[None, :]) & (np.abs(gap) > 1e-9)
    consistent = np.where(is_comparable, (gap > 0).astype(float), np.nan)
    flipped = np.argwhere((consistent - 0.5) * (values - 0.5) < -1e-9)
    order = tuple(int(item) for item in np.argsort(-rating, kind="stable") if components[item] >= 0)
    return Repair(order, rating, consistent, 1.0 - consistent, flipped)


def _rate(comparisons: Floats, n_items: int, method: RatingMethod, elo_seed: int | None) -> Floats:
    """Rating of each item, shape (n_items,), larger is better; nan where an item has no comparison."""
    if method == "win-loss":
        return win_loss_rate(comparisons, n_items)
    if method == "bradley-terry":
        return bradley_terry(comparisons, n_items).strength
    if method == "elo":
        return elo(comparisons, n_items, shuffles=0 if elo_seed is None else 1, seed=elo_seed or 0).rating
    raise ValueError(f"method must be one of {', '.join(RATING_METHODS)}, but got {method!r}")


def add_flip_noise(sets: Sequence[ArrayLike], share: float, seed: int = 0) -> list[Floats]:
    """Copies of item sets' preferences in which a share of all their decided answers, drawn at random, is reversed.

    The share is of the sets together: rounded in each set, a tenth of at most five answers would be none. A tie has no
    opposite, so it is not drawn.

    Args:
        sets: one array for each set, shape (N, N); the two orders of a pair are separate answers.
        share: in [0, 1], of the decided answers of all sets; their number is rounded.
        seed: of the draw.

    Raises:
        ValueError: the share is not in [0, 1], or as `as_preferences`.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be in [0, 1], but got {share!r}")
    noisy = [as_preferences(preferences) for preferences in sets]
    decided = [
        (s, int(i), int(j)) for s, values in enumerate(noisy) for i, j in np.argwhere(np.abs(decisions(values)) == 1)
    ]
    for index in np.random.default_rng(seed).permutation(len(decided))[: round(share * len(decided))]:
        s, i, j = decided[index]
        noisy[s][i, j] = 1.0 - noisy[s][i, j]
    return noisy
