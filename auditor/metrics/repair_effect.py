"""Effect of the repair by ranking (REPAIR) on a judge's agreement with people, on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.metrics.logic import MIN_SETS, Bools, Floats, JudgeAnswers, LogicShare, pooled_human_agreement
from auditor.metrics.preference import pair_probabilities
from auditor.metrics.share_difference import ShareDifference, difference_of_paired_shares

REPLICATES = 2000
_TIE_TOLERANCE = 1e-9


class RepairEffect(NamedTuple):
    """Agreement with people of the original answers, and of those implied by the ranking, question by question.

    Attributes:
        gain: after - before; over other sets if there are at least five, else with Newcombe's interval for paired
            answers, which assumes independent questions.
        n_tied: questions with a human preference that the judge answered, but that its answer or the ranking leaves
            tied.
    """

    before: LogicShare
    after: LogicShare
    gain: ShareDifference
    n_tied: int


def measure_repair_effect(
    original_answers: Sequence[JudgeAnswers], repaired_preferences: Sequence[Floats], seed: int = 0
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
    outcome_counts, restricted_pairs = [], []
    n_tied = 0
    for answers, repaired in zip(original_answers, repaired_preferences, strict=True):
        truth = pair_probabilities(answers.human_preferences, calibrated=True)
        is_answered = answers.asked[0] & _decided_mask(truth) & ~np.isnan(answers.preferences)
        is_decided = is_answered & _decided_mask(answers.preferences) & _decided_mask(repaired)
        n_tied += int(is_answered.sum() - is_decided.sum())
        is_correct = [
            ((preferences > 0.5) == (truth > 0.5))[is_decided] for preferences in (answers.preferences, repaired)
        ]
        # Questions right in neither (0), before only (1), after only (2) and both (3).
        outcome_counts.append(np.bincount(2 * is_correct[1] + is_correct[0], minlength=4))
        restricted_pairs.append(
            (
                _restrict_answers(answers, answers.preferences, is_decided),
                _restrict_answers(answers, repaired, is_decided),
            )
        )
    before, after = (pooled_human_agreement([pair[side] for pair in restricted_pairs], seed) for side in (0, 1))
    return RepairEffect(before, after, _estimate_gain(np.array(outcome_counts).reshape(-1, 4), seed), n_tied)


def _estimate_gain(outcome_counts: np.ndarray[tuple[int, ...], np.dtype[np.intp]], seed: int) -> ShareDifference:
    """The gain in agreement, with an interval over sets, or Newcombe's for fewer than `MIN_SETS` sets.

    Args:
        outcome_counts: shape (sets, 4), questions right in neither, before only, after only and both.
    """
    neither, only_before, only_after, both = outcome_counts.sum(axis=0).tolist()
    paired_gain = difference_of_paired_shares(both, only_after, only_before, neither)
    nonempty_counts = outcome_counts[outcome_counts.sum(axis=1) > 0]
    if len(nonempty_counts) < MIN_SETS or not only_before + only_after:
        return paired_gain
    resampled_sets = np.random.default_rng(seed).integers(0, len(nonempty_counts), (REPLICATES, len(nonempty_counts)))
    totals = nonempty_counts[resampled_sets].sum(axis=1)
    low, high = np.quantile((totals[:, 2] - totals[:, 1]) / totals.sum(axis=1), [0.025, 0.975])
    return ShareDifference(paired_gain.value, paired_gain.n, paired_gain.n, float(low), float(high))


def _decided_mask(preferences: Floats) -> Bools:
    """Which preferences are not ties; False for nan."""
    return np.asarray(np.abs(preferences - 0.5) > _TIE_TOLERANCE)  # False for nan


def _restrict_answers(answers: JudgeAnswers, preferences: Floats, mask: Bools) -> JudgeAnswers:
    """The answers with other preferences, as if only the questions of the mask had been asked."""
    return answers._replace(preferences=np.where(mask, preferences, np.nan), asked=np.stack([mask, mask]))
