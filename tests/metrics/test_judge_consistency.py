"""What a judge's comparisons are worth as the weight of its vote."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.judge_consistency import ConsistencyMeasures, consistency_weights, measure_consistency
from auditor.metrics.logic import JudgeAnswers

N = 10
ORDER = np.arange(N)
TRUTH = (ORDER[:, None] > ORDER[None, :]).astype(float)
ASKED = np.ones((2, N, N), dtype=bool)
NONE = np.empty((0, 0))


def measured(preferences: np.ndarray, negated: np.ndarray | None = None) -> ConsistencyMeasures:
    one = JudgeAnswers(preferences, 1 - preferences if negated is None else negated, ASKED, NONE, TRUTH)
    return measure_consistency([one], 3, 1000, 0)


def test_a_judge_that_fails_to_answer_has_no_weight() -> None:
    once = np.full((N, N), np.nan)
    once[3, 2] = 1.0
    most = TRUTH.copy()
    most[0, 1:] = np.nan  # 81 of 90
    weights = consistency_weights({"good": measured(TRUTH), "mute": measured(once), "most": measured(most)})
    assert weights["mute"] == (None, 0.0, "it answered 1 of 90 questions")
    assert weights["good"] == weights["most"] == (1.0, 1.0, None)


def test_a_form_that_is_not_answered_counts() -> None:
    deaf = measured(TRUTH, np.full((N, N), np.nan))
    assert (deaf.answered, deaf.questions) == (0, 90)
    assert consistency_weights({"deaf": deaf})["deaf"].weight == 0


def test_judges_are_compared_by_what_all_of_them_have() -> None:
    repeated, plain = (
        ConsistencyMeasures(0.6, 0.8, None, 1.0, 90, 90),
        ConsistencyMeasures(0.7, 0.8, None, None, 90, 90),
    )
    mute = ConsistencyMeasures(1.0, None, None, None, 1, 90)  # takes no figure away from the others
    weights = consistency_weights({"repeated": repeated, "plain": plain, "mute": mute}, bench_below=0.72)
    assert weights["repeated"].value == pytest.approx(0.7)
    assert weights["repeated"].reason == "its consistency is below 0.72"
    assert weights["plain"] == pytest.approx((0.75, 0.75, None))
    separate_weights = consistency_weights(
        {"a": ConsistencyMeasures(1.0, None, None, None, 9, 9), "b": ConsistencyMeasures(None, 1.0, None, None, 9, 9)}
    )
    assert {w.reason for w in separate_weights.values()} == {"the judges have no figure in common"}
    assert (
        consistency_weights({"none": ConsistencyMeasures(None, None, None, None, 0, 0)})["none"].reason
        == "it compared nothing"
    )
