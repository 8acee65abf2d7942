"""The core of all intervals over units: against textbook intervals, by hand, and in degenerate cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.jackknife_interval import (
    FISHER_Z,
    LOG,
    combine_variances,
    estimate_from_replicates,
    jackknife_interval,
    leave_one_out_sums,
    number_labels,
    recompute_without_units,
    replicate_over_units,
    too_few_reason,
)
from tests.support.known import known

X = np.random.default_rng(0).normal(2.0, 1.0, 12)


def without_each(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The mean without each value."""
    replicates: np.ndarray[tuple[int], np.dtype[np.float64]] = (values.sum() - values) / (len(values) - 1)
    return replicates


def test_of_a_mean_over_one_kind_of_units_it_is_students_interval() -> None:
    interval = jackknife_interval(float(X.mean()), {"item": without_each(X)})
    reference = stats.ttest_1samp(X, 0)
    expected = reference.confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert interval.p_value == pytest.approx(reference.pvalue)
    wide = jackknife_interval(float(X.mean()), {"item": without_each(X)}, confidence_level=1 - 0.05 / 7)
    expected = reference.confidence_interval(1 - 0.05 / 7)
    assert (wide.low, wide.high) == pytest.approx((expected.low, expected.high))


def test_over_two_kinds_variances_add_up_less_half_of_that_of_cells() -> None:
    a, b, c = X[:6], X[6:], np.random.default_rng(1).normal(size=36)
    spread = [(len(v) - 1) / len(v) * ((v - v.mean()) ** 2).sum() for v in (a, b, c)]
    value = (a.mean() + b.mean()) / 2
    plain = jackknife_interval(value, {"country": a, "topic": b})
    assert plain.std_error == pytest.approx((spread[0] + spread[1]) ** 0.5)
    assert plain.df == 5
    reduced = jackknife_interval(value, {"country": a, "topic": b}, cells=c / 10)
    assert reduced.std_error == pytest.approx((spread[0] + spread[1] - spread[2] / 200) ** 0.5)
    floored = jackknife_interval(value, {"country": a, "topic": b}, cells=c * 100)
    assert floored.std_error == pytest.approx(max(spread[:2]) ** 0.5)


def test_strata_add_up_and_the_smallest_gives_the_degrees_of_freedom() -> None:
    a, b, t = X[:5], X[5:], np.random.default_rng(2).normal(size=20)
    interval = jackknife_interval(0.0, {"country": [a, b], "topic": t})
    spread = sum((len(v) - 1) / len(v) * ((v - v.mean()) ** 2).sum() for v in (a, b, t))
    assert interval.std_error == pytest.approx(spread**0.5)
    assert interval.df == 4


def test_combined_variances_are_taken_element_by_element() -> None:
    country, topic, cell = np.array([[1.0, 4.0]]), np.array([[2.0, 1.0]]), np.array([[1.0, 8.0]])
    assert combine_variances([country, topic], cell).tolist() == [[2.5, 4.0]]


@pytest.mark.parametrize(("value", "replicates", "reason"), [
    (0.5, {"country": X[:4], "topic": X}, "5 countries and 5 topics, but there are 4 countries"),
    (0.5, {"country": [X[:1], X], "topic": X}, "5 countries in each group and 5 topics, but there is 1 country"),
    (0.5, {"country": X[:2], "topic": X[:1]}, "but there are 2 countries and 1 topic"),
    (0.5, {"country": X[:1], "topic": X[:2]}, "but there is 1 country and 2 topics"),
    (0.5, {"item": np.array([0.1, 0.2, np.nan, 0.3, 0.4])}, "the figure is undefined without one of the units"),
    (0.5, {"item": np.full(8, 0.5)}, "the same whichever unit is left out"),
])  # fmt: skip
def test_what_has_no_interval_says_why(value: float, replicates: dict[str, object], reason: str) -> None:
    estimate = estimate_from_replicates(value, 10, replicates)  # type: ignore[arg-type]
    assert (estimate.value, estimate.ci_low, estimate.ci_high, estimate.resampled) == (value, None, None, ())
    assert reason in (estimate.reason or "")


def test_an_estimate_names_its_units_and_population() -> None:
    estimate = estimate_from_replicates(2.0, 12, {"country": X[:6] + 5, "topic": X[6:] + 5}, LOG)
    assert estimate.resampled == ("country", "topic")
    assert estimate.generalizes_to == "other countries and topics like these"
    assert known(estimate.ci_low) > 0


def test_bounds_clip_the_ends_and_a_correlation_stays_within_one() -> None:
    replicates = {"item": np.array([0.9, 0.99, 0.95, 0.6, 0.97, 0.8])}
    interval = jackknife_interval(0.93, replicates, bounds=(0.0, 1.0))
    assert interval.high == 1.0
    fisher = jackknife_interval(0.93, replicates, FISHER_Z)
    assert -1 < known(fisher.low) < known(fisher.high) < 1


def test_enough_units_need_no_reason() -> None:
    assert too_few_reason({"item": [5]}) is None


def test_a_statistic_that_differs_from_0_by_rounding_only_has_no_interval() -> None:
    noise = np.random.default_rng(4).normal(size=12) * 1e-17
    for transform in (LOG, FISHER_Z):
        interval = jackknife_interval(2e-17, {"item": np.abs(noise)}, transform)
        assert interval.low is None, transform
        assert "cannot be estimated" in (interval.reason or "")


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


@pytest.mark.parametrize(
    "labels",
    [[7, 0, 7, 3], [-1, 5, -1], [2_000_000, 4, 4], ["b", "a", "b"], [0.5, 0.5, 0.25], [True, False, True], []],
    ids=["small", "negative", "large", "texts", "floats", "booleans", "none"],
)
def test_labels_are_numbered_in_their_order_whatever_they_are(labels: list[object]) -> None:
    numbers = number_labels(np.array(labels))
    assert numbers.tolist() == [sorted(set(labels)).index(label) for label in labels]  # type: ignore[type-var]
