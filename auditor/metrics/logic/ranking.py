"""Ratings of items from noisy comparisons, and preferences made consistent by a ranking (REPAIR)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.lazy_imports import import_when_used
from auditor.metrics.intervals.estimate import LOWER_QUANTILE, UPPER_QUANTILE, Estimate
from auditor.metrics.intervals.jackknife_interval import estimate_from_replicates, replicate_over_units
from auditor.metrics.intervals.special_functions import expit
from auditor.metrics.logic.consistency import (
    Bools,
    JudgeAnswers,
    LogicEstimate,
    as_preferences,
    average_answered_orders,
    decisions,
    estimate_human_agreement,
    name_sets,
)

if not TYPE_CHECKING:
    sparse = import_when_used("scipy.sparse")
    csgraph = import_when_used("scipy.sparse.csgraph")
else:
    from scipy import sparse
    from scipy.sparse import csgraph

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class BradleyTerry:
    """Strengths of items on the logit scale: P(i preferred to j) = 1 / (1 + exp(strength_j - strength_i)).

    `strength` and `std_error` have the shape (n_items,), nan where there is no estimate. `component` is the number of
    the connected set of compared items, -1 where an item has no comparison: strengths of different sets are not
    comparable. `n` is the number of comparisons used. `reason` says what is missing, if anything.
    """

    strength: Floats
    std_error: Floats
    component: Ints
    n: int
    iterations: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Elo:
    """Ratings over `n_shuffles` orders of the same comparisons: mean, 2.5% and 97.5% points, shape (n_items,) each.

    The width shows how much ratings depend on the order; it is not a sampling error. nan where an item has no
    comparison.
    """

    rating: Floats
    low: Floats
    high: Floats
    n: int
    n_shuffles: int


def comparisons_from_preferences(preferences: ArrayLike, positions: ArrayLike | None = None) -> Floats:
    """The valid answers of a preference array (see `auditor.metrics.logic.consistency`) as comparisons, shape (m, 3).

    Args:
        preferences: shape (N, N).
        positions: shape (N, N), numbers by which the comparisons are sorted; None takes them row by row.

    Raises:
        ValueError: as `as_preferences`.
    """
    values = as_preferences(preferences)
    first, second = np.nonzero(~np.isnan(values))
    comparisons = np.column_stack([first, second, values[first, second]])
    if positions is None:
        return comparisons
    return comparisons[np.argsort(np.asarray(positions)[first, second], kind="stable")]


def _comparison_columns(comparisons: ArrayLike, n_items: int) -> tuple[Ints, Ints, Floats]:
    """First item, second item and outcome of the rows without nan, shape (m,) each; ValueError if one is not valid."""
    rows = np.asarray(comparisons, dtype=float)
    if rows.size == 0:
        rows = np.empty((0, 3))
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ValueError(f"comparisons must have the shape (m, 3), but got {rows.shape}")
    rows = rows[~np.isnan(rows).any(axis=1)]
    items, outcome = rows[:, :2].astype(np.intp), rows[:, 2]
    if ((items < 0) | (items >= n_items)).any() or (items != rows[:, :2]).any():
        raise ValueError(f"items must be whole numbers from 0 to {n_items - 1}")
    if (items[:, 0] == items[:, 1]).any():
        raise ValueError("an item cannot be compared with itself")
    if ((outcome < 0) | (outcome > 1)).any():
        raise ValueError("outcomes must be in [0, 1], or nan where there is no valid answer")
    return items[:, 0], items[:, 1], outcome


def win_loss_rate(comparisons: ArrayLike, n_items: int) -> Floats:
    """(wins - losses) / comparisons of each item (Aligning with Logic); a tie is a comparison without a win or a loss.

    A comparison by probability is won by the item that is more probable, as it is decided everywhere else.

    Args:
        comparisons: shape (m, 3), see the module.
        n_items: number of items.

    Returns:
        Shape (n_items,), in [-1, 1]; nan where an item has no comparison.

    Raises:
        ValueError: the comparisons are not as the module describes.
    """
    i, j, outcome = _comparison_columns(comparisons, n_items)
    margin = decisions(outcome)
    total = np.bincount(i, margin, n_items) - np.bincount(j, margin, n_items)
    count = np.bincount(i, minlength=n_items) + np.bincount(j, minlength=n_items)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def comparison_components(i: Ints, j: Ints, n_items: int) -> Ints:
    """Number of the connected component of each item in the graph of compared pairs (i, j), shape (n_items,).

    -1 where an item is in no pair.
    """
    graph = sparse.coo_array((np.ones(len(i)), (i, j)), shape=(n_items, n_items)).tocsr()
    labels = csgraph.connected_components(graph, directed=False)[1].astype(np.intp)
    is_isolated = np.bincount(np.concatenate([i, j]), minlength=n_items) == 0
    labels[~is_isolated] = np.unique(labels[~is_isolated], return_inverse=True)[1]
    labels[is_isolated] = -1
    return labels


def _is_strongly_connected(graph: NDArray[np.bool_]) -> bool:
    """Whether every item of a directed graph, shape (N, N), is reached from every other."""
    return bool(csgraph.connected_components(graph, directed=True, connection="strong")[0] == 1)


def bradley_terry(
    comparisons: ArrayLike, n_items: int, prior: float = 0.1, tolerance: float = 1e-9, max_iterations: int = 100
) -> BradleyTerry:
    """Strengths by maximum likelihood (Bradley and Terry, Biometrika 39, 1952), with Newton's method.

    The MM algorithm (Hunter, Annals of Statistics 32, 2004) has the same limit, but needs thousands of steps where
    items differ much.

    A tie is half a win for both. `prior` regularises: every item also plays that many games, half of them won, against
    a phantom of strength 0. This shrinks strengths to 0, keeps those of items that won or lost all finite, and gives
    disconnected sets a common scale that the comparisons do not support: `reason` reports them. With prior = 0
    strengths are pure maximum likelihood with mean 0; where wins do not connect all items both ways, none exists, and
    strengths are nan.

    Args:
        comparisons: shape (m, 3).
        n_items: number of items.
        prior: games against the phantom, >= 0.
        tolerance: largest change of a strength at which to stop.
        max_iterations: at which to stop in any case; `reason` then reports it.

    Raises:
        ValueError: the prior is negative or the comparisons are not as the module describes.
    """
    if not prior >= 0:
        raise ValueError(f"prior must be at least 0, but got {prior!r}")
    i, j, outcome = _comparison_columns(comparisons, n_items)
    labels = comparison_components(i, j, n_items)
    undefined = np.full(n_items, np.nan)
    if len(i) == 0:
        return BradleyTerry(undefined, undefined, labels, 0, 0, "no comparisons")
    wins = np.zeros((n_items, n_items))
    np.add.at(wins, (i, j), outcome)
    np.add.at(wins, (j, i), 1 - outcome)
    compared_items = np.flatnonzero(labels >= 0)
    wins = wins[np.ix_(compared_items, compared_items)]
    if prior == 0 and not _is_strongly_connected(wins > 0):
        reason = "with no prior there is no finite estimate: wins do not connect all items both ways"
        return BradleyTerry(undefined, undefined, labels, len(i), 0, reason)
    logits, iterations = _newton_logits(wins, prior, tolerance, max_iterations)
    strength, std_error = undefined.copy(), undefined.copy()
    strength[compared_items], std_error[compared_items] = logits, _std_errors(wins + wins.T, logits, prior)
    reasons = [f"{labels.max() + 1} sets of items are not compared with each other"] if labels.max() > 0 else []
    reasons += [f"items without a comparison: {n_items - len(compared_items)}"] if len(compared_items) < n_items else []
    reasons += [f"not converged in {iterations} iterations"] if iterations >= max_iterations else []
    return BradleyTerry(strength, std_error, labels, len(i), iterations, "; ".join(reasons) or None)


def _newton_logits(wins: Floats, prior: float, tolerance: float, max_iterations: int) -> tuple[Floats, int]:
    """Strengths by Newton's method with step halving, and the number of iterations.

    Args:
        wins: shape (n, n), wins of each item against each other item.
    """
    games, n_wins = wins + wins.T, wins.sum(axis=1) + prior / 2
    logits, iteration, change = np.zeros(len(wins)), 0, np.inf
    # Without a prior only differences are determined: this fixes their mean at 0.
    gauge = 0.0 if prior > 0 else 1.0
    while change >= tolerance and iteration < max_iterations:
        win_p, phantom_p = _win_probabilities(logits)
        gradient = n_wins - (games * win_p).sum(axis=1) - prior * phantom_p
        step = np.linalg.solve(_fisher_information(games, logits, prior) + gauge, gradient)
        # Far from the maximum a full Newton step may decrease the likelihood; a short enough one cannot.
        log_likelihood = _log_likelihood(wins, logits, prior)
        while _log_likelihood(wins, logits + step, prior) < log_likelihood - 1e-9 * abs(log_likelihood):
            step = step / 2
        logits, iteration, change = logits + step, iteration + 1, np.abs(step).max()
    return logits, iteration


def _log_likelihood(wins: Floats, logits: Floats, prior: float) -> float:
    """Log likelihood of the strengths, including the games against the phantom."""
    losses = wins * np.logaddexp(0.0, logits[None, :] - logits[:, None])
    return -float(losses.sum() + prior / 2 * (np.logaddexp(0.0, logits) + np.logaddexp(0.0, -logits)).sum())


def _win_probabilities(logits: Floats) -> tuple[Floats, Floats]:
    """Probability that each item beats each other item, shape (n, n), and the phantom, shape (n,)."""
    return expit(logits[:, None] - logits[None, :]), expit(logits)


def _fisher_information(games: Floats, logits: Floats, prior: float) -> Floats:
    """Fisher information of the strengths, shape (n, n)."""
    win_p, phantom_p = _win_probabilities(logits)
    information = games * win_p * (1 - win_p)
    return np.diag(information.sum(axis=1) + prior * phantom_p * (1 - phantom_p)) - information


def _std_errors(games: Floats, logits: Floats, prior: float) -> Floats:
    """Standard errors from the Fisher information; without a prior relative to the mean of all strengths."""
    covariance = np.linalg.pinv(_fisher_information(games, logits, prior), hermitian=True)
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


def elo(comparisons: ArrayLike, n_items: int, k: float = 16.0, shuffles: int = 100, seed: int = 0) -> Elo:
    """Elo ratings (base 1000, scale 400), repeated over random orders since they depend on the order.

    Args:
        comparisons: shape (m, 3).
        n_items: number of items.
        k: largest change of a rating by one comparison, > 0.
        shuffles: number of random orders; 0 rates once, in the order of the rows.
        seed: of the orders.

    Raises:
        ValueError: k is not above 0, shuffles is negative, or the comparisons are not as the module describes.
    """
    if not k > 0 or shuffles < 0:
        raise ValueError(f"k must be above 0 and shuffles at least 0, but got {k!r} and {shuffles!r}")
    i, j, outcome = _comparison_columns(comparisons, n_items)
    rng = np.random.default_rng(seed)
    row_order = np.arange(len(i))
    orders = rng.permuted(np.tile(row_order, (shuffles, 1)), axis=1) if shuffles else row_order[None, :]
    ratings = np.full((len(orders), n_items), 1000.0)
    order_index = np.arange(len(orders))
    for comparison_index in orders.T:
        first_items, second_items = i[comparison_index], j[comparison_index]
        expected = 1 / (1 + 10 ** ((ratings[order_index, second_items] - ratings[order_index, first_items]) / 400))
        rating_change = k * (outcome[comparison_index] - expected)
        ratings[order_index, first_items] += rating_change
        ratings[order_index, second_items] -= rating_change
    ratings[:, comparison_components(i, j, n_items) < 0] = np.nan
    low, high = np.quantile(ratings, (LOWER_QUANTILE, UPPER_QUANTILE), axis=0)
    return Elo(ratings.mean(axis=0), low, high, len(i), shuffles)


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
        preferences: shape (N, N), see `auditor.metrics.logic.consistency`.
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


class RepairEffect(NamedTuple):
    """Agreement with people of the original answers, and of those implied by the ranking, question by question.

    Attributes:
        before, after: pooled over sets.
        gain: after - before, with an interval over sets.
        n_tied: questions with a human preference that the judge answered, but that its answer or the ranking leaves
            tied.
    """

    before: LogicEstimate
    after: LogicEstimate
    gain: Estimate
    n_tied: int


def measure_repair_effect(
    original_answers: Sequence[JudgeAnswers], repaired_preferences: Sequence[Floats]
) -> RepairEffect:
    """Compare original and repaired answers on the questions decided by people, by the judge and by its ranking.

    Ties count as neither right nor wrong. A ranking has fewer ties: if ties were misses, or were left out on one side
    only, a judge that answers at random would seem to improve by the repair.

    Args:
        original_answers: one judge's answers on some sets.
        repaired_preferences: for each of these sets, shape (N, N), the answers implied by its ranking; nan if none is.

    Raises:
        ValueError: as `auditor.metrics.logic.consistency.as_preferences`.
    """
    gains, restricted_pairs = [], []
    n_tied = 0
    for answers, repaired in zip(original_answers, repaired_preferences, strict=True):
        truth = average_answered_orders(answers.human_preferences)
        is_answered = answers.asked[0] & _decided_mask(truth) & ~np.isnan(answers.preferences)
        is_decided = is_answered & _decided_mask(answers.preferences) & _decided_mask(repaired)
        n_tied += int(is_answered.sum() - is_decided.sum())
        was_right, is_right = (
            ((preferences > 0.5) == (truth > 0.5))[is_decided] for preferences in (answers.preferences, repaired)
        )
        gains.append((float(is_right.sum()) - float(was_right.sum()), float(is_decided.sum())))
        restricted_pairs.append(
            (
                _restrict_answers(answers, answers.preferences, is_decided),
                _restrict_answers(answers, repaired, is_decided),
            )
        )
    before, after = (estimate_human_agreement([pair[side] for pair in restricted_pairs], "pooled") for side in (0, 1))
    return RepairEffect(before, after, _estimate_gain(gains, name_sets(original_answers)), n_tied)


def _estimate_gain(gains: Sequence[tuple[float, float]], names: Sequence[str]) -> Estimate:
    """The gain in agreement over all questions, with an interval over sets.

    Args:
        gains: questions that are right after minus before, and all questions, of each set.
        names: of the sets.
    """
    moments = np.array(gains, dtype=float).reshape(-1, 2)
    has_questions = moments[:, 1] > 0
    if not has_questions.any():
        return Estimate(None, 0, reason="no question is decided by people, by the judge and by its ranking")
    difference, n = moments.sum(axis=0)
    sets = {"set": np.asarray(names)[has_questions]}
    with np.errstate(invalid="ignore"):
        replicates = replicate_over_units(moments[has_questions], lambda sums: sums[:, 0] / sums[:, 1], sets)
    return estimate_from_replicates(float(difference / n), int(n), replicates.units, bounds=(-1.0, 1.0))


def _decided_mask(preferences: Floats) -> Bools:
    """Which preferences are not ties; False for nan."""
    return np.asarray(np.abs(decisions(preferences)) == 1)


def _restrict_answers(answers: JudgeAnswers, preferences: Floats, mask: Bools) -> JudgeAnswers:
    """The answers with other preferences, as if only the questions of the mask had been asked."""
    return answers._replace(preferences=np.where(mask, preferences, np.nan), asked=np.stack([mask, mask]))
