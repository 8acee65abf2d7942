"""From the votes of a panel to one answer: plain majority, weighted majority, Dawid and Skene's model of the raters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.proportion import Proportion, proportion


def min_majority(panel_size: int) -> int:
    """The fewest votes that are more than half of the seats, or all seats where there is none.

    An adaptive panel asks so many judges whatever they say, so figures over their votes alone are not of disputed items
    only.
    """
    return min(panel_size, panel_size // 2 + 1)


def can_still_change(votes_left: float, votes_right: float, cast: float, seats: float) -> bool:
    """Whether the seats that have not voted could change what a strict majority of all seats says.

    A panel asked one judge after another may stop at the first False: the full panel would settle it the same way, or
    leave it open the same way. Weighted votes are counted by their weight.

    Args:
        votes_left, votes_right: valid votes for either side so far, or their weight.
        cast: seats that have had their turn, abstentions and failures among them, or their weight.
        seats: all seats, or their weight.

    Raises:
        ValueError: a number is negative, more votes than were cast, or more cast than seats.
    """
    slack = 1e-12 * seats
    if min(votes_left, votes_right) < 0 or not votes_left + votes_right - slack <= cast <= seats + slack:
        raise ValueError(f"{votes_left} + {votes_right} votes of {cast} cast do not fit {seats} seats")
    most, rest = max(votes_left, votes_right), seats - cast
    return bool(2 * most <= seats + slack and 2 * (most + rest) > seats + slack)


def weighted_majority(ratings: ArrayLike, weights: ArrayLike) -> Floats:
    """For each item the category that holds more than half the weight of the whole panel.

    Raters without a rating keep their weight in the denominator, as in the plain majority, which is this with equal
    weights.

    Args:
        ratings: shape (raters, items), numbers that name categories; nan where a rater gave none.
        weights: shape (raters,), at least 0; 0 benches a rater.

    Returns:
        Shape (items,); nan where no category holds more than half.

    Raises:
        ValueError: shapes do not fit, or the weights are negative, not finite or all 0.
    """
    table, weight = _as_ratings(ratings), np.asarray(weights, dtype=np.float64)
    if weight.shape != (len(table),) or not np.all(np.isfinite(weight) & (weight >= 0)) or not weight.sum() > 0:
        raise ValueError(f"weights must be {len(table)} numbers of at least 0, not all 0, but got {weights!r}")
    marks, categories = _rating_indicators(table)
    if not len(categories):
        return np.full(table.shape[1], np.nan)
    held = np.einsum("rik,r->ik", marks, weight)
    winner = categories[held.argmax(axis=1)]
    # Weights are decimal fractions: half of them must not become more than half by a rounding error.
    return np.where(held.max(axis=1) > weight.sum() / 2 * (1 + 1e-12), winner, np.nan)


def agreement_with_others(ratings: ArrayLike) -> tuple[Proportion, ...]:
    """For each rater, the share of its items on which it says what more than half of the others' ratings say.

    Items that the others leave open, or have not rated, do not count: n is the number of the rest.

    Args:
        ratings: shape (raters, items), numbers that name categories; nan where a rater gave none.

    Raises:
        ValueError: not a table, or an infinite rating.
    """
    marks, categories = _rating_indicators(_as_ratings(ratings))
    if not len(categories):
        return tuple(proportion(0, 0) for _ in marks)
    others = marks.sum(axis=0) - marks
    decided = (2 * others.max(axis=2) > others.sum(axis=2)) & marks.any(axis=2)
    same = decided & (marks.argmax(axis=2) == others.argmax(axis=2))
    return tuple(proportion(int(s.sum()), int(d.sum())) for s, d in zip(same, decided, strict=True))


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """What the items are and how far each rater can be trusted, estimated together; `reason` says why it is not.

    Attributes:
        categories: shape (k,), the values that occur, sorted.
        posterior: shape (items, k), probability of each category; nan for an item that nobody rated.
        confusion: shape (raters, k, k): how often a rater calls category [row] category [column]; nan without ratings.
        accuracy: shape (raters,): chance that a rater is right on a random item, by its own confusion.
        prevalence: shape (k,): share of each category among the items.
        n_items, n_dropped: items with and without a rating.
        iterations: steps taken; `converged` says whether more would have changed nothing.
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
        """The most probable category of each item, shape (items,); nan where none is known."""
        labels = np.full(len(self.posterior), np.nan)
        if self.reason is None:
            known = ~np.isnan(self.posterior[:, 0])
            labels[known] = self.categories[self.posterior[known].argmax(axis=1)]
        return labels


