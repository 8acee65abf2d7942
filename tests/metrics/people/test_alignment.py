"""Lin's concordance: published values, degenerate scores, and its interval."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.two_way import crossed_jackknife, paired_jackknife
from auditor.metrics.people.alignment import CONCORDANCE
from tests.support.two_way_tables import World

WRIGHT = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
MINI = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]
"""Peak expiratory flow by two meters (Bland & Altman, Lancet 327, 1986, 307-310)."""


def concordance(x: object, y: object) -> float | None:
    scores, truth = (np.asarray(side, dtype=float) for side in (x, y))
    index = np.arange(len(scores))
    return crossed_jackknife(CONCORDANCE, scores, truth, index, index).value


def test_concordance_of_published_measurements() -> None:
    assert concordance(WRIGHT, MINI) == pytest.approx(0.9427, abs=0.0005)  # R: DescTools::CCC, epiR::epi.ccc


def test_it_is_the_formula_at_any_scale() -> None:
    w = World(0, 9, 7)
    for shift, scale in ((0.0, 1.0), (1e6, 1.0), (-3.0, 1e-6)):
        x, y = shift + scale * w.first, shift + scale * w.truth
        expected = 2 * np.cov(w.first, w.truth, ddof=0)[0, 1]
        expected /= w.first.var() + w.truth.var() + (w.first.mean() - w.truth.mean()) ** 2
        assert concordance(x, y) == pytest.approx(expected, rel=1e-6)


def test_equal_reversed_and_constant_scores() -> None:
    y = np.array([-0.5, 0.1, 0.4])
    assert concordance(y, y) == pytest.approx(1)
    assert concordance(-y, y - y.mean() - y.mean()) == pytest.approx(concordance(y, -(y - 2 * y.mean())))
    assert concordance(y.mean() - (y - y.mean()), y) == pytest.approx(-1)
    assert concordance([0.2, 0.2, 0.2], y) == 0.0
    assert concordance([0.2, 0.2], [0.2, 0.2]) is None


def test_a_compressed_model_orders_well_and_does_not_agree() -> None:
    rng = np.random.default_rng(3)
    people = np.clip(0.3 * rng.normal(size=(12, 1)) + 0.4 * rng.normal(size=(1, 10)) - 0.35, -0.97, 0.9)
    model = 0.62 + 0.12 * people
    countries, topics = (index.ravel() for index in np.indices(people.shape))
    estimate = crossed_jackknife(CONCORDANCE, model.ravel(), people.ravel(), countries, topics)
    assert np.corrcoef(model.ravel(), people.ravel())[0, 1] == pytest.approx(1)
    assert 0 < (estimate.value or 0) < 0.1
    assert (estimate.ci_high or 1) < 0.2


def test_differences_are_recovered_on_fishers_z() -> None:
    w = World(5, 12, 9)
    first, second = (crossed_jackknife(CONCORDANCE, s, w.truth, w.countries, w.topics) for s in (w.first, w.uneven))
    difference = paired_jackknife(CONCORDANCE, w.first, w.uneven, w.truth, w.countries, w.topics)
    assert difference.value == pytest.approx((first.value or 0) - (second.value or 0))
    assert ((difference.p_value or 1) < 0.05) == ((difference.ci_low or 0) > 0 or (difference.ci_high or 0) < 0)
    assert (difference.ci_low or 0) < (difference.value or 0) < (difference.ci_high or 0)
