"""Consistency of a judge's comparisons of items: over item sets, or over the items of few sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.items import Averaging
from auditor.metrics.logic.consistency import (
    JudgeAnswers,
    estimate_commutativity,
    estimate_first_position,
    estimate_human_agreement,
    estimate_negation_invariance,
    estimate_self_agreement,
)
from auditor.metrics.logic.transitivity import estimate_transitivity
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.preference_worlds import SET_DESIGNS, SET_WORLDS, Comparisons, SetSample

SUBSET_SIZE = 3


def to_judge_answers(sets: Sequence[Comparisons]) -> list[JudgeAnswers]:
    """The answers on sets as the metrics take them; all questions were asked."""
    return [
        JudgeAnswers(
            answers.preferences,
            answers.negated,
            np.ones((2, *answers.preferences.shape), dtype=np.bool_),
            answers.samples,
            answers.people,
            f"set {i}",
        )
        for i, answers in enumerate(sets)
    ]


@lru_cache(maxsize=1)
def _answers(sample: SetSample) -> tuple[JudgeAnswers, ...]:
    return tuple(to_judge_answers(sample.sets))


def _estimate_transitivity(sets: Sequence[JudgeAnswers], averaged: Averaging) -> Estimate:
    return estimate_transitivity(sets, SUBSET_SIZE, max_subsets=200).complete[averaged]


ESTIMATES: dict[str, Callable[[Sequence[JudgeAnswers], Averaging], Estimate]] = {
    "commutativity": estimate_commutativity,
    "negation invariance": estimate_negation_invariance,
    "human agreement": estimate_human_agreement,
    "self-agreement": estimate_self_agreement,
    "transitivity": _estimate_transitivity,
    "first position": estimate_first_position,
}


def _figure(key: str, averaged: Averaging) -> Figure:
    """The figure of one measure; intervals take pairs for independent in the negative control."""
    estimate = ESTIMATES[key]

    def compute(sample: SetSample) -> Interval:
        return to_interval(estimate(_answers(sample), averaged))

    def compute_naive(sample: SetSample) -> Interval:
        pooled = estimate(_answers(sample), "pooled")
        return naive.wilson_interval((pooled.value or 0.0) * pooled.n, float(pooled.n))

    if averaged == "instances":
        return Figure(f"{key}, mean over sets", compute)
    if key in ("self-agreement", "first position"):
        # Wilson's interval is too wide for these: a majority's share, and two orders of one pair, vary less.
        return Figure(key, compute)
    return Figure(key, compute, compute_naive, "Wilson's, over pairs or questions")


SET_FIGURES = (
    *(_figure(key, "pooled") for key in ESTIMATES),
    *(_figure(key, "instances") for key in ESTIMATES if key != "first position"),
)

SET_STUDY = Study("item sets", __name__, SET_FIGURES, SET_WORLDS, SET_DESIGNS, n_unit_kinds=1)
