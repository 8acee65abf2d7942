"""Stratified samples: allocation, extension, order, and equal chances within a stratum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from auditor.metrics.labels.label_plan import allocate_sample, draw_stratified_sample

SIZES = st.lists(st.integers(1, 400), min_size=1, max_size=12)


def test_the_allocation_is_proportional() -> None:
    assert allocate_sample([600, 300, 100], 100, min_per_stratum=0).tolist() == [60, 30, 10]


def test_small_strata_get_the_minimum_or_all_they_have() -> None:
    assert allocate_sample([900, 90, 4], 100).tolist() == [86, 10, 4]


def test_the_minimum_of_many_strata_may_exceed_the_sample() -> None:
    assert allocate_sample([50] * 8, 20).tolist() == [10] * 8


def test_a_sample_cannot_exceed_the_population() -> None:
    assert allocate_sample([5, 30], 1000).tolist() == [5, 30]


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        allocate_sample([5, 30], -1)


@given(SIZES, st.integers(0, 800))
def test_a_larger_sample_takes_nothing_from_a_stratum(sizes: list[int], n: int) -> None:
    smaller, larger = allocate_sample(sizes, n), allocate_sample(sizes, n + 1)
    assert (larger >= smaller).all()
    assert larger.sum() - smaller.sum() <= 1
    assert (smaller <= sizes).all()
    assert smaller.sum() == min(max(n, int(np.minimum(sizes, 10).sum())), sum(sizes))


@given(SIZES, st.integers(0, 300), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_a_sample_drawn_in_two_steps_is_the_sample_drawn_at_once(
    sizes: list[int], n: int, more: int, seed: int
) -> None:
    strata = np.repeat(np.arange(len(sizes)), sizes)
    numbers = np.random.default_rng(seed).random(len(strata))
    first = draw_stratified_sample(strata, numbers, n)
    added = draw_stratified_sample(strata, numbers, n + more, drawn=first.tolist())
    assert not set(first) & set(added)
    assert {*first, *added} == set(draw_stratified_sample(strata, numbers, n + more))


def test_each_stratum_is_labelled_in_the_order_of_its_random_numbers() -> None:
    rng = np.random.default_rng(1)
    strata, numbers = rng.integers(0, 4, 500), rng.random(500)
    order = draw_stratified_sample(strata, numbers, 200)
    for stratum in range(4):
        in_stratum = numbers[order[strata[order] == stratum]]
        assert (np.diff(in_stratum) > 0).all()
        assert in_stratum.max() < np.sort(numbers[strata == stratum])[len(in_stratum)]


def test_the_first_labels_are_spread_over_the_strata() -> None:
    rng = np.random.default_rng(2)
    strata = np.repeat([0, 1, 2], [600, 300, 100])
    order = draw_stratified_sample(strata, rng.random(1000), 200)
    counts = np.bincount(strata[order[:50]], minlength=3)
    assert np.abs(counts - [30, 15, 5]).max() <= 2


def test_units_of_a_stratum_have_equal_chances() -> None:
    rng = np.random.default_rng(3)
    strata = np.repeat([0, 1], [60, 20])
    n_drawn = np.zeros(80)
    for _ in range(4000):
        n_drawn[draw_stratified_sample(strata, rng.random(80), 24, min_per_stratum=4)] += 1
    share = n_drawn / 4000
    assert np.abs(share - 0.3).max() < 0.03  # 4 standard errors of .0072


def test_shapes_and_ranges_are_checked() -> None:
    with pytest.raises(ValueError, match="same shape"):
        draw_stratified_sample([0, 0], [0.5], 1)
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        draw_stratified_sample([0, 0], [0.5, 1.0], 1)
