"""Figures of a design: runs and scores that fit together, differences between levels, and changes of rankings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.metrics.designs.robustness import (
    DesignRun,
    DesignScore,
    DesignTable,
    LevelPair,
    ModelPair,
    RegionGap,
    average_designs,
    compare_all_levels,
    compare_level_correlations,
    compare_levels,
    compare_rankings,
    estimate_contrast,
    find_changed_cells,
)
from auditor.metrics.intervals.two_way import UnitLabels, crossed_jackknife, gap_jackknife
from auditor.metrics.people.alignment import BIAS, CONCORDANCE, MAE
from benchmarks.coverage.run_figures import to_table
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.run_worlds import MAIN_EFFECTS, RunWorld
from tests.support.known import known

DIRECTION = LevelPair("direction", "0", "1")


def draw(world: RunWorld = MAIN_EFFECTS, seed: int = 0) -> DesignTable:
    return to_table(world.draw(Design(12, 10), np.random.default_rng(seed)))


def test_runs_and_scores_that_do_not_fit_are_refused() -> None:
    runs = [DesignRun(0, {"wording": "1"}), DesignRun(1, {"wording": "2"})]
    with pytest.raises(ValueError, match="at least two runs"):
        DesignTable.from_scores(runs[:1], [])
    with pytest.raises(ValueError, match="distinct"):
        DesignTable.from_scores([runs[0], runs[0]], [])
    with pytest.raises(ValueError, match="same factors"):
        DesignTable.from_scores([runs[0], DesignRun(1, {"scale": "words"})], [])
    with pytest.raises(ValueError, match="does not have: \\[7\\]"):
        DesignTable.from_scores(runs, [DesignScore("m", 7, "SE", "a", 0.1, 0.2)])


def test_scores_are_arranged_by_model_cell_and_run() -> None:
    runs = [DesignRun(0, {"wording": "1"}), DesignRun(4, {"wording": "2"})]
    scores = [
        DesignScore("oak", 0, "SE", "a", 0.1, 0.2),
        DesignScore("oak", 4, "SE", "a", None, 0.2, "refused"),
        DesignScore("ash", 4, "DE", "a", 0.5, -0.2),
    ]
    table = DesignTable.from_scores(runs, scores, {"SE": "north"})
    assert (table.models, table.units.unit, list(table.units.labels)) == (("oak", "ash"), "zone", ["north", "DE"])
    expected = [[[0.1, np.nan], [np.nan] * 2], [[np.nan] * 2, [np.nan, 0.5]]]
    np.testing.assert_array_equal(table.scores, expected)
    np.testing.assert_array_equal(table.truth, [0.2, -0.2])


def test_an_interval_is_at_most_as_wide_as_the_jackknife_of_one_figure() -> None:
    table = draw()
    values = table.errors(0, "bias")[:, 0]
    values = np.where(np.isnan(values), 0.1, values)
    zeros, is_second = np.zeros_like(values), np.repeat(np.arange(12) >= 6, 10)
    estimate = estimate_contrast(values, table.units, table.topics)
    usual = crossed_jackknife(BIAS, values, zeros, table.units, table.topics)
    gap = estimate_contrast(values, table.units, table.topics, is_second)
    usual_gap = gap_jackknife(BIAS, values, zeros, table.units, table.topics, ~is_second)
    for new, old in ((estimate, usual), (gap, usual_gap)):
        assert new.value == pytest.approx(old.value)
        assert 0.7 < (known(new.interval).std_error or 0) / (known(old.interval).std_error or 1) <= 1.02


def test_over_zones_the_variances_add_up() -> None:
    table = draw()
    zones = UnitLabels(np.array([f"zone {hash_index % 6}" for hash_index in range(len(table.truth))]), "zone")
    values = np.random.default_rng(0).normal(size=len(table.truth))
    estimate = estimate_contrast(values, zones, table.topics)
    usual = crossed_jackknife(BIAS, values, np.zeros_like(values), zones, table.topics)
    assert (estimate.ci_low, estimate.ci_high) == pytest.approx((usual.ci_low, usual.ci_high), rel=0.02)


def test_few_units_and_equal_values_have_no_interval() -> None:
    table = draw()
    first = table.countries < "country 10"
    few = estimate_contrast(np.ones(first.sum()), table.units[first], table.topics[first])
    equal = estimate_contrast(np.ones(len(table.truth)), table.units, table.topics)
    assert "5 countries" in (few.reason or "")
    assert "uncertainty" in (equal.reason or "")


def test_all_intervals_hold_together_and_contain_the_interval_of_one() -> None:
    table = draw()
    rows = compare_all_levels(table, "mae", ["wording"])
    assert len(rows) == 3 * 7
    single = compare_levels(table, 0, "mae", DIRECTION)
    [joint] = [row.estimate for row in rows if (row.model, row.pair) == ("model 0", DIRECTION)]
    assert (joint.ci_low or 0) < (single.ci_low or 0) < (joint.value or 0)
    assert joint.adjusted_p_value == pytest.approx((single.p_value or 0) * 21, rel=0.5)


def test_a_gap_is_between_the_regions_with_the_largest_one() -> None:
    table = draw()
    regions = {f"country {i}": "south" if i >= 6 else "north" for i in range(12)}
    gap = RegionGap(table, 0, "bias", regions)
    assert (gap.high, gap.low) == ("south", "north")
    assert gap.compare_levels(DIRECTION).value == pytest.approx(0.08, abs=0.08)
    one_region = RegionGap(table, 0, "bias", dict.fromkeys(regions, "world"))
    assert "fewer than two regions" in (one_region.compare_levels(DIRECTION).reason or "")


def test_the_variance_of_wordings_widens_the_average() -> None:
    table = draw(RunWorld("", wording_sd=0.2))
    fixed, widened = (average_designs(table, 0, "mae", factors) for factors in ((), ("wording",)))
    assert fixed.value == widened.value
    assert (widened.ci_high or 0) - (widened.ci_low or 0) > 1.2 * ((fixed.ci_high or 0) - (fixed.ci_low or 0))
    assert widened.resampled == ("country", "topic", "wording")


def test_correlations_are_compared_over_cells_that_both_levels_were_asked() -> None:
    table = draw()
    scores = table.scores.copy()
    is_second = np.array([run.levels["direction"] == "1" for run in table.runs])
    scores[0, :30, is_second] = np.nan
    estimate = compare_level_correlations(replace(table, scores=scores), 0, CONCORDANCE, DIRECTION)
    assert estimate.n <= 90
    assert (estimate.value or 0) < 0  # the second level shifts scores away from people's


def test_a_ranking_changes_only_where_the_difference_changes_its_sign() -> None:
    crossing = compare_rankings(draw(RunWorld("", model_shift=0.6)))
    assert [(row.first, row.second) for row in crossing if row.is_change] == [
        ("model 0", "model 1"),
        ("model 0", "model 2"),
    ]
    table = draw(RunWorld("", model_shift=0.4))
    scores = table.scores.copy()
    scores[0] += 0.5
    dependent = compare_rankings(replace(table, scores=scores))
    assert [row.first for row in dependent if row.estimate.is_significant] == ["model 0"] * 2
    assert not any(row.is_change for row in dependent)


def test_models_that_are_equal_at_one_level_have_no_order_there() -> None:
    world = RunWorld("", model_shift=0.24, model_base=0.12)
    rankings = [compare_rankings(draw(world, seed)) for seed in range(8)]
    pairs = [row for rows in rankings for row in rows if (row.first, row.pair.factor) == ("model 0", "direction")]
    assert sum(row.estimate.is_significant for row in pairs) > 8
    assert sum((row.at_first or 0.0) * (row.at_second or 0.0) < 0 for row in pairs) > 4
    assert not any(row.is_change for row in pairs)


def test_the_count_of_designs_stands_with_what_sampling_alone_would_give() -> None:
    equal = ModelPair(draw(RunWorld("")), 0, 1).count_designs()
    moved = ModelPair(draw(RunWorld("", model_shift=0.8)), 0, 1).count_designs()
    table = draw(RunWorld(""))
    scores = table.scores.copy()
    scores[0] -= 0.3
    better = ModelPair(replace(table, scores=scores), 0, 1).count_designs()
    assert 3 < known(equal).expected < 13
    assert (known(moved).better, known(moved).designs) == (8, 16)
    assert (known(better).better, round(known(better).expected)) == (16, 16)


def test_cells_that_change_most_are_listed_once_with_their_runs() -> None:
    table = draw()
    scores = table.scores.copy()
    asked = np.nonzero(~np.isnan(scores[1, 7]))[0]
    scores[0, 7, asked[0]], scores[1, 7, asked[0]], scores[1, 7, asked[1]] = -3.0, -5.0, 5.0
    first, second = find_changed_cells(replace(table, scores=scores), 2)
    expected = ("model 1", str(table.countries[7]), str(table.topics[7]), int(asked[0]), int(asked[1]), -5.0, 5.0)
    assert tuple(first) == expected
    assert (second.country, second.topic) != (first.country, first.topic)


def test_mae_by_level_is_the_difference_of_plain_means_in_a_full_table() -> None:
    table = draw()
    scores = np.random.default_rng(1).normal(size=table.scores.shape)
    full = replace(table, scores=scores)
    is_second = np.array([run.levels["direction"] == "1" for run in table.runs])
    maes = [MAE.value(MAE.moments(scores[0][:, side].ravel(), np.repeat(full.truth, 8)).sum(axis=0)[None])[0]
            for side in (is_second, ~is_second)]  # fmt: skip
    assert compare_levels(full, 0, "mae", DIRECTION).value == pytest.approx(maes[0] - maes[1])
