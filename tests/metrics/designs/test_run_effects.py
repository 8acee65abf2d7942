"""Means of runs are least squares with an effect of each cell; levels are compared clear of pairs of factors."""

from __future__ import annotations

from itertools import product

import numpy as np
import statsmodels.api as sm

from auditor.metrics.designs.run_effects import LevelContrasts, fit_run_means

BITS = np.array(list(product((0, 1), repeat=3)))
LEVELS = np.column_stack([BITS, BITS.sum(axis=1) % 2])
"""Eight runs of four factors: the smallest fraction of resolution IV."""
BY_LEVEL = LevelContrasts.from_levels(
    [{f"factor {i}": str(level) for i, level in enumerate(levels)} for levels in LEVELS]
)


def draw_incomplete(rng: np.random.Generator, n_cells: int = 40) -> np.ndarray:
    values = rng.normal(size=(n_cells, 1)) + rng.normal(size=8) + 0.3 * rng.normal(size=(n_cells, 8))
    for row in values:
        row[rng.permutation(8)[: rng.integers(3, 6)]] = np.nan
    return np.asarray(values)


def test_runs_are_compared_within_cells_as_by_least_squares() -> None:
    values = draw_incomplete(np.random.default_rng(1))
    cell, run = np.nonzero(~np.isnan(values))
    matrix = np.column_stack([np.eye(40)[cell], np.eye(8)[run][:, 1:]])
    fitted = sm.OLS(values[cell, run], matrix).fit().params
    means = fit_run_means(values)
    assert means is not None
    np.testing.assert_allclose(means.means[1:] - means.means[0], fitted[40:])
    np.testing.assert_allclose(means.means[0], fitted[:40].mean())


def test_the_influence_of_a_country_is_what_leaving_it_out_changes() -> None:
    values, country = draw_incomplete(np.random.default_rng(2), 600), np.arange(600) % 60
    means = fit_run_means(values)
    assert means is not None
    for left_out in range(5):
        is_in = country != left_out
        refitted = fit_run_means(values[is_in])
        assert refitted is not None
        np.testing.assert_allclose(means.by_cell[is_in].mean(axis=0), refitted.means, atol=0.004)


def test_runs_that_no_cell_connects_are_not_compared() -> None:
    values = np.full((6, 4), np.nan)
    values[:3, :2], values[3:, 2:] = 1.0, 2.0
    assert fit_run_means(values) is None
    assert fit_run_means(np.full((3, 4), np.nan)) is None


def test_a_run_without_any_value_has_none() -> None:
    values = np.arange(12.0).reshape(3, 4)
    values[:, 2] = np.nan
    means = fit_run_means(values)
    assert means is not None
    assert means.is_run.tolist() == [True, True, False, True]
    np.testing.assert_allclose(means.means, [4.0, 5.0, 0.0, 7.0])


def test_a_pair_of_factors_is_in_no_difference_between_levels() -> None:
    signs = LEVELS - 0.5
    runs = 0.2 * LEVELS[:, 0] + 2 * signs[:, 0] * signs[:, 1] - 3 * signs[:, 1] * signs[:, 3]
    everything = np.ones(8, dtype=bool)
    differences = [BY_LEVEL.difference(f"factor {i}", "0", "1", everything) for i in range(4)]
    np.testing.assert_allclose(
        [weights @ runs for weights in differences if weights is not None], [0.2, 0, 0, 0], atol=1e-9
    )


def test_levels_that_the_runs_do_not_separate_have_no_difference() -> None:
    two_runs = np.array([True, *[False] * 6, True])  # all four factors change at once
    assert BY_LEVEL.difference("factor 0", "0", "1", two_runs) is None


def test_pairs_of_factors_widen_only_differences_that_the_design_does_not_separate_from_them() -> None:
    signs, rng = 2 * LEVELS - 1, np.random.default_rng(7)
    values = 0.1 * rng.normal(size=(200, 8)) + 0.5 * signs[:, 0] * signs[:, 1]
    means = fit_run_means(values)
    assert means is not None
    separate = BY_LEVEL.difference("factor 0", "0", "1", means.is_run)
    assert separate is not None
    assert BY_LEVEL.confounded_variance(separate, [means]) == (0.0, 0)
    # As the product of factors 0 and 3 is that of 1 and 2, a fifth factor with those levels is confounded with both.
    runs = [{f"factor {i}": str(level) for i, level in enumerate(levels)} for levels in LEVELS]
    runs = [run | {"fifth": str((levels[0] + levels[3]) % 2)} for run, levels in zip(runs, LEVELS, strict=True)]
    by_level = LevelContrasts.from_levels(runs)
    fifth = by_level.difference("fifth", "0", "1", means.is_run)
    assert fifth is not None
    variance, df = by_level.confounded_variance(fifth, [means])
    assert variance**0.5 > 0.2
    assert df == 2
    noise = fit_run_means(0.1 * rng.normal(size=(200, 8)))
    assert noise is not None
    assert by_level.confounded_variance(fifth, [noise])[0] ** 0.5 < 0.03
    assert by_level.confounded_variance(fifth, [means, means])[0] == 0


def test_every_level_counts_alike_in_the_average_though_it_has_more_runs() -> None:
    by_level = LevelContrasts.from_levels([{"wording": level} for level in "aaab"])
    weights = by_level.average(np.ones(4, dtype=bool))
    assert weights is not None
    np.testing.assert_allclose(weights, [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    without = by_level.average(np.ones(4, dtype=bool), ("wording", "a"))
    assert without is not None
    np.testing.assert_allclose(without, [0, 0, 0, 1], atol=1e-12)
