"""Random subsets of samples: their means, and a figure's range over them."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.people import savings
from auditor.metrics.people.savings import draw_subset_means, estimate_over_subsets, subset_standard_error


def test_a_mean_of_all_samples_is_the_score_and_failures_stay_out() -> None:
    rng = np.random.default_rng(0)
    values = np.array([[0.1, 0.3, np.nan], [np.nan, np.nan, np.nan]])
    [subset_means] = draw_subset_means(values, 3, 1, rng)
    assert subset_means[0] == pytest.approx(0.2)
    assert np.isnan(subset_means[1])
    ones = draw_subset_means(values, 1, 600, rng)[:, 0]
    assert set(np.round(ones[~np.isnan(ones)], 6)) == {0.1, 0.3}
    assert np.isnan(ones).mean() == pytest.approx(1 / 3, abs=0.07)  # a failed sample may be the one that is drawn


def test_many_subsets_at_once_are_the_subsets_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(size=(30, 5))
    values[::4, 2], values[3] = np.nan, np.nan
    expected = []
    rng = np.random.default_rng(2)
    for _ in range(20):
        drawn = np.take_along_axis(values, rng.random(values.shape).argsort(axis=1)[:, :3], axis=1)
        n_usable = (~np.isnan(drawn)).sum(axis=1)
        expected.append(np.where(n_usable > 0, np.nansum(drawn, axis=1) / np.maximum(n_usable, 1), np.nan))
    for max_values in (10, 1000, 1_000_000):
        monkeypatch.setattr(savings, "MAX_DRAWN_VALUES", max_values)
        np.testing.assert_array_equal(draw_subset_means(values, 3, 20, np.random.default_rng(2)), expected)


def test_a_missing_figure_or_range_has_a_reason() -> None:
    assert "too few cells" in str(estimate_over_subsets([np.nan, np.nan], 9, 0.5, (-1.0, 1.0)).reason)
    single = estimate_over_subsets([0.4], 9, 0.0, (-1.0, 1.0))
    assert (single.value, single.n, single.ci_low) == (0.4, 9, None)
    assert single.reason


def test_the_range_is_widened_for_the_samples_left_out_and_stays_in_its_bounds() -> None:
    figures = np.linspace(0.4, 0.6, 101)
    half = estimate_over_subsets(figures, 9, 0.25, (-1.0, 1.0))
    assert (half.ci_low, half.ci_high) == pytest.approx((0.5 - 2 * 0.095, 0.5 + 2 * 0.095))
    assert half.generalizes_to == "other samples of the same cells"
    assert estimate_over_subsets(figures, 9, 0.01, (0.0, 1.0)).ci_low == 0.0


def test_the_standard_error_pools_the_cells_with_two_samples() -> None:
    scores = np.array([[0.0, 0.2, np.nan], [0.5, np.nan, np.nan], [0.1, 0.5, np.nan]])
    assert subset_standard_error(scores, 4) == pytest.approx(np.sqrt((0.02 + 0.08) / 2 / 4))
    assert subset_standard_error(scores[1:2], 4) is None
