"""Effect of the repair by ranking (REPAIR) on a judge's agreement with people, on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife_interval import estimate_from_replicates
from auditor.metrics.logic import Bools, Floats, JudgeAnswers, LogicEstimate, estimate_human_agreement, name_sets
from auditor.metrics.preference import decisions, pair_probabilities
from auditor.metrics.unit_replicates import replicate_over_units


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
        ValueError: as `auditor.metrics.preference.as_preferences`.
    """
    gains, restricted_pairs = [], []
    n_tied = 0
    for answers, repaired in zip(original_answers, repaired_preferences, strict=True):
        truth = pair_probabilities(answers.human_preferences, calibrated=True)
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
