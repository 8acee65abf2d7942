"""Logical consistency of a judge's comparisons (Aligning with Logic, ICML 2025).

`preferences` is an array (N, N): entry (i, j) is the answer to the question that shows item i first: 1 = i preferred,
0 = j preferred, 0.5 = a tie, a value between them = the probability that i is preferred, nan = no valid answer. The
diagonal is ignored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.case_counts import CaseCounts, count_by_item

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

TIE_TOLERANCE = 1e-9
"""Distance from 1/2 below which a probability is a tie: a rounding error must not turn 0.1 + 0.4 into a preference."""


def as_preferences(preferences: ArrayLike) -> Floats:
    """A copy of the preferences with nan on the diagonal.

    Raises:
        ValueError: the shape is not (N, N) or a value is not in [0, 1].
    """
    values = np.array(preferences, dtype=float)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"preferences must have the shape (N, N), but got {values.shape}")
    np.fill_diagonal(values, np.nan)
    if ((values < 0) | (values > 1)).any():
        raise ValueError("preferences must be in [0, 1], or nan where there is no valid answer")
    return values


def pair_probabilities(preferences: ArrayLike, calibrated: bool = False) -> Floats:
    """One probability per pair, with (i, j) and (j, i) adding up to 1; nan where neither order has a valid answer.

    Uncalibrated, it is the answer to the question that shows the lower item first, or the other order's if that one
    failed; calibrated, the mean of the orders with an answer.

    Raises:
        ValueError: as `as_preferences`.
    """
    values = as_preferences(preferences)
    swapped = 1.0 - values.T
    if calibrated:
        mean_of_orders = (values + swapped) / 2
        return np.where(np.isnan(mean_of_orders), np.where(np.isnan(values), swapped, values), mean_of_orders)
    upper = np.triu(np.where(np.isnan(values), swapped, values), 1)
    probabilities = upper + np.tril(1.0 - upper.T, -1)
    np.fill_diagonal(probabilities, np.nan)
    return probabilities


def preference_graph(preferences: ArrayLike, calibrated: bool = False) -> Bools:
    """The graph of preferences, shape (N, N): whether i is preferred to j. Ties and unanswered pairs have no edge.

    Raises:
        ValueError: as `as_preferences`.
    """
    return pair_probabilities(preferences, calibrated) > 0.5 + TIE_TOLERANCE


def decisions(values: Floats) -> Floats:
    """Decisions from preference probabilities: 1 for the first item, -1 for the second, 0 for a tie; nan stays nan."""
    return np.where(np.abs(values - 0.5) <= TIE_TOLERANCE, 0.0, np.sign(values - 0.5))


def commutativity(preferences: ArrayLike) -> CaseCounts:
    """Count the unordered pairs whose decision is the same in both orders shown (Aligning with Logic, s_comm).

    A pair with a tie in an order is neither agreement nor violation; one without a valid answer in an order is `lost`.

    Raises:
        ValueError: as `as_preferences`.
    """
    decided = decisions(as_preferences(preferences))
    upper = np.triu_indices(len(decided), 1)
    return _count_reversals(decided[upper], decided.T[upper], np.column_stack(upper), len(decided))


def position_consistency(preferences: ArrayLike) -> CaseCounts:
    """Count the unordered pairs with the same answer in both orders shown, where a tie is an answer too.

    This is position consistency as benchmarks of judges report it (Shi et al., "Judging the Judges", arXiv 2406.07791):
    two ties are equal answers, and a tie and a preference are not. `commutativity` leaves out pairs with a tie. A pair
    without a valid answer in an order is `lost`.

    Raises:
        ValueError: as `as_preferences`.
    """
    decided = decisions(as_preferences(preferences))
    upper = np.triu_indices(len(decided), 1)
    first, second = decided[upper], decided.T[upper]
    is_answered = ~np.isnan(first) & ~np.isnan(second)
    return count_cases(first == -second, is_answered, is_answered, np.column_stack(upper), len(decided))


def negation_invariance(preferences: ArrayLike, negated: ArrayLike, calibrated: bool = False) -> CaseCounts:
    """Count the ordered pairs for which "which is less …" is answered with the other item than "which is more …".

    A pair with a tie in a form is neither agreement nor violation; one without a valid answer in a form is `lost`
    (Aligning with Logic, s_neg).

    Args:
        preferences, negated: shape (N, N), answers to both forms; 1 = the item shown first was named.
        calibrated: whether both orders are averaged first; then each unordered pair counts once.

    Raises:
        ValueError: the shapes differ, or as `as_preferences`.
    """
    positive, negative = as_preferences(preferences), as_preferences(negated)
    if positive.shape != negative.shape:
        raise ValueError(f"both forms must have one shape, but got {positive.shape} and {negative.shape}")
    compared_pairs = ~np.eye(len(positive), dtype=bool)
    if calibrated:
        positive, negative = pair_probabilities(positive, True), pair_probabilities(negative, True)
        compared_pairs = np.triu(compared_pairs)
    return _count_reversals(
        decisions(positive[compared_pairs]),
        decisions(negative[compared_pairs]),
        np.argwhere(compared_pairs),
        len(positive),
    )


def _count_reversals(first: Floats, second: Floats, pairs: Ints, n_items: int) -> CaseCounts:
    """Count the pairs whose decisions are opposite.

    Args:
        first, second: shape (pairs,), decisions to both questions on a pair (see `decisions`).
        pairs: shape (pairs, 2), the items of each pair.
    """
    return count_cases(
        first == -second, ~np.isnan(first) & ~np.isnan(second), (first != 0) & (second != 0), pairs, n_items
    )


def human_agreement(preferences: ArrayLike, people: ArrayLike, calibrated: bool = False) -> CaseCounts:
    """Count the pairs with a human preference on which the judge decides the same way.

    A tie of the judge is neither agreement nor violation.

    Args:
        preferences: shape (N, N), the judge's.
        people: shape (N, N), human preferences; if only one order of a pair was asked, the other is nan.
        calibrated: whether the judge's orders are averaged first.

    Raises:
        ValueError: the shapes differ, or as `as_preferences`.
    """
    judge, truth = pair_probabilities(preferences, calibrated), pair_probabilities(people, True)
    if judge.shape != truth.shape:
        raise ValueError(f"judge and people must have one shape, but got {judge.shape} and {truth.shape}")
    upper = np.triu(np.abs(decisions(truth)) == 1, 1)
    judge_decisions = decisions(judge[upper])
    return count_cases(
        judge_decisions == decisions(truth[upper]),
        ~np.isnan(judge_decisions),
        judge_decisions != 0,
        np.argwhere(upper),
        len(judge),
    )


def count_cases(is_hit: Bools, is_answered: Bools, has_no_tie: Bools, pairs: Ints, n_items: int) -> CaseCounts:
    """Count cases about pairs of items; the arguments but the last are arrays of shape (cases,).

    Args:
        is_hit: ignored where a case is not answered, or tied.
        is_answered: whether there is every answer that the case takes.
        has_no_tie: ignored where a case is not answered.
        pairs: shape (cases, 2), the items of each case.
    """
    is_decided = is_answered & has_no_tie
    hits = is_hit[is_decided].astype(float)
    return CaseCounts(
        hits=float(hits.sum()),
        n=len(hits),
        ties=int((is_answered & ~has_no_tie).sum()),
        lost=int((~is_answered).sum()),
        by_item=count_by_item(pairs[is_decided], hits, n_items),
    )


def self_agreement(samples: ArrayLike) -> CaseCounts:
    """Add up, over questions, the share of repeated decisions that agree with the most frequent one.

    A tie is no decision: the share is of the decided answers, and from 0.5 to 1 as in Aligning with Logic.

    Args:
        samples: shape (questions, repeats), decisions 1 / 0.5 / 0 or probabilities, nan where an answer failed.
            Questions with fewer than two valid answers are `lost`; `ties` are others with fewer than two decisions.

    Returns:
        The mean is `value`; its chance level is well above 1/2 for few repeats.

    Raises:
        ValueError: the shape is not (questions, repeats).
    """
    values = np.asarray(samples, dtype=float)
    if values.ndim != 2:
        raise ValueError(f"samples must have the shape (questions, repeats), but got {values.shape}")
    decided = decisions(values)
    # How often each decision was given to each question, shape (2, questions).
    counts = np.stack([(decided == choice).sum(axis=1) for choice in (-1.0, 1.0)])
    n_decided, n_valid = counts.sum(axis=0), (~np.isnan(decided)).sum(axis=1)
    is_measured = n_decided >= 2
    shares = counts.max(axis=0)[is_measured] / n_decided[is_measured]
    return CaseCounts(
        hits=float(shares.sum()),
        n=int(is_measured.sum()),
        ties=int((~is_measured & (n_valid >= 2)).sum()),
        lost=int((n_valid < 2).sum()),
    )
