"""One figure of consistency for each judge of a panel, by its comparisons, and the weight of its vote by it."""

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
"""Of the questions put in either form: the few answers of a judge that mostly fails are no measure of it."""


class ConsistencyMeasures(NamedTuple):
    """How consistent one judge is, in [0, 1] each; None where it was not measured.

    Attributes:
        answered, questions: of the form of the question, plain or negated, that it answered the smaller share of.
    """

    transitivity: float | None
    commutativity: float | None
    negation: float | None
    self_agreement: float | None
    answered: int
    questions: int

    @property
    def measures(self) -> tuple[float | None, ...]:
        return self[:4]


class VoteWeight(NamedTuple):
    """What a judge's vote weighs by its consistency.

    Attributes:
        value: mean of the figures that all judges have which answered enough; None for one that did not.
        weight: the value, or 0 where the judge is benched.
        reason: why it is benched; None where it is not.
    """

    value: float | None
    weight: float
    reason: str | None


def measure_consistency(sets: Sequence[JudgeAnswers], k: int, max_subsets: int, seed: int) -> ConsistencyMeasures:
    """One judge's figures over all its sets (see `auditor.metrics.logic`)."""
    forms = [_count_answered(sets, form) for form in (0, 1)]
    least = min((form for form in forms if form[1]), key=lambda form: form[0] / form[1], default=(0, 0))
    return ConsistencyMeasures(
        pooled_transitivity(sets, k, max_subsets, seed).value,
        pooled_commutativity(sets, seed).value,
        pooled_negation_invariance(sets, seed).value,
        pooled_self_agreement(sets, seed).value,
        *least,
    )


def _count_answered(sets: Sequence[JudgeAnswers], form: int) -> tuple[int, int]:
    answered = questions = 0
    for one in sets:
        asked = one.asked[form] & ~np.eye(len(one.human_preferences), dtype=bool)
        answered += int((asked & ~np.isnan((one.preferences, one.negated)[form])).sum())
        questions += int(asked.sum())
    return answered, questions


def consistency_weights(judges: Mapping[str, ConsistencyMeasures], bench_below: float = 0.0) -> dict[str, VoteWeight]:
    """Weights of the votes of a panel.

    Judges are set side by side by the same figures: one that was not asked to repeat itself must not be compared by
    three figures with others' four.

    Args:
        judges: by name.
        bench_below: least consistency of a judge that has a vote, in [0, 1].
    """
    refused = {name: _exclusion_reason(found) for name, found in judges.items()}
    able = [found.measures for name, found in judges.items() if refused[name] is None]
    shared = [i for i in range(4) if able and all(figures[i] is not None for figures in able)]
    return {
        name: VoteWeight(None, 0.0, reason) if reason else _vote_weight(judges[name], shared, bench_below)
        for name, reason in refused.items()
    }


def _exclusion_reason(consistency: ConsistencyMeasures) -> str | None:
    if not consistency.questions:
        return "it compared nothing"
    if consistency.answered < MIN_ANSWERED_SHARE * consistency.questions:
        return f"it answered {consistency.answered} of {consistency.questions} questions"
    return "none of its answers can be compared" if set(consistency.measures) == {None} else None


def _vote_weight(consistency: ConsistencyMeasures, shared_measures: Sequence[int], bench_below: float) -> VoteWeight:
    known = [value for i in shared_measures if (value := consistency.measures[i]) is not None]
    if not known:
        return VoteWeight(None, 0.0, "the judges have no figure in common")
    value = sum(known) / len(known)
    if value < bench_below:
        return VoteWeight(value, 0.0, f"its consistency is below {bench_below:g}")
    return VoteWeight(value, value, None if value else "it is consistent in nothing")
