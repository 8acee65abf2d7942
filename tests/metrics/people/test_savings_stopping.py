"""When to stop asking: by hand, at the edges, and how even any first part of the order is."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.people.savings import (
    FIRST_INTERIM_LOOK,
    is_narrow,
    is_settled,
    next_interim_look,
    stratified_order,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("scores", "tolerance", "settled"),
    [
        ([], 1.0, False),
        ([0.5], 1.0, False),
        ([0.5, NAN], 1.0, False),
        ([0.5, 0.5], 0.001, True),
        ([0.0, 0.2], 0.1, True),  # s = 0.1414, s / sqrt(2) = 0.1
        ([0.0, 0.2], 0.099, False),
        ([0.0, 0.2, NAN, 0.1], 0.0578, True),  # 0.1 / sqrt(3)
        ([0.0, 0.2, NAN, 0.1], 0.0577, False),
    ],
)
def test_a_cell_is_settled_by_the_error_of_its_mean(scores: list[float], tolerance: float, settled: bool) -> None:
    assert is_settled(scores, tolerance) is settled


def test_intervals_are_narrow_when_the_widest_is() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=100)
    near, far = truth + 0.3 * rng.normal(size=100), truth + 2 * rng.normal(size=100)
    r = pearson(far, truth)
    assert r.ci_low is not None
    assert r.ci_high is not None
    width = r.ci_high - r.ci_low
    assert is_narrow([near, far], truth, width)
    assert not is_narrow([near, far], truth, width - 1e-9)
    assert is_narrow([near], truth, width - 1e-9)
    assert not is_narrow([near, np.full(100, NAN)], truth, 2)
    assert not is_narrow([], truth, 2)


def test_looks_are_a_fifth_apart_and_end_at_the_last_cell() -> None:
    looks = [next_interim_look(0, 200)]
    while looks[-1] < 200:
        looks.append(next_interim_look(looks[-1], 200))
    assert looks == [FIRST_INTERIM_LOOK, 77, 93, 112, 135, 162, 195, 200]
    assert next_interim_look(0, 10) == next_interim_look(10, 10) == 10


def test_every_first_part_has_its_share_of_each_stratum() -> None:
    strata = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    order = stratified_order(strata, seed=4)
    assert sorted(order) == list(range(100))
    for n in range(1, 101):
        counts = Counter(strata[i] for i in order[:n])
        assert all(abs(counts[s] - n * strata.count(s) / 100) <= 2 for s in "abc")
    assert (stratified_order(strata, seed=4) == order).all()
    assert (stratified_order(strata, seed=5) != order).any()
    assert len(stratified_order([], seed=1)) == 0
