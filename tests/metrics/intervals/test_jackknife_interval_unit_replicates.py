"""Statistics without each unit: the two general schemes agree, and follow the sorted labels."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.jackknife_interval import (
    leave_one_out_sums,
    recompute_without_units,
    replicate_over_units,
)


def test_sums_without_each_unit_follow_the_sorted_labels() -> None:
    moments = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    assert leave_one_out_sums(moments, ["b", "a", "b"]).tolist() == [[5.0, 50.0], [2.0, 20.0]]


def test_a_statistic_of_sums_is_that_recomputed_without_each_unit() -> None:
    rng = np.random.default_rng(1)
    values, countries, topics = rng.normal(size=60), rng.integers(0, 7, 60), rng.integers(0, 5, 60)
    moments = np.stack([values, np.ones(60)], axis=1)
    replicates = replicate_over_units(
        moments, lambda sums: sums[:, 0] / sums[:, 1], {"country": countries, "topic": topics}
    )
    for labels, by_sums in (
        (countries, replicates.units["country"]),
        (topics, replicates.units["topic"]),
        (countries * 5 + topics, replicates.cells),
    ):
        recomputed = recompute_without_units(lambda included: float(values[included].mean()), labels)
        assert by_sums == pytest.approx(recomputed)
    assert len(replicates.units["country"]) == 7


def test_several_figures_are_computed_at_once() -> None:
    figures = recompute_without_units(lambda included: (float(included.sum()), 1.0), ["b", "a", "b"])
    assert figures.tolist() == [[2.0, 1.0], [1.0, 1.0]]
