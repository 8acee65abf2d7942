"""Logical consistency of a judge's comparisons (Aligning with Logic, ICML 2025), with intervals over item sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.items import (
    AveragedEstimate,
    Averaging,
    CaseCounts,
    averaged_share,
    count_by_item,
    instance_values,
    share_over_items,
)
from auditor.metrics.intervals.jackknife_interval import MIN_UNITS

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
    """One probability per pair, with (i, j) and (j, i) adding up to 1.

    Uncalibrated, it is the answer to the question that shows the lower item first, or the other order's if that one
    failed, and nan where both did; calibrated, the mean of both orders, and nan where one failed: a single order has
    the judge's preference for a position.

    Raises:
        ValueError: as `as_preferences`.
    """
    values = as_preferences(preferences)
    swapped = 1.0 - values.T
    if calibrated:
        mean_of_orders: Floats = (values + swapped) / 2
        return mean_of_orders
    upper = np.triu(np.where(np.isnan(values), swapped, values), 1)
    probabilities = upper + np.tril(1.0 - upper.T, -1)
    np.fill_diagonal(probabilities, np.nan)
    return probabilities


def average_answered_orders(preferences: ArrayLike) -> Floats:
    """The mean of both orders of each pair, or the answer to one if the other has none; nan where neither has one.

    Raises:
        ValueError: as `as_preferences`.
    """
    mean_of_orders = pair_probabilities(preferences, calibrated=True)
    return np.where(np.isnan(mean_of_orders), pair_probabilities(preferences), mean_of_orders)


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
        calibrated: whether both orders are averaged first; then each unordered pair counts once, if both were answered.

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
    judge, truth = pair_probabilities(preferences, calibrated), average_answered_orders(people)
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


class JudgeAnswers(NamedTuple):
    """One judge's answers on one set of N items.

    Attributes:
        preferences, negated: shape (N, N).
        asked: shape (2, N, N): whether the standard, and the negated, question was asked.
        samples: shape (questions, repeats), answers to the questions that were asked repeatedly.
        human_preferences: shape (N, N), human preference for each pair; nan where unknown.
        set_name: the same for answers on one set in several wordings; empty for a set with one wording.
    """

    preferences: Floats
    negated: Floats
    asked: Bools
    samples: Floats
    human_preferences: Floats
    set_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicEstimate(AveragedEstimate):
    """A share of the decided cases of item sets, such as pairs, questions or subsets of items."""

    sets: int
    """Item sets with a decided case."""
    lost: int
    """Cases that were asked about, but that lack an answer."""
    ties: int
    """Answered cases with a tie, which is neither agreement nor violation: they are left out."""
    coverage: float | None
    """Share of the answered cases that are decided, averaged as the value is; null without an answered case."""


def estimate_commutativity(sets: Sequence[JudgeAnswers], averaged: Averaging) -> LogicEstimate:
    """Share of pairs, of those decided in both orders, whose decision is the same in both orders."""
    return _estimate_both_orders(commutativity, sets, averaged)


def estimate_position_consistency(sets: Sequence[JudgeAnswers], averaged: Averaging) -> LogicEstimate:
    """Share of pairs, of those answered in both orders, whose answer is the same; a tie is an answer."""
    return _estimate_both_orders(position_consistency, sets, averaged)


def _estimate_both_orders(
    count: Callable[[Floats], CaseCounts], sets: Sequence[JudgeAnswers], averaged: Averaging
) -> LogicEstimate:
    """Estimate a share of the pairs that were asked about in both orders."""
    counts = []
    for answers in sets:
        asked = answers.asked[0] & answers.asked[0].T
        counts.append(_with_lost(count(np.where(asked, answers.preferences, np.nan)), int(np.triu(asked, 1).sum())))
    reason = _explain_one_order([answers.asked[0] for answers in sets])
    return estimate_over_sets(counts, name_sets(sets), averaged, empty_reason=reason)


def _explain_one_order(asked: Sequence[Bools]) -> str | None:
    """Why sets have no figure of both orders; None if a pair was asked about in both orders, or none was asked about.

    Args:
        asked: for each set, shape (N, N), the questions that were asked.
    """
    has_both_orders = any(np.triu(entry & entry.T, 1).any() for entry in asked)
    return ONE_ORDER_REASON if any(entry.any() for entry in asked) and not has_both_orders else None


def estimate_negation_invariance(
    sets: Sequence[JudgeAnswers], averaged: Averaging, calibrated: bool = False
) -> LogicEstimate:
    """Share of questions whose negated form is answered with the other item; calibrated, of unordered pairs."""
    counts, asked = [], []
    for answers in sets:
        both_forms = answers.asked[0] & answers.asked[1] & ~np.eye(answers.asked.shape[1], dtype=bool)
        n_asked = int(np.triu(both_forms & both_forms.T, 1).sum()) if calibrated else int(both_forms.sum())
        counts.append(_with_lost(negation_invariance(answers.preferences, answers.negated, calibrated), n_asked))
        asked.append(both_forms)
    reason = _explain_one_order(asked) if calibrated else None
    return estimate_over_sets(counts, name_sets(sets), averaged, empty_reason=reason)


def estimate_self_agreement(sets: Sequence[JudgeAnswers], averaged: Averaging) -> LogicEstimate:
    """Mean share of repeated decisions that agree with the most frequent one."""
    repeated = [answers for answers in sets if answers.samples.size]
    return estimate_over_sets([self_agreement(answers.samples) for answers in repeated], name_sets(repeated), averaged)


ONE_ORDER_REASON = "no pair was asked about in both orders"
NO_LABELS_REASON = "people's scores or labels are missing"
NO_PREFERENCE_REASON = "people have no preference on the pairs that were asked about"


def estimate_human_agreement(
    sets: Sequence[JudgeAnswers], averaged: Averaging, calibrated: bool = False
) -> LogicEstimate:
    """Share of the questions with a human preference that the judge decides the same way.

    Calibrated, each pair that was asked about in both orders counts once, by their mean.
    """
    counts = [_count_human_agreement(answers, calibrated) for answers in sets]
    is_labelled = any(not np.isnan(answers.human_preferences).all() for answers in sets)
    is_asked = any(answers.asked[0].any() for answers in sets)
    is_decided_by_people = any(entry.n or entry.ties or entry.lost for entry in counts)
    reason = NO_PREFERENCE_REASON if is_asked and not is_decided_by_people else None
    if calibrated:
        reason = _explain_one_order([answers.asked[0] for answers in sets]) or reason
    reason = reason if is_labelled else NO_LABELS_REASON
    return estimate_over_sets(counts, name_sets(sets), averaged, empty_reason=reason)


def estimate_first_position(sets: Sequence[JudgeAnswers], averaged: Averaging) -> LogicEstimate:
    """Share of decisions for the item shown first, over pairs answered in both orders; 1/2 without position bias.

    Pairs answered in one order only are left out: the better item may have been shown first.
    """
    counts = []
    for answers in sets:
        values = np.stack([answers.preferences, answers.negated])
        answered = answers.asked & ~np.isnan(values) & ~np.eye(values.shape[1], dtype=bool)
        both_orders = answered & answered.swapaxes(1, 2)
        decided = decisions(values)[both_orders]
        pairs = np.argwhere(both_orders)[:, 1:]
        counts.append(
            count_cases(decided == 1, np.ones(len(decided), dtype=bool), decided != 0, pairs, values.shape[1])
        )
    return estimate_over_sets(
        counts, name_sets(sets), averaged, empty_reason="no decision on a pair that was answered in both orders"
    )


def _count_human_agreement(answers_on_set: JudgeAnswers, calibrated: bool) -> CaseCounts:
    """Counts of one set's questions, or pairs where calibrated, with a human preference."""
    asked = answers_on_set.asked[0]
    if calibrated:
        people = np.where(asked & asked.T, answers_on_set.human_preferences, np.nan)
        return human_agreement(answers_on_set.preferences, people, calibrated)
    people_decisions = decisions(average_answered_orders(answers_on_set.human_preferences))
    counted = asked & (np.abs(people_decisions) == 1)
    judge_decisions = decisions(answers_on_set.preferences)[counted]
    return count_cases(
        judge_decisions == people_decisions[counted],
        ~np.isnan(judge_decisions),
        judge_decisions != 0,
        np.argwhere(counted),
        len(asked),
    )


