"""What a ranking makes of a judge's agreement with people: before and after, on the same questions (REPAIR)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.metrics.judge_bias import BiasEstimate, difference_of_paired_shares
from auditor.metrics.logic import MIN_SETS, Bools, Floats, JudgeAnswers, LogicShare, pooled_human_agreement
from auditor.metrics.preference import pair_probabilities

REPLICATES = 2000
_TIE_TOLERANCE = 1e-9


class RepairEffect(NamedTuple):
    """Agreement with people by the answers as given, and by what follows from the ranking; question by question.

    Attributes:
        gain: after - before, over other sets from five on, else with Newcombe's interval for pairs of answers, which
            takes questions for independent.
        left_out: questions that people decide and the judge answered, but that the answer or the ranking leaves tied.
    """

    before: LogicShare
    after: LogicShare
    gain: BiasEstimate
    n_tied: int


def measure_repair_effect(
    original_answers: Sequence[JudgeAnswers], repaired_preferences: Sequence[Floats], seed: int = 0
) -> RepairEffect:
    """Compare answers with what follows from their ranking, on the questions that people and both of them decide.

    A tie is neither right nor wrong, and a ranking has fewer: were ties misses, or left out on one side only, a judge
    that draws lots would seem to gain by being ranked.

    Args:
        given: one judge's answers on some sets.
        follows: for each of these sets, shape (N, N), what its ranking says; nan where nothing follows.

    Raises:
        ValueError: as `auditor.metrics.preference.as_preferences`.
    """
    tallies, masked = [], []
    left_out = 0
    for one, then in zip(original_answers, repaired_preferences, strict=True):
        truth = pair_probabilities(one.human_preferences, calibrated=True)
        known = one.asked[0] & _decided_mask(truth) & ~np.isnan(one.preferences)
        shared = known & _decided_mask(one.preferences) & _decided_mask(then)
        left_out += int(known.sum() - shared.sum())
        right = [((values > 0.5) == (truth > 0.5))[shared] for values in (one.preferences, then)]
        tallies.append(np.bincount(2 * right[1] + right[0], minlength=4))
        masked.append((_restrict_answers(one, one.preferences, shared), _restrict_answers(one, then, shared)))
    before, after = (pooled_human_agreement([pair[side] for pair in masked], seed) for side in (0, 1))
    return RepairEffect(before, after, _estimate_gain(np.array(tallies).reshape(-1, 4), seed), left_out)


def _estimate_gain(outcome_counts: np.ndarray[tuple[int, ...], np.dtype[np.intp]], seed: int) -> BiasEstimate:
    """By set the questions that are right in neither, before only, after only and both, shape (sets, 4)."""
    neither, only_before, only_after, both = outcome_counts.sum(axis=0).tolist()
    found = difference_of_paired_shares(both, only_after, only_before, neither)
    used = outcome_counts[outcome_counts.sum(axis=1) > 0]
    if len(used) < MIN_SETS or not only_before + only_after:
        return found
    drawn = np.random.default_rng(seed).integers(0, len(used), (REPLICATES, len(used)))
    totals = used[drawn].sum(axis=1)
    low, high = np.quantile((totals[:, 2] - totals[:, 1]) / totals.sum(axis=1), [0.025, 0.975])
    return BiasEstimate(found.value, found.n, found.n, float(low), float(high))


def _decided_mask(preferences: Floats) -> Bools:
    return np.asarray(np.abs(preferences - 0.5) > _TIE_TOLERANCE)  # nan is not


def _restrict_answers(answers: JudgeAnswers, preferences: Floats, mask: Bools) -> JudgeAnswers:
    return answers._replace(preferences=np.where(mask, preferences, np.nan), asked=np.stack([mask, mask]))
