"""Ratings of compared items: win-loss rate, the Bradley–Terry model and Elo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.ranking import BradleyTerry, bradley_terry, comparisons_from_preferences, elo, win_loss_rate
from auditor.probes.logic.repair import RepairedAnswers


class ItemRating(NamedTuple):
    """Three ratings of one item; nan where it has no comparison, or no estimate.

    Attributes:
        win_loss: (wins - losses) / comparisons, in [-1, 1].
        strength, std_error: of the Bradley–Terry model, on the logit scale, relative to the mean item.
        elo, elo_low, elo_high: mean and 95% range over a hundred orders of the comparisons.
    """

    judge: str
    context: str
    item: str
    win_loss: float
    strength: float
    std_error: float
    elo: float
    elo_low: float
    elo_high: float


def rate_items(repaired: Sequence[RepairedAnswers], seed: int = 0) -> tuple[list[ItemRating], list[str]]:
    """Rate every item by win-loss rate, the Bradley–Terry model and Elo, best first by the method of repair.

    Returns:
        The ratings, and notes on sets with items without a comparison, or with items that comparisons do not connect,
        whose ratings are not comparable.
    """
    rows, notes = [], []
    for repaired_set in repaired:
        n_items, item_set = len(repaired_set.original.item_set.items), repaired_set.original.item_set
        comparison_rows = comparisons_from_preferences(repaired_set.original.preferences)
        strength, note = _estimate_strengths(comparison_rows, n_items)
        elo_ratings = elo(comparison_rows, n_items, seed=seed)
        notes += [f"{repaired_set.original.judge}, {item_set.context}: {note}"] if note else []
        columns = (  # one value per item, in the order of the fields of `ItemRating` from `win_loss` on
            win_loss_rate(comparison_rows, n_items),
            strength.strength,
            strength.std_error,
            elo_ratings.rating,
            elo_ratings.low,
            elo_ratings.high,
        )
        unrated = [i for i in range(n_items) if i not in repaired_set.repair.order]
        for i in [*repaired_set.repair.order, *unrated]:
            rows.append(
                ItemRating(
                    repaired_set.original.judge,
                    item_set.context,
                    item_set.items[i].id,
                    *(float(column[i]) for column in columns),
                )
            )
    return rows, notes


def _estimate_strengths(comparison_rows: NDArray[np.float64], n_items: int) -> tuple[BradleyTerry, str | None]:
    """Estimate Bradley–Terry strengths by maximum likelihood, or with a prior where that gives no finite estimate.

    Args:
        comparison_rows: shape (m, 3): first item, second item and outcome (see `auditor.metrics.ranking`).

    Returns:
        The strengths, and a note that explains the prior; None where none was needed.
    """
    unregularized = bradley_terry(comparison_rows, n_items, prior=0.0)
    if unregularized.reason is None and np.isfinite(unregularized.strength).all():
        return unregularized, None
    regularized = bradley_terry(comparison_rows, n_items)
    reason = regularized.reason or "some items won or lost all"
    return regularized, (
        f"{reason}; a prior shrinks strengths towards 0, and strengths from different sets are not comparable"
    )
