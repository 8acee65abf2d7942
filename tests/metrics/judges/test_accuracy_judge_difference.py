"""Differences between means of traces, their units, and the adjustment for the number of tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.judges.accuracy import (
    JudgeDifference,
    difference_of_means,
    length_association,
    mean_value,
    missing_difference,
)
from tests.support.judge_worlds import PanelWorld

NAN = float("nan")


def test_a_mean_over_items_with_one_trace_each_is_students_interval() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.3, size=40)
    mean = mean_value(values, {"item": np.arange(40)}, "experiment")
    low, high = student.interval(0.95, 39, values.mean(), values.std(ddof=1) / np.sqrt(40))
    assert (mean.value, mean.ci_low, mean.ci_high) == pytest.approx((values.mean(), low, high))
    assert (mean.n, mean.resampled, mean.evidence) == (40, ("item",), "experiment")
    t = values.mean() / (values.std(ddof=1) / np.sqrt(40))
    assert mean.p_value == pytest.approx(2 * student.sf(abs(t), 39))


def test_a_difference_is_recomputed_without_each_country_and_topic() -> None:
    panel = PanelWorld(8, 6, 3, missing=0.2).draw(2)
    [difference, *_] = length_association(panel.verdicts, panel.is_longer, panel.units)

    def recompute(keep: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
        row = panel.verdicts[0, keep]
        longer = panel.is_longer[keep] == 1
        return float(np.nanmean(row[longer]) - np.nanmean(row[~longer]))

    value = recompute(np.ones(panel.verdicts.shape[1], dtype=bool))
    cells = panel.units["country"] * 6 + panel.units["topic"]
    variances = []
    for labels in (*panel.units.values(), cells):
        without = np.array([recompute(labels != unit) for unit in np.unique(labels)])
        variances.append((len(without) - 1) ** 2 / len(without) * without.var(ddof=1))
    by_country, by_topic, by_cell = variances
    variance = max(by_country + by_topic - by_cell / 2, by_country, by_topic)
    assert difference.value == pytest.approx(value)
    half_width = student.ppf(0.975, 5) * np.sqrt(variance)
    assert (difference.ci_low, difference.ci_high) == pytest.approx((value - half_width, value + half_width))


def test_what_cannot_be_measured_says_why() -> None:
    units = {"country": np.arange(12) % 4, "topic": np.arange(12) % 6}
    longer = np.arange(12) % 2 == 0
    few = difference_of_means(np.arange(12.0), longer.astype(float), units, "association")
    assert few.value is not None
    assert (few.ci_low, few.p_value) == (None, None)
    assert "5 countries" in (few.reason or "")
    assert difference_of_means(np.ones(12), np.ones(12), units, "association").reason == "one side has no verdict"
    assert mean_value(np.full(12, NAN), units, "truth").value is None
    with pytest.raises(ValueError, match="table"):
        length_association([1.0, 0.0], [1.0, 0.0], units)


def test_p_values_are_adjusted_over_all_tests() -> None:
    tests = [JudgeDifference(0.1, 9, 0.0, 0.2, resampled=("item",), p_value=p_value) for p_value in (0.02, 0.01, 0.03)]
    adjusted = adjust_tests([tests[0], missing_difference("none"), *tests[1:]], "bias")
    assert [difference.adjusted_p_value for difference in adjusted] == pytest.approx([0.04, None, 0.03, 0.04])
    assert {difference.test_family for difference in adjusted} == {"bias"}
    assert [difference.is_significant for difference in adjusted] == [True, False, True, True]


def test_an_association_over_units_holds_the_truth_where_one_over_cells_does_not() -> None:
    """The judge has a preference on some topics and the opposite on others: it has none over topics."""
    held = held_over_cells = 0
    runs, countries, topics = 200, 12, 8
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        cell = np.repeat(np.arange(countries * topics), 10)
        country, topic = cell // topics, cell % topics
        longer = rng.random(len(cell)) < 0.5
        preference = rng.choice([-0.25, 0.25], topics)
        verdicts = (rng.random(len(cell)) < 0.5 + preference[topic] * (longer - 0.5)).astype(float)
        difference = difference_of_means(
            verdicts, longer.astype(float), {"country": country, "topic": topic}, "association"
        )
        over_cells = difference_of_means(verdicts, longer.astype(float), {"item": cell}, "association")
        assert difference.ci_low is not None
        assert difference.ci_high is not None
        assert over_cells.ci_low is not None
        assert over_cells.ci_high is not None
        held += difference.ci_low <= 0 <= difference.ci_high
        held_over_cells += over_cells.ci_low <= 0 <= over_cells.ci_high
    assert held / runs >= 0.92
    assert held_over_cells / runs < 0.85


def test_a_judge_that_always_differs_is_tested_with_each_unit_as_one_case() -> None:
    rng = np.random.default_rng(3)
    units = {"country": np.repeat(np.arange(12), 8), "topic": np.tile(np.arange(8), 12)}
    opposite = mean_value(np.full(96, -1.0), units, "panel")
    assert (opposite.value, opposite.ci_low) == (-1.0, -1.0)
    assert -0.5 < (opposite.ci_high or 0.0) < -0.3
    assert (opposite.p_value or 1.0) < 0.01
    equal = mean_value(np.zeros(96), units, "panel")
    assert (equal.ci_low, equal.p_value) == (None, None)
    assert "uncertainty cannot be estimated" in (equal.reason or "")
    nearly = mean_value(np.where(rng.random(96) < 0.02, 0.0, -1.0), units, "panel")
    assert nearly.ci_low is not None
    in_few = mean_value(np.full(25, 1.0), {"country": np.repeat(range(5), 5), "topic": np.tile(range(5), 5)}, "panel")
    assert (in_few.p_value or 0.0) > 0.05  # five units that all agree occur by chance in 1 of 16 cases