def dawid_skene(
    ratings: ArrayLike, *, smoothing: float = 0.1, max_iterations: int = 500, tolerance: float = 1e-7
) -> DawidSkene:
    """Maximum likelihood of items and raters by EM (Dawid and Skene, Applied Statistics 28, 1979, 20-28).

    Raters are taken to err independently of each other, given the item: models that share a bias do not, and then their
    shared error looks like the truth. It starts from the shares of votes: the majority is taken to be right more often
    than not.

    Args:
        ratings: shape (raters, items), numbers that name categories; nan where a rater gave none.
        smoothing: pseudo-ratings in each cell of a rater's confusion, so that one who has not erred may yet.
        max_iterations, tolerance: it stops when no probability moves by more than `tolerance`.

    Returns:
        Not estimated, with a reason, for fewer than 3 raters (their errors cannot be told apart) or one category only.

    Raises:
        ValueError: not a table, an infinite rating, or no smoothing.
    """
    if not smoothing > 0:
        raise ValueError(f"smoothing must be above 0, but got {smoothing!r}")
    marks, categories = _rating_indicators(_as_ratings(ratings))
    rated = marks.any(axis=(0, 2))
    n, dropped = int(rated.sum()), int((~rated).sum())
    reason = _undefined_reason(marks)
    posterior = np.full(marks.shape[1:], np.nan)
    if reason is not None:
        confusion = np.full((len(marks), len(categories), len(categories)), np.nan)
        accuracy, prevalence = np.full(len(marks), np.nan), np.full(len(categories), np.nan)
        return DawidSkene(categories, posterior, confusion, accuracy, prevalence, n, dropped, 0, False, reason)
    kept = marks[:, rated]
    posterior[rated], steps, converged = _fit_em(kept, smoothing, max_iterations, tolerance)
    prevalence, confusion = _estimate_raters(kept, posterior[rated], smoothing)
    confusion[~marks.any(axis=(1, 2))] = np.nan
    accuracy = np.einsum("k,rkk->r", prevalence, confusion)
    return DawidSkene(categories, posterior, confusion, accuracy, prevalence, n, dropped, steps, converged)


def posterior_of_seats(fitted: DawidSkene, ratings: ArrayLike, seats: ArrayLike) -> Floats:
    """What some of the raters say of items, given how far each can be trusted (eq. 2.5 over these raters).

    Args:
        fitted: to more items, or more raters' words on them, than are asked about here.
        ratings: shape (raters, items), as given to the fit.
        seats: shape (raters,), whose ratings count.

    Returns:
        Shape (items, k); nan for an item that none of these raters rated, and where nothing was fitted.

    Raises:
        ValueError: not a table, or an infinite rating.
    """
    table, seated = _as_ratings(ratings), np.asarray(seats, dtype=np.bool_)
    found = np.full((table.shape[1], len(fitted.categories)), np.nan)
    marks = (table[seated][:, :, None] == fitted.categories).astype(np.float64)
    known = marks.any(axis=2)
    rated, heard = known.any(axis=0), known.any(axis=1)
    if fitted.reason is None and rated.any():
        found[rated] = _estimate_items(marks[heard][:, rated], fitted.prevalence, fitted.confusion[seated][heard])
    return found


def _undefined_reason(indicators: Floats) -> str | None:
    raters = int(np.sum(indicators.any(axis=(1, 2))))
    if raters < 3:
        return f"fewer than 3 raters ({raters})"
    return "all ratings are the same" if indicators.shape[2] < 2 else None


def _fit_em(indicators: Floats, smoothing: float, max_iterations: int, tolerance: float) -> tuple[Floats, int, bool]:
    """The items' probabilities, the steps taken, and whether they came to rest.

    Items that were rated alike have the same probabilities, so that each pattern of ratings is worked on once.
    """
    flat = np.ascontiguousarray(indicators.transpose(1, 0, 2).astype(np.int8)).reshape(indicators.shape[1], -1)
    rows = flat.view(np.dtype((np.void, flat.shape[1]))).ravel()
    _, first, where, weights = np.unique(rows, return_index=True, return_inverse=True, return_counts=True)
    kept = indicators[:, first]
    posterior = kept.sum(axis=0) / kept.sum(axis=(0, 2))[:, None]
    for step in range(max_iterations):
        before, posterior = posterior, _estimate_items(kept, *_estimate_raters(kept, posterior, smoothing, weights))
        if np.abs(posterior - before).max() <= tolerance:
            return posterior[where], step + 1, True
    return posterior[where], max_iterations, False


def _estimate_raters(
    indicators: Floats, posterior: Floats, smoothing: float, weights: NDArray[np.intp] | None = None
) -> tuple[Floats, Floats]:
    """M step (eqs. 2.3 and 2.4): prevalence of the categories, and each rater's confusion; `weights` counts items."""
    counted = posterior if weights is None else posterior * weights[:, None]
    counts = np.einsum("ic,rik->rck", counted, indicators, optimize=True) + smoothing
    n = len(posterior) if weights is None else weights.sum()
    return counted.sum(axis=0) / n, counts / counts.sum(axis=2, keepdims=True)


def _estimate_items(indicators: Floats, prevalence: Floats, confusion: Floats) -> Floats:
    """E step (eq. 2.5), in logarithms: products of many raters would underflow."""
    with np.errstate(divide="ignore"):
        log = np.log(prevalence) + np.einsum("rik,rck->ic", indicators, np.log(confusion), optimize=True)
    odds = np.exp(log - log.max(axis=1, keepdims=True))
    posterior: Floats = odds / odds.sum(axis=1, keepdims=True)
    return posterior


def _as_ratings(ratings: ArrayLike) -> Floats:
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("ratings must be a table (raters, items) of numbers, nan where there is none")
    return table


def _rating_indicators(ratings: Floats) -> tuple[Floats, Floats]:
    """1 where a rater put an item into a category, shape (raters, items, k), and the sorted categories."""
    categories = np.unique(ratings[~np.isnan(ratings)])
    return (ratings[:, :, None] == categories).astype(np.float64), categories
