"""Logical consistency of a judge over item sets: the measures of `auditor.metrics.preference`, with intervals.

Each figure is averaged over sets, as Aligning with Logic (ICML 2025) reports it, or pooled over their cases. From five
sets on, its interval is over other sets, each with all the wordings it was asked in. With fewer, it is over other items
of these sets, which says nothing about other sets (`auditor.metrics.item_interval`).

A tie is neither agreement nor violation: cases with a tie are left out, and the coverage says how many. The paper's
relation is binary, so it has no ties; its Algorithm 1 gives a probability of exactly 1/2 to the item that comes first
in the data, which would make a judge that always ties perfectly transitive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.averaging import AveragedEstimate, Averaging, averaged_share, instance_values
from auditor.metrics.case_counts import CaseCounts
from auditor.metrics.item_interval import share_over_items
from auditor.metrics.jackknife_interval import MIN_UNITS
from auditor.metrics.preference import (
    commutativity,
    count_cases,
    decisions,
    human_agreement,
    negation_invariance,
    pair_probabilities,
    position_consistency,
    self_agreement,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class JudgeAnswers(NamedTuple):
    """One judge's answers on one set of N items (see `auditor.metrics.preference`).

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
    return estimate_over_sets(counts, name_sets(sets), averaged)


def estimate_negation_invariance(
    sets: Sequence[JudgeAnswers], averaged: Averaging, calibrated: bool = False
) -> LogicEstimate:
    """Share of questions whose negated form is answered with the other item; calibrated, of unordered pairs."""
    counts = []
    for answers in sets:
        both_forms = answers.asked[0] & answers.asked[1] & ~np.eye(answers.asked.shape[1], dtype=bool)
        n_asked = int(np.triu(both_forms | both_forms.T, 1).sum()) if calibrated else int(both_forms.sum())
        counts.append(_with_lost(negation_invariance(answers.preferences, answers.negated, calibrated), n_asked))
    return estimate_over_sets(counts, name_sets(sets), averaged)


def estimate_self_agreement(sets: Sequence[JudgeAnswers], averaged: Averaging) -> LogicEstimate:
    """Mean share of repeated decisions that agree with the most frequent one."""
    repeated = [answers for answers in sets if answers.samples.size]
    return estimate_over_sets([self_agreement(answers.samples) for answers in repeated], name_sets(repeated), averaged)


def estimate_human_agreement(
    sets: Sequence[JudgeAnswers], averaged: Averaging, calibrated: bool = False
) -> LogicEstimate:
    """Share of the questions with a human preference that the judge decides the same way.

    Calibrated, each pair counts once, by the mean of both orders.
    """
    counts = [_count_human_agreement(answers, calibrated) for answers in sets]
    is_labelled = any(not np.isnan(answers.human_preferences).all() for answers in sets)
    return estimate_over_sets(
        counts, name_sets(sets), averaged, empty_reason=None if is_labelled else "people's scores or labels are missing"
    )


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
        people = np.where(asked | asked.T, answers_on_set.human_preferences, np.nan)
        return human_agreement(answers_on_set.preferences, people, calibrated)
    people_decisions = decisions(pair_probabilities(answers_on_set.human_preferences, calibrated=True))
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
