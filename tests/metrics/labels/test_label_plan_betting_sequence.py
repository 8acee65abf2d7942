from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.labels.label_plan import SequenceInterval, stratified_confidence_sequence

NAN = float("nan")
STEPS = (10, 25, 50, 80, 120, 180, 260)


def _draw_population(rng: np.random.Generator, sizes: list[int], shares: list[float]) -> list[Floats]:
    """Labels of each stratum in random order."""
    return [(rng.random(size) < share).astype(float) for size, share in zip(sizes, shares, strict=True)]


def _look(population: list[Floats], n: int) -> SequenceInterval:
    """The interval after about n labels, in proportion to the strata."""
    sizes = [len(labels) for labels in population]
    return stratified_confidence_sequence(
        [labels[: max(1, round(n * size / sum(sizes)))] for labels, size in zip(population, sizes, strict=True)], sizes
    )


@pytest.mark.parametrize(
    ("sizes", "shares"), [([400], [0.5]), ([400], [0.97]), ([60, 240, 100], [0.3, 0.9, 0.6]), ([100] * 4, [0.95] * 4)]
)
def test_the_mean_is_hardly_ever_missed_however_often_one_looks(sizes: list[int], shares: list[float]) -> None:
    rng, n_missed = np.random.default_rng(0), 0
    for _ in range(40):
        population = _draw_population(rng, sizes, shares)
        mean = np.concatenate(population).mean()
        looks = [_look(population, n) for n in STEPS]
        n_missed += any(not look.low - 1e-9 <= mean <= look.high + 1e-9 for look in looks)
    assert n_missed <= 4  # at most 5% in expectation


def test_a_fixed_interval_that_one_looks_at_repeatedly_misses_more_often() -> None:
    rng, n_missed = np.random.default_rng(0), 0
    for _ in range(200):
        labels = (rng.random(4000) < 0.5).astype(float)
        mean = labels.mean()
        n_missed += any(
            abs(labels[:n].mean() - mean) > 1.96 * (0.25 / n) ** 0.5 for n in (20, 40, 80, 160, 320, 640, 1280)
        )
    assert n_missed > 30


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


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="at most as many labels as units"):
        stratified_confidence_sequence([[1, 0, 1]], [2])
    with pytest.raises(ValueError, match="labels must be from 0 to 1"):
        stratified_confidence_sequence([[1, 2]], [5])
