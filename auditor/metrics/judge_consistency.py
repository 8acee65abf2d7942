"""Consistency of each judge of a panel, from its comparisons of item pairs, and the vote weight derived from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from auditor.metrics.logic import (
    JudgeAnswers,
    pooled_commutativity,
    pooled_negation_invariance,
    pooled_self_agreement,
    pooled_transitivity,
)

MIN_ANSWERED_SHARE = 0.8
"""Smallest share of questions, of either form, that a judge must answer: few answers do not measure it reliably."""


class ConsistencyMeasures(NamedTuple):
    """Consistency of one judge, each measure in [0, 1]; None where it was not measured.

    Attributes:
        answered, questions: of the form of the question, plain or negated, with the smaller share of answers.
    """

    transitivity: float | None
    commutativity: float | None
    negation: float | None
    self_agreement: float | None
    answered: int
    questions: int

    @property
    def measures(self) -> tuple[float | None, ...]:
        """Transitivity, commutativity, negation invariance and self-agreement."""
        return self[:4]


class VoteWeight(NamedTuple):
    """The weight of a judge's vote, from its consistency.

    Attributes:
        value: mean of the measures that are available for all included judges; None for an excluded judge.
        weight: the value, or 0 for a judge without a vote.
        reason: why the judge has no vote; None where it has one.
    """

    value: float | None
    weight: float
    reason: str | None


def measure_consistency(sets: Sequence[JudgeAnswers], k: int, max_subsets: int, seed: int) -> ConsistencyMeasures:
    """Measure one judge's consistency over all its item sets (see `auditor.metrics.logic`).

    Args:
        sets: the judge's answers.
        k: number of items in each subset that is checked for cycles (transitivity).
        max_subsets: most subsets that are checked per set.
        seed: of the drawn subsets and of the bootstrap.
    """
    counts_by_form = [_count_answered(sets, form) for form in (0, 1)]  # the plain question, and the negated one
    # counts[0] is the number of answered questions, counts[1] that of all.
    worst_counts = min(
        (counts for counts in counts_by_form if counts[1]), key=lambda counts: counts[0] / counts[1], default=(0, 0)
    )
    return ConsistencyMeasures(
        pooled_transitivity(sets, k, max_subsets, seed).value,
        pooled_commutativity(sets, seed).value,
        pooled_negation_invariance(sets, seed).value,
        pooled_self_agreement(sets, seed).value,
        *worst_counts,  # answered, questions
    )


def _count_answered(sets: Sequence[JudgeAnswers], form: int) -> tuple[int, int]:
    """Number of answered questions, and of asked questions, of one form: 0 is the plain form, 1 the negated one."""
    n_answered = n_questions = 0
    for answers in sets:
        asked = answers.asked[form] & ~np.eye(len(answers.human_preferences), dtype=bool)
        n_answered += int((asked & ~np.isnan((answers.preferences, answers.negated)[form])).sum())
        n_questions += int(asked.sum())
    return n_answered, n_questions


def consistency_weights(judges: Mapping[str, ConsistencyMeasures], bench_below: float = 0.0) -> dict[str, VoteWeight]:
    """Compute the vote weight of each judge of a panel, by name.

    All judges are compared on the same measures: one without repeated questions has no self-agreement, so the mean of
    its three measures is not comparable with a mean of four.

    Args:
        judges: measures by name.
        bench_below: smallest consistency of a judge that has a vote, in [0, 1].
    """
    exclusion_reasons = {name: _exclusion_reason(consistency) for name, consistency in judges.items()}
    included_measures = [
        consistency.measures for name, consistency in judges.items() if exclusion_reasons[name] is None
    ]
    # Measures by position: transitivity, commutativity, negation invariance and self-agreement.
    shared_measures = [
        i for i in range(4) if included_measures and all(measures[i] is not None for measures in included_measures)
    ]
    return {
        name: VoteWeight(None, 0.0, reason) if reason else _vote_weight(judges[name], shared_measures, bench_below)
        for name, reason in exclusion_reasons.items()
    }


def _exclusion_reason(consistency: ConsistencyMeasures) -> str | None:
    """Why a judge is excluded: it has too few answers, or none that can be compared; None where it is included."""
    if not consistency.questions:
        return "it compared nothing"
    if consistency.answered < MIN_ANSWERED_SHARE * consistency.questions:
        return f"it answered {consistency.answered} of {consistency.questions} questions"
    return "none of its answers can be compared" if set(consistency.measures) == {None} else None


def _vote_weight(consistency: ConsistencyMeasures, shared_measures: Sequence[int], bench_below: float) -> VoteWeight:
    """The weight of an included judge: the mean of the measures that all judges share, or 0 below `bench_below`.

    Args:
        shared_measures: positions in `ConsistencyMeasures.measures`.
    """
    shared_values = [value for i in shared_measures if (value := consistency.measures[i]) is not None]
    if not shared_values:
        return VoteWeight(None, 0.0, "the judges have no figure in common")
    value = sum(shared_values) / len(shared_values)
    if value < bench_below:
        return VoteWeight(value, 0.0, f"its consistency is below {bench_below:g}")
    return VoteWeight(value, value, None if value else "it is consistent in nothing")
