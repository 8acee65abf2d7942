from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.stats.power import NormalIndPower

from auditor.metrics.labels.label_plan import half_width_floor, labels_for_difference, labels_for_half_width


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


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="half_width must be above 0"):
        labels_for_half_width(0.0, 0.5)
    with pytest.raises(ValueError, match="difference must be above 0"):
        labels_for_difference(0.0, 0.5)
    with pytest.raises(ValueError, match="the same kinds of units"):
        half_width_floor({"topic": 0.1}, {"country": 19})
