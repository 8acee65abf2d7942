"""Votes of a panel: majorities, ties and weights; and the Dawid-Skene model of the raters' error rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import Floats, ShareEstimate
from auditor.metrics.intervals.jackknife_interval import Labels
from auditor.metrics.intervals.unit_means import ShareTable, shares_over_units
from auditor.metrics.judges.agreement import as_ratings, rating_indicators, share_votes


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


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """The items' true categories and the raters' error rates, estimated together; `reason` says why they are not.

    Attributes:
        categories: shape (k,), the values that occur, sorted.
        posterior: shape (items, k), probability of each category; nan for an item that nobody rated.
        confusion: shape (raters, k, k): how often a rater calls category [row] category [column]; nan without ratings.
        accuracy: shape (raters,): probability that a rater is right on a random item, from its confusion.
        prevalence: shape (k,): share of each category among the items.
        n_items, n_dropped: items with and without a rating.
        iterations: number of EM steps; `converged` is False if `max_iterations` ended them.
    """

    categories: Floats
    posterior: Floats
    confusion: Floats
    accuracy: Floats
    prevalence: Floats
    n_items: int
    n_dropped: int
    iterations: int
    converged: bool
    reason: str | None = None

    def labels(self) -> Floats:
        """The most probable category of each item, shape (items,); nan where it is unknown."""
        labels = np.full(len(self.posterior), np.nan)
        if self.reason is None:
            known = ~np.isnan(self.posterior[:, 0])
            labels[known] = self.categories[self.posterior[known].argmax(axis=1)]
        return labels


def dawid_skene(
    ratings: ArrayLike,
    *,
    groups: Sequence[Sequence[int]] | None = None,
    smoothing: float = 0.1,
    max_iterations: int = 500,
    tolerance: float = 1e-7,
) -> DawidSkene:
    """Maximum likelihood estimates of items and raters by EM (Dawid and Skene, Applied Statistics 28, 1979, 20-28).

    Raters are assumed to err independently of each other, given the item: models that share a bias do not, and then
    their shared error looks like the truth. EM starts from the shares of votes, which assumes that the majority is
    right more often than not.

    Args:
        ratings: shape (raters, items), numbers that name categories; nan where a rater gave none.
        groups: raters that count as one witness, such as copies; together they have all raters. Each rating of a group
            counts for its share of the group's ratings of the item. By default each rater is a group.
        smoothing: pseudo-ratings in each cell of a rater's confusion, so that no error has probability 0.
        max_iterations, tolerance: EM stops when no probability moves by more than `tolerance`.

    Returns:
        Not estimated, with a reason, for fewer than 3 raters or groups (their errors cannot be told apart) or one
        category only.

    Raises:
        ValueError: not a table, an infinite rating, groups without all raters, or smoothing is not above 0.
    """
    if not smoothing > 0:
        raise ValueError(f"smoothing must be above 0, but got {smoothing!r}")
    indicators, categories = rating_indicators(as_ratings(ratings))
    votes = share_votes(indicators, groups)
    is_rated = indicators.any(axis=(0, 2))
    n_items, n_dropped = int(is_rated.sum()), int((~is_rated).sum())
    reason = _undefined_reason(indicators, groups)
    posterior = np.full(indicators.shape[1:], np.nan)
    if reason is not None:
        confusion = np.full((len(indicators), len(categories), len(categories)), np.nan)
        accuracy, prevalence = np.full(len(indicators), np.nan), np.full(len(categories), np.nan)
        return DawidSkene(categories, posterior, confusion, accuracy, prevalence, n_items, n_dropped, 0, False, reason)
    rated_indicators = indicators[:, is_rated]
    posterior[is_rated], n_steps, converged = _fit_em(
        rated_indicators, votes[:, is_rated], smoothing, max_iterations, tolerance
    )
    prevalence, confusion = _estimate_raters(rated_indicators, posterior[is_rated], smoothing)
    confusion[~indicators.any(axis=(1, 2))] = np.nan
    accuracy = np.einsum("k,rkk->r", prevalence, confusion)  # r: rater, k: category called by its own name
    return DawidSkene(categories, posterior, confusion, accuracy, prevalence, n_items, n_dropped, n_steps, converged)


def posterior_of_seats(fitted: DawidSkene, ratings: ArrayLike, seats: ArrayLike) -> Floats:
    """Posterior of items from the ratings of some raters, by their fitted confusion (eq. 2.5 over these raters).

    Args:
        fitted: a fit to these or more items and raters.
        ratings: shape (raters, items), with the raters of the fit.
        seats: shape (raters,), True for each rater whose ratings count.

    Returns:
        Shape (items, k); nan for an item that none of these raters rated, and where nothing was fitted.

    Raises:
        ValueError: not a table, or an infinite rating.
    """
    table, is_counted = as_ratings(ratings), np.asarray(seats, dtype=np.bool_)
    posterior = np.full((table.shape[1], len(fitted.categories)), np.nan)
    indicators = (table[is_counted][:, :, None] == fitted.categories).astype(np.float64)
    has_rating = indicators.any(axis=2)
    rated_items, active_raters = has_rating.any(axis=0), has_rating.any(axis=1)
    if fitted.reason is None and rated_items.any():
        posterior[rated_items] = _estimate_items(
            indicators[active_raters][:, rated_items], fitted.prevalence, fitted.confusion[is_counted][active_raters]
        )
    return posterior


def _undefined_reason(indicators: Floats, groups: Sequence[Sequence[int]] | None) -> str | None:
    """Why the model cannot be estimated; None where it can."""
    has_rated = np.asarray(indicators.any(axis=(1, 2)))
    n_raters = int(has_rated.sum())
    if n_raters < 3:
        return f"fewer than 3 raters ({n_raters})"
    n_groups = n_raters if groups is None else sum(bool(has_rated[list(group)].any()) for group in groups)
    if n_groups < 3:
        return f"fewer than 3 raters, where copies count as one ({n_groups})"
    return "all ratings are the same" if indicators.shape[2] < 2 else None


def _fit_em(
    indicators: Floats, votes: Floats, smoothing: float, max_iterations: int, tolerance: float
) -> tuple[Floats, int, bool]:
    """Posterior of the items, shape (items, k), the number of EM steps, and whether they converged.

    `votes` are the indicators with each rating's share of its group's vote, which the ratings of the item determine.
    Items with the same ratings have the same posterior, so each pattern of ratings is computed once.
    """
    flat_indicators = np.ascontiguousarray(indicators.transpose(1, 0, 2).astype(np.int8)).reshape(
        indicators.shape[1], -1
    )
    row_keys = flat_indicators.view(np.dtype((np.void, flat_indicators.shape[1]))).ravel()
    _, first_index, pattern_index, weights = np.unique(
        row_keys, return_index=True, return_inverse=True, return_counts=True
    )
    pattern_indicators, pattern_votes = indicators[:, first_index], votes[:, first_index]
    posterior = pattern_votes.sum(axis=0) / pattern_votes.sum(axis=(0, 2))[:, None]
    for step in range(max_iterations):
        previous, posterior = (
            posterior,
            _estimate_items(pattern_votes, *_estimate_raters(pattern_indicators, posterior, smoothing, weights)),
        )
        if np.abs(posterior - previous).max() <= tolerance:
            return posterior[pattern_index], step + 1, True
    return posterior[pattern_index], max_iterations, False


def _estimate_raters(
    indicators: Floats, posterior: Floats, smoothing: float, weights: NDArray[np.intp] | None = None
) -> tuple[Floats, Floats]:
    """M step (eqs. 2.3 and 2.4): prevalence of the categories, and each rater's confusion; `weights` counts items."""
    counted = posterior if weights is None else posterior * weights[:, None]
    # Shape (raters, true categories, chosen categories). Not by einsum, which takes longer to plan the sum over a few
    # items than to compute it: with it, up to 500 steps took twice as long.
    counts = np.tensordot(counted, indicators, axes=(0, 1)).transpose(1, 0, 2) + smoothing
    n_items = len(posterior) if weights is None else weights.sum()
    return counted.sum(axis=0) / n_items, counts / counts.sum(axis=2, keepdims=True)


def _estimate_items(votes: Floats, prevalence: Floats, confusion: Floats) -> Floats:
    """E step (eq. 2.5): posterior of the items, in logarithms, since products over many raters would underflow.

    Args:
        votes: shape (raters, items, k), indicators of the ratings, in groups with their share of the group's vote.
    """
    with np.errstate(divide="ignore"):
        log_joint = np.log(prevalence) + np.tensordot(votes, np.log(confusion), axes=((0, 2), (0, 2)))
    joint = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    posterior: Floats = joint / joint.sum(axis=1, keepdims=True)
    return posterior
