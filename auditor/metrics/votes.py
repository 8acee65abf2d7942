"""Aggregation of a panel's votes: plain and weighted majority, ties, and agreement with the other raters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._rating_table import as_ratings, rating_indicators, share_votes
from auditor.metrics._unit_counts import Labels
from auditor.metrics.estimate import ShareEstimate
from auditor.metrics.unit_means import ShareTable, shares_over_units


def min_majority(panel_size: int) -> int:
    """The fewest votes that are a strict majority of a panel, at most its size.

    An adaptive panel always asks this many judges first, so figures over their votes are not of disputed items only.
    """
    return min(panel_size, panel_size // 2 + 1)


def can_still_change(votes_left: float, votes_right: float, cast: float, seats: float) -> bool:
    """Whether the judges that have not voted yet could change the outcome of a strict majority of all assigned judges.

    A panel asked one judge after another may stop at the first False: the full panel would have the same outcome,
    settled or open. Weighted votes are counted by their weight.

    Args:
        votes_left, votes_right: valid votes for each side so far, or their weight.
        cast: judges that have had their turn, abstentions and failures among them, or their weight.
        seats: all assigned judges, or their weight.

    Raises:
        ValueError: a number is negative, more votes than were cast, or more cast than seats.
    """
    slack = 1e-12 * seats
    if min(votes_left, votes_right) < 0 or not votes_left + votes_right - slack <= cast <= seats + slack:
        raise ValueError(f"{votes_left} + {votes_right} votes of {cast} cast do not fit {seats} seats")
    leading, remaining = max(votes_left, votes_right), seats - cast
    return bool(2 * leading <= seats + slack and 2 * (leading + remaining) > seats + slack)


def settle(votes_left: int, votes_right: int, seats: int) -> Literal["left", "right"] | None:
    """The side with a strict majority of the assigned judges.

    Abstentions and failed answers stay in the denominator: judges that did not answer settle nothing.

    Args:
        votes_left, votes_right: valid votes for each side.
        seats: number of assigned judges, whether they voted or not.

    Returns:
        The winning side; None on a tie or when too few votes are valid.

    Raises:
        ValueError: a number is negative, or there are more votes than seats.
    """
    if min(votes_left, votes_right, seats) < 0 or votes_left + votes_right > seats:
        raise ValueError(f"{votes_left} + {votes_right} votes do not fit {seats} seats")
    if 2 * votes_left > seats:
        return "left"
    return "right" if 2 * votes_right > seats else None


def judge_vote(valid_left: int, given_left: int, valid_right: int, given_right: int) -> Literal["left", "right"] | None:
    """One judge's vote in a conflict: the side with the larger share of traces that the judge found VALID.

    Shares, not counts, so that a side gains nothing from having more traces, or from a judge who finds all VALID.

    Args:
        valid_left, given_left: VALID verdicts, and all verdicts, of the judge on the left side's traces.
        valid_right, given_right: the same on the right side's traces.

    Returns:
        The side; None (an abstention) when the shares are equal or the judge has no verdict on one side.
    """
    if given_left == 0 or given_right == 0:
        return None
    scaled_left, scaled_right = valid_left * given_right, valid_right * given_left
    if scaled_left == scaled_right:
        return None
    return "left" if scaled_left > scaled_right else "right"


def weighted_majority(ratings: ArrayLike, weights: ArrayLike) -> Floats:
    """For each item, the category with more than half the weight of the whole panel.

    Raters without a rating keep their weight in the denominator, as in the plain majority, which is the case of equal
    weights.

    Args:
        ratings: shape (raters, items), numbers that name categories; nan where a rater gave none.
        weights: shape (raters,), at least 0; 0 excludes a rater.

    Returns:
        Shape (items,); nan where no category holds more than half.

    Raises:
        ValueError: shapes do not fit, or the weights are negative, not finite or all 0.
    """
    table, weight = as_ratings(ratings), np.asarray(weights, dtype=np.float64)
    if weight.shape != (len(table),) or not np.all(np.isfinite(weight) & (weight >= 0)) or not weight.sum() > 0:
        raise ValueError(f"weights must be {len(table)} numbers of at least 0, not all 0, but got {weights!r}")
    indicators, categories = rating_indicators(table)
    if not len(categories):
        return np.full(table.shape[1], np.nan)
    category_weights = np.einsum("rik,r->ik", indicators, weight)  # r: rater, i: item, k: category
    winner = categories[category_weights.argmax(axis=1)]
    # Weights are decimal fractions: exactly half must not exceed half by a rounding error.
    return np.where(category_weights.max(axis=1) > weight.sum() / 2 * (1 + 1e-12), winner, np.nan)


def agreement_with_others(
    ratings: ArrayLike, units: Labels | None = None, groups: Sequence[Sequence[int]] | None = None
) -> list[ShareEstimate]:
    """For each rater, the share of items on which its rating is that of more than half of the other raters.

    Items without such a majority, or without a rating by others, are not counted.

    Args:
        ratings: shape (raters, items), numbers that name categories; nan where a rater gave none.
        units: what the intervals are over: for each kind of unit, such as `country`, the unit of each item, shape
            (items,). By default each item is a unit.
        groups: raters that share one vote, such as copies; together they have all raters. The others of a rater are
            those outside its group, and each group has one vote on an item. By default each rater is a group.

    Raises:
        ValueError: not a table, or an infinite rating.
    """
    indicators, categories = rating_indicators(as_ratings(ratings))
    n_raters, n_items = indicators.shape[:2]
    unit_labels: Labels = {"item": np.arange(n_items)} if units is None else units
    is_decided = agrees = np.zeros((n_raters, n_items), dtype=np.bool_)
    if len(categories):
        votes = share_votes(indicators, groups)
        other_counts = np.empty_like(votes)
        for group in groups or [[rater] for rater in range(n_raters)]:
            other_counts[list(group)] = votes.sum(axis=0) - votes[list(group)].sum(axis=0)
        # Votes of groups are fractions: exactly half must not exceed half by a rounding error.
        total = other_counts.sum(axis=2) * (1 + 1e-12)
        is_decided = (2 * other_counts.max(axis=2) > total) & indicators.any(axis=2)
        agrees = is_decided & (indicators.argmax(axis=2) == other_counts.argmax(axis=2))
    tables = [ShareTable(hits, decided, unit_labels) for hits, decided in zip(agrees, is_decided, strict=True)]
    return shares_over_units(tables, empty_reason="no item has a majority of the other judges")
