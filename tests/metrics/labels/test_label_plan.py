"""Plans of labels: their number, stopping by betting, and stratified samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import t
from statsmodels.stats.power import NormalIndPower

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.labels.label_plan import (
    SequenceInterval,
    allocate_sample,
    draw_stratified_sample,
    half_width_floor,
    labels_for_difference,
    labels_for_half_width,
    stratified_confidence_sequence,
)

NAN = float("nan")
STEPS = (10, 25, 50, 80, 120, 180, 260)
SIZES = st.lists(st.integers(1, 400), min_size=1, max_size=12)


def test_labels_for_a_half_width_reach_it() -> None:
    n = labels_for_half_width(0.05, 0.5)
    assert n == pytest.approx(387, abs=1)
    assert t.ppf(0.975, n - 1) * 0.5 / n**0.5 <= 0.05
    assert t.ppf(0.975, n - 3) * 0.5 / (n - 2) ** 0.5 > 0.05


def test_few_traces_need_fewer_labels() -> None:
    n = labels_for_half_width(0.05, 0.5, 400)
    assert t.ppf(0.975, n - 1) * 0.5 * ((1 - n / 400) / n) ** 0.5 <= 0.05
    assert n < 200
    assert labels_for_half_width(0.0001, 0.5, 400) == 400
    assert labels_for_half_width(0.05, 0.0) == 2


def test_labels_for_a_difference_have_the_power() -> None:
    n = labels_for_difference(0.2, 0.4)
    assert NormalIndPower().power(0.2 / 0.4, n, 0.05) == pytest.approx(0.8, abs=0.01)
    assert labels_for_difference(0.2, 0.4, n_comparisons=19) > 1.7 * n
    rng = np.random.default_rng(0)
    first, second = (rng.normal(mean, 0.4, (4000, n)) for mean in (0.0, 0.2))
    z = (second.mean(axis=1) - first.mean(axis=1)) / (0.4 * (2 / n) ** 0.5)
    assert (np.abs(z) > 1.96).mean() == pytest.approx(0.8, abs=0.03)


def test_the_floor_of_19_topics_is_nearly_five_points() -> None:
    assert half_width_floor({"topic": 0.1}, {"topic": 19}) == pytest.approx(0.0482, abs=1e-4)
    both = half_width_floor({"topic": 0.1, "country": 0.05}, {"topic": 19, "country": 55})
    assert both == pytest.approx(t.ppf(0.975, 18) * (0.01 / 19 + 0.0025 / 55) ** 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: labels_for_half_width(0.0, 0.5), "half_width must be above 0"),
        (lambda: labels_for_difference(0.0, 0.5), "difference must be above 0"),
        (lambda: half_width_floor({"topic": 0.1}, {"country": 19}), "the same kinds of units"),
        (lambda: stratified_confidence_sequence([[1, 0, 1]], [2]), "at most as many labels as units"),
        (lambda: stratified_confidence_sequence([[1, 2]], [5]), "labels must be from 0 to 1"),
        (lambda: allocate_sample([5, 30], -1), "at least 0"),
        (lambda: draw_stratified_sample([0, 0], [0.5], 1), "same shape"),
        (lambda: draw_stratified_sample([0, 0], [0.5, 1.0], 1), r"\[0, 1\)"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def _draw_population(rng: np.random.Generator, sizes: list[int], shares: list[float]) -> list[Floats]:
    """Labels of each stratum in random order."""
    return [(rng.random(size) < share).astype(float) for size, share in zip(sizes, shares, strict=True)]


def _look(population: list[Floats], n: int) -> SequenceInterval:
    """The interval after about n labels, in proportion to the strata."""
    sizes = [len(labels) for labels in population]
    return stratified_confidence_sequence(
        [labels[: max(1, round(n * size / sum(sizes)))] for labels, size in zip(population, sizes, strict=True)], sizes
    )


@pytest.mark.parametrize(("sizes", "shares"), [([400], [0.5]), ([400], [0.97]), ([60, 240, 100], [0.3, 0.9, 0.6])])
def test_the_mean_is_hardly_ever_missed_however_often_one_looks(sizes: list[int], shares: list[float]) -> None:
    rng, n_missed = np.random.default_rng(0), 0
    for _ in range(20):
        population = _draw_population(rng, sizes, shares)
        mean = np.concatenate(population).mean()
        looks = [_look(population, n) for n in STEPS]
        n_missed += any(not look.low - 1e-9 <= mean <= look.high + 1e-9 for look in looks)
    assert n_missed <= 2  # at most 5% in expectation


def test_the_interval_shrinks_to_the_mean() -> None:
    [population] = _draw_population(np.random.default_rng(1), [300], [0.8])
    widths = [stratified_confidence_sequence([population[:n]], [300]).half_width for n in (20, 80, 200, 290)]
    assert widths == sorted(widths, reverse=True)
    assert widths[1] < 0.15
    census = stratified_confidence_sequence([population], [300])
    assert (census.low, census.value, census.high) == pytest.approx([population.mean()] * 3, abs=1e-3)


def test_without_labels_nothing_is_known() -> None:
    empty = stratified_confidence_sequence([[], []], [10, 20])
    assert (empty.value, empty.low, empty.high, empty.n) == (None, 0.0, 1.0, 0)


def test_labels_of_unsure_raters_widen_the_interval_by_both_answers() -> None:
    labels = np.tile([1.0, 1.0, 0.0, 1.0], 25)
    unsure = labels.copy()
    unsure[::10] = NAN
    interval = stratified_confidence_sequence([unsure], [400])
    invalid = stratified_confidence_sequence([np.nan_to_num(unsure, nan=0.0)], [400])
    valid = stratified_confidence_sequence([np.nan_to_num(unsure, nan=1.0)], [400])
    assert (interval.low, interval.high) == (invalid.low, valid.high)
    assert interval.value == pytest.approx(np.nanmean(unsure))
    assert interval.n == 100


@pytest.mark.parametrize(
    ("sizes", "n", "allocation"),
    [([900, 90, 4], 100, [86, 10, 4]), ([50] * 8, 20, [10] * 8), ([5, 30], 1000, [5, 30])],
    ids=["small strata get the minimum or all they have", "the minimum of many strata may exceed the sample",
         "a sample cannot exceed the population"],
)  # fmt: skip
def test_the_allocation_is_proportional_above_the_minimum(sizes: list[int], n: int, allocation: list[int]) -> None:
    assert allocate_sample([600, 300, 100], 100, min_per_stratum=0).tolist() == [60, 30, 10]
    assert allocate_sample(sizes, n).tolist() == allocation


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