def _with_lost(counts: CaseCounts, n_asked: int) -> CaseCounts:
    """The counts of one set, with the number of cases that were asked about, but not answered."""
    return replace(counts, lost=max(0, n_asked - counts.n - counts.ties))


def estimate_over_sets(
    counts: Sequence[CaseCounts], names: Sequence[str], averaged: Averaging, *, empty_reason: str | None = None
) -> LogicEstimate:
    """Estimate a share over sets, with an interval over other sets, or over other items for fewer than five sets.

    Args:
        counts, names: one entry per set and wording; wordings of one set have the same name.
        averaged: over sets, or pooled.
        empty_reason: the reason given where no case is decided, if it is a special one.
    """
    n_lost, n_ties = sum(entry.lost for entry in counts), sum(entry.ties for entry in counts)
    measured = [(entry, name) for entry, name in zip(counts, names, strict=True) if entry.n]
    measured_counts, measured_names = [entry for entry, _ in measured], [name for _, name in measured]
    if empty_reason is None:
        unanswered_reason = "no case has all the answers that it needs" if n_lost else "not asked"
        empty_reason = "every answered case has a tie" if n_ties else unanswered_reason
    share = averaged_share(
        [entry.hits for entry in measured_counts],
        [entry.n for entry in measured_counts],
        {"set": measured_names},
        averaged,
        empty_reason=empty_reason,
    )
    low, high, reason, resampled = share.ci_low, share.ci_high, share.reason, share.resampled
    n_sets = len(set(measured_names))
    if 0 < n_sets < MIN_UNITS:
        over_items = share_over_items(measured_counts, measured_names, averaged)
        if over_items.reason is None:
            low, high, resampled = over_items.ci_low, over_items.ci_high, over_items.resampled
            reason = f"{reason}: the interval is over other items of {'this set' if n_sets == 1 else 'these sets'}"
        else:
            reason = f"{reason}; {over_items.reason}"
    return LogicEstimate(
        value=share.value,
        n=share.n,
        ci_low=low,
        ci_high=high,
        reason=reason,
        resampled=resampled,
        averaged=averaged,
        sets=n_sets,
        lost=n_lost,
        ties=n_ties,
        coverage=_average_coverage(counts, names, averaged),
    )


def _average_coverage(counts: Sequence[CaseCounts], names: Sequence[str], averaged: Averaging) -> float | None:
    """Share of the answered cases that are decided; None without an answered case."""
    decided, answered = [entry.n for entry in counts], [entry.n + entry.ties for entry in counts]
    if not sum(answered):
        return None
    if averaged == "pooled":
        return sum(decided) / sum(answered)
    return float(instance_values(decided, answered, names).mean())


def name_sets(sets: Sequence[JudgeAnswers]) -> list[str]:
    """Names of the sets; a set without one gets a unique name from its position."""
    return [answers.set_name or f"set {i} without a name" for i, answers in enumerate(sets)]
