"""The Dawid-Skene model: the items' true categories and the raters' error rates, estimated together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._rating_table import as_ratings, rating_indicators, share_votes


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
    # i: item, r: rater, c: true category, k: category that the rater chose.
    counts = np.einsum("ic,rik->rck", counted, indicators, optimize=True) + smoothing
    n_items = len(posterior) if weights is None else weights.sum()
    return counted.sum(axis=0) / n_items, counts / counts.sum(axis=2, keepdims=True)


def _estimate_items(votes: Floats, prevalence: Floats, confusion: Floats) -> Floats:
    """E step (eq. 2.5): posterior of the items, in logarithms, since products over many raters would underflow.

    Args:
        votes: shape (raters, items, k), indicators of the ratings, in groups with their share of the group's vote.
    """
    with np.errstate(divide="ignore"):
        log_joint = np.log(prevalence) + np.einsum("rik,rck->ic", votes, np.log(confusion), optimize=True)
    joint = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    posterior: Floats = joint / joint.sum(axis=1, keepdims=True)
    return posterior
