"""Means of runs as least squares with effects of cells; their components of variance; and means over wordings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy import stats

from auditor.metrics.designs.run_effects import (
    LevelContrasts,
    error_of_one_wording,
    estimate_sources,
    fit_run_means,
    widen_for_wordings,
)
from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import BIAS, MAE
from benchmarks.coverage.worlds.run_worlds import HALVES, LEVELS
from tests.support.known import known
from tests.support.two_way_tables import World

BITS = np.array(list(product((0, 1), repeat=3)))
FACTOR_LEVELS = np.column_stack([BITS, BITS.sum(axis=1) % 2])
"""Eight runs of four factors: the smallest fraction of resolution IV."""
BY_LEVEL = LevelContrasts.from_levels(
    [{f"factor {i}": str(level) for i, level in enumerate(levels)} for levels in FACTOR_LEVELS]
)
FACTORS = LevelContrasts.from_levels([{f"f{i}": str(level) for i, level in enumerate(run)} for run in LEVELS])


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
    means = known(fit_run_means(values))
    np.testing.assert_allclose(means.means[1:] - means.means[0], fitted[40:])
    np.testing.assert_allclose(means.means[0], fitted[:40].mean())


def test_the_influence_of_a_country_is_what_leaving_it_out_changes() -> None:
    values, country = draw_incomplete(np.random.default_rng(2), 600), np.arange(600) % 60
    means = known(fit_run_means(values))
    for left_out in range(5):
        is_in = country != left_out
        refitted = known(fit_run_means(values[is_in]))
        np.testing.assert_allclose(means.by_cell[is_in].mean(axis=0), refitted.means, atol=0.004)


def test_runs_that_no_cell_connects_are_not_compared() -> None:
    values = np.full((6, 4), np.nan)
    values[:3, :2], values[3:, 2:] = 1.0, 2.0
    assert fit_run_means(values) is None
    assert fit_run_means(np.full((3, 4), np.nan)) is None


def test_a_run_without_any_value_has_none() -> None:
    values = np.arange(12.0).reshape(3, 4)
    values[:, 2] = np.nan
    means = known(fit_run_means(values))
    assert means.is_run.tolist() == [True, True, False, True]
    np.testing.assert_allclose(means.means, [4.0, 5.0, 0.0, 7.0])


def test_a_pair_of_factors_is_in_no_difference_between_levels() -> None:
    signs = FACTOR_LEVELS - 0.5
    runs = 0.2 * FACTOR_LEVELS[:, 0] + 2 * signs[:, 0] * signs[:, 1] - 3 * signs[:, 1] * signs[:, 3]
    everything = np.ones(8, dtype=bool)
    differences = [BY_LEVEL.difference(f"factor {i}", "0", "1", everything) for i in range(4)]
    np.testing.assert_allclose(
        [weights @ runs for weights in differences if weights is not None], [0.2, 0, 0, 0], atol=1e-9
    )


def test_levels_that_the_runs_do_not_separate_have_no_difference() -> None:
    two_runs = np.array([True, *[False] * 6, True])  # all four factors change at once
    assert BY_LEVEL.difference("factor 0", "0", "1", two_runs) is None


def test_pairs_of_factors_widen_only_differences_that_the_design_does_not_separate_from_them() -> None:
    signs, rng = 2 * FACTOR_LEVELS - 1, np.random.default_rng(7)
    values = 0.1 * rng.normal(size=(200, 8)) + 0.5 * signs[:, 0] * signs[:, 1]
    means = known(fit_run_means(values))
    separate = known(BY_LEVEL.difference("factor 0", "0", "1", means.is_run))
    assert BY_LEVEL.confounded_variance(separate, [means]) == (0.0, 0)
    # As the product of factors 0 and 3 is that of 1 and 2, a fifth factor with those levels is confounded with both.
    runs = [{f"factor {i}": str(level) for i, level in enumerate(levels)} for levels in FACTOR_LEVELS]
    runs = [run | {"fifth": str((levels[0] + levels[3]) % 2)} for run, levels in zip(runs, FACTOR_LEVELS, strict=True)]
    by_level = LevelContrasts.from_levels(runs)
    fifth = known(by_level.difference("fifth", "0", "1", means.is_run))
    variance, df = by_level.confounded_variance(fifth, [means])
    assert variance**0.5 > 0.2
    assert df == 2
    noise = known(fit_run_means(0.1 * rng.normal(size=(200, 8))))
    assert by_level.confounded_variance(fifth, [noise])[0] ** 0.5 < 0.03
    assert by_level.confounded_variance(fifth, [means, means])[0] == 0


def test_every_level_counts_alike_in_the_average_though_it_has_more_runs() -> None:
    by_level = LevelContrasts.from_levels([{"wording": level} for level in "aaab"])
    weights = known(by_level.average(np.ones(4, dtype=bool)))
    np.testing.assert_allclose(weights, [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    without = known(by_level.average(np.ones(4, dtype=bool), ("wording", "a")))
    np.testing.assert_allclose(without, [0, 0, 0, 1], atol=1e-12)


def draw_errors(rng: np.random.Generator, n_models: int, n_cells: int) -> np.ndarray:
    """Errors with variances: model 0.09, f0 0.02, model × f1 0.01, cell 0.04, model × cell 0.01, residual 0.0625."""
    errors = 0.3 * rng.normal(size=(n_models, 1, 1)) + 0.2 * rng.normal(size=(1, n_cells, 1))
    errors = errors + 0.1 * rng.normal(size=(n_models, n_cells, 1)) + 0.1 * (2 * LEVELS[:, 0] - 1)
    errors = errors + 0.1 * rng.normal(size=(n_models, 2))[:, LEVELS[:, 1]][:, None]
    return np.asarray(errors + 0.25 * rng.normal(size=(n_models, n_cells, len(LEVELS))))


def test_components_of_a_full_table_are_those_of_a_mixed_model() -> None:
    runs = LevelContrasts.from_levels([{"wording": level} for level in "abcde"])
    rng = np.random.default_rng(3)
    errors = 0.5 * rng.normal(size=(1, 12, 1)) + 0.4 * rng.normal(size=5) + 0.3 * rng.normal(size=(1, 12, 5))
    sources = known(estimate_sources(errors, runs))
    cell, wording = (index.ravel() for index in np.indices((12, 5)))
    frame = pd.DataFrame({"error": errors.ravel(), "cell": cell, "wording": wording, "group": 1})
    formulas = {"cell": "0 + C(cell)", "wording": "0 + C(wording)"}
    fitted = smf.mixedlm("error ~ 1", frame, groups="group", vc_formula=formulas).fit()
    expected = dict(zip(fitted.model.exog_vc.names, fitted.vcomp, strict=True))
    np.testing.assert_allclose(
        [sources["cell"], sources["wording"]], [expected["cell"], expected["wording"]], rtol=1e-3
    )
    np.testing.assert_allclose(sources["residual"], fitted.scale, rtol=1e-3)


def test_components_are_recovered_where_each_cell_is_asked_in_half_of_the_runs() -> None:
    rng, estimates = np.random.default_rng(4), []
    for _ in range(40):
        errors = draw_errors(rng, 4, 120)
        errors[:, ~HALVES[rng.permutation(120) % len(HALVES)]] = np.nan
        estimates.append(estimate_sources(errors, FACTORS) or {})
    means = {source: float(np.mean([row[source] for row in estimates])) for source in estimates[0]}
    expected = {"model": 0.09, "f0": 0.02, "model × f1": 0.01, "cell": 0.04, "model × cell": 0.01, "residual": 0.0625}
    for source, variance in means.items():
        assert abs(variance - expected.get(source, 0.0)) < max(0.003, 0.3 * expected.get(source, 0.0)), source


def test_runs_that_act_in_pairs_of_factors_are_a_source_of_their_own() -> None:
    signs = 2 * LEVELS - 1
    errors = 0.1 * np.random.default_rng(5).normal(size=(2, 60, 16)) + 0.3 * signs[:, 2] * signs[:, 3]
    sources = known(estimate_sources(errors, FACTORS))
    assert sources["factor × factor"] > 0.1
    assert max(sources[f"f{i}"] for i in range(7)) == 0


def test_one_model_has_no_component_of_models_and_no_residual_gives_none() -> None:
    rng = np.random.default_rng(6)
    assert set(estimate_sources(draw_errors(rng, 1, 20), FACTORS) or {}) == {
        *(f"f{i}" for i in range(7)), "factor × factor", "cell", "residual",
    }  # fmt: skip
    assert estimate_sources(draw_errors(rng, 1, 1), FACTORS) is None


def test_the_variance_over_wordings_is_added_by_hand() -> None:
    w = World(3, 9, 7)
    shifts = np.array([-0.2, 0.0, 0.1, 0.3])
    scores = w.first + shifts[:, None]
    plain = crossed_jackknife(BIAS, scores.mean(axis=0), w.truth, w.countries, w.topics)
    wide = widen_for_wordings(plain, BIAS, scores, w.truth)
    of_places, of_wordings = known(known(plain.interval).std_error) ** 2, shifts.var(ddof=1) / 4
    df = int((of_places + of_wordings) ** 2 / (of_places**2 / 6 + of_wordings**2 / 3))
    half = stats.t.ppf(0.975, df) * (of_places + of_wordings) ** 0.5
    assert wide.value == plain.value
    assert wide.ci_low == pytest.approx(wide.value - half)
    assert wide.ci_high == pytest.approx(wide.value + half)
    assert wide.resampled == ("country", "topic", "wording")
    assert wide.generalizes_to == "other countries and topics and wordings like these"


def test_equal_wordings_add_nothing_and_one_is_not_enough() -> None:
    w = World(5, 8, 6)
    plain = crossed_jackknife(MAE, w.first, w.truth, w.countries, w.topics)
    same = widen_for_wordings(plain, MAE, np.stack([w.first] * 3), w.truth)
    assert (same.ci_low, same.ci_high) == pytest.approx((plain.ci_low, plain.ci_high))
    assert widen_for_wordings(plain, MAE, w.first[None], w.truth) is plain


def test_one_wording_errs_more_than_the_mean_of_several() -> None:
    w = World(6, 10, 8)
    scores = w.first + 0.3 * np.random.default_rng(0).normal(size=(5, len(w.first)))
    scores[0, 3] = np.nan
    one = error_of_one_wording(scores, w.truth, w.countries, w.topics)
    is_complete = ~np.isnan(scores).any(axis=0)
    assert one.value == pytest.approx(np.abs(scores - w.truth)[:, is_complete].mean())
    assert one.value > np.abs(scores.mean(axis=0) - w.truth)[is_complete].mean()
    assert one.n == len(w.first) - 1
    assert one.resampled == ("country", "topic", "wording")
