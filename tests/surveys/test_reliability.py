"""Split halves of respondents with a known share of true differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from auditor.surveys.answer_codes import ANSWERED
from auditor.surveys.microdata import Microdata
from auditor.surveys.reliability import Floats, compute_half_scores, compute_reliability
from tests.support.known import known


def microdata(answers: Floats, countries: int, weight: Floats | None = None) -> Microdata:
    rows, topics = answers.shape
    return Microdata(
        countries=tuple(f"c{i}" for i in range(countries)), topics=tuple(f"t{i}" for i in range(topics)),
        country_offsets=np.linspace(0, rows, countries + 1).astype(np.int64),
        weights=np.ones(rows) if weight is None else weight, answers=answers,
        kind_index=np.where(np.isnan(answers), 0, ANSWERED).astype(np.int8), kinds=("missing",), kind_was_asked=(True,),
        excluded_rows={},
    )  # fmt: skip


def simulated(seed: int, n: int, spread: float, noise: float = 1.0, topic_spread: float = 0.0) -> Microdata:
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, spread, (60, 1, 20)) + rng.normal(0, topic_spread, (1, 1, 20))
    return microdata((truth + rng.normal(0, noise, (60, n, 20))).reshape(60 * n, 20), 60)


@pytest.mark.parametrize(("n", "spread"), [(20, 0.2), (50, 0.1), (100, 0.3)])
def test_reliability_is_the_share_of_true_variance(n: int, spread: float) -> None:
    reliability = compute_reliability(compute_half_scores(simulated(1, n, spread), n_splits=30))
    expected = spread**2 / (spread**2 + 1 / n)
    assert reliability.reliability == pytest.approx(expected, abs=0.03)
    assert reliability.ceiling == pytest.approx(math.sqrt(expected), abs=0.02)
    assert reliability.n == 1200
    assert known(reliability.low) <= expected + 0.03
    assert expected - 0.03 <= known(reliability.high)


def test_spearman_brown_by_hand() -> None:
    # x = 1, 0, -1 and y = 1, -1, 0: r = (1 + 0 + 0) / 2 = 1/2, so that 2 * (1/2) / (3/2) = 2/3.
    halves = np.array([[[[1.0, 0, -1]], [[1.0, -1, 0]]]] * 2)
    reliability = compute_reliability(halves)
    assert reliability.half_r == pytest.approx(1 / 2)
    assert reliability.reliability == pytest.approx(2 / 3)
    assert reliability.ceiling == pytest.approx(math.sqrt(2 / 3))
    assert (reliability.n, reliability.splits) == (3, 2)


def test_topics_alone_make_the_whole_reliable_but_not_what_lies_within() -> None:
    halves = compute_half_scores(simulated(2, 30, spread=0.0, topic_spread=1.0), n_splits=20)
    overall, within = compute_reliability(halves), compute_reliability(halves, within_topics=True)
    assert known(overall.reliability) > 0.9
    assert within.half_r == pytest.approx(0, abs=0.1)


def test_halves_share_nobody_and_miss_nobody() -> None:
    rng = np.random.default_rng(0)
    # Powers of two as answers: the sum of both halves says who was in them.
    answers = 2.0 ** np.arange(6)[:, None] / 64
    weight = rng.gamma(2, 0.5, 6)
    halves = compute_half_scores(microdata(answers, 1, weight), n_splits=50)
    seen = set()
    for left, right in halves[:, :, 0, 0]:
        members = [
            mask
            for mask in range(1, 63)
            if left == pytest.approx(_mean(mask, answers, weight)) and mask.bit_count() == 3
        ]
        assert len(members) == 1
        assert right == pytest.approx(_mean(63 - members[0], answers, weight))
        seen.add(members[0])
    assert len(seen) > 10


def _mean(mask: int, answers: Floats, weight: Floats) -> float:
    members = [i for i in range(6) if mask >> i & 1]
    return float(weight[members] @ answers[members, 0] / weight[members].sum())


def test_cells_that_were_not_asked_are_left_out() -> None:
    data = simulated(3, 30, 0.3)
    data.answers[:30, 4] = math.nan
    assert compute_reliability(compute_half_scores(data, n_splits=3)).n == 1199


def test_degenerate_surveys_have_a_reason_and_no_number() -> None:
    few = compute_reliability(compute_half_scores(microdata(np.zeros((10, 2)), 1), n_splits=3))
    assert (few.reliability, few.ceiling, few.n) == (None, None, 2)
    assert "fewer than 3" in few.reason
    equal = compute_reliability(
        compute_half_scores(microdata(np.full((40, 2), 0.5), 4), n_splits=3), within_topics=True
    )
    assert equal.reliability is None
    assert "equal" in equal.reason


def test_the_seed_decides() -> None:
    data = simulated(4, 10, 0.3)
    assert compute_reliability(compute_half_scores(data, 1)) == compute_reliability(compute_half_scores(data, 1))
    assert compute_reliability(compute_half_scores(data, 1)) != compute_reliability(compute_half_scores(data, 2))
