"""What a ranking makes of a judge's agreement with people: before and after, on the same questions (REPAIR)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.metrics.judge_bias import Leaning, difference_of_paired_shares
from auditor.metrics.logic import MIN_SETS, Answered, Bools, Figure, Floats, human_agreement_over
from auditor.metrics.preference import one_answer_a_pair

REPLICATES = 2000
_TIE = 1e-9


class Mending(NamedTuple):
    """Agreement with people by the answers as given, and by what follows from the ranking; question by question.

    Attributes:
        gain: after - before, over other sets from five on, else with Newcombe's interval for pairs of answers, which
            takes questions for independent.
        left_out: questions that people decide and the judge answered, but that the answer or the ranking leaves tied.
    """

    before: Figure
    after: Figure
    gain: Leaning
    left_out: int


def mending(given: Sequence[Answered], follows: Sequence[Floats], seed: int = 0) -> Mending:
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
    for one, then in zip(given, follows, strict=True):
        truth = one_answer_a_pair(one.people, calibrated=True)
        known = one.asked[0] & _decided(truth) & ~np.isnan(one.preferences)
        shared = known & _decided(one.preferences) & _decided(then)
        left_out += int(known.sum() - shared.sum())
        right = [((values > 0.5) == (truth > 0.5))[shared] for values in (one.preferences, then)]
        tallies.append(np.bincount(2 * right[1] + right[0], minlength=4))
        masked.append((_on(one, one.preferences, shared), _on(one, then, shared)))
    before, after = (human_agreement_over([pair[side] for pair in masked], seed) for side in (0, 1))
    return Mending(before, after, _gain(np.array(tallies).reshape(-1, 4), seed), left_out)


def _gain(tallies: np.ndarray[tuple[int, ...], np.dtype[np.intp]], seed: int) -> Leaning:
    """By set the questions that are right in neither, before only, after only and both, shape (sets, 4)."""
    neither, only_before, only_after, both = tallies.sum(axis=0).tolist()
    found = difference_of_paired_shares(both, only_after, only_before, neither)
    used = tallies[tallies.sum(axis=1) > 0]
    if len(used) < MIN_SETS or not only_before + only_after:
        return found
    drawn = np.random.default_rng(seed).integers(0, len(used), (REPLICATES, len(used)))
    totals = used[drawn].sum(axis=1)
    low, high = np.quantile((totals[:, 2] - totals[:, 1]) / totals.sum(axis=1), [0.025, 0.975])
    return Leaning(found.value, found.n, found.n, float(low), float(high))


def _decided(values: Floats) -> Bools:
    return np.asarray(np.abs(values - 0.5) > _TIE)  # nan is not


def _on(given: Answered, values: Floats, mask: Bools) -> Answered:
    return given._replace(preferences=np.where(mask, values, np.nan), asked=np.stack([mask, mask]))
