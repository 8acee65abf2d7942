"""Effects of the order of the scale, with their directions."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics import order_effect, wasserstein

POINTS = np.linspace(-1, 1, 10)


def test_a_model_that_prefers_what_is_shown_first_has_a_positive_shift() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(10))
    up, down = 0.8 * p + 0.2 * np.eye(10)[0], 0.8 * p + 0.2 * np.eye(10)[-1]
    effect = order_effect(up, down, POINTS)
    assert effect.shift == pytest.approx(0.1)
    assert effect.distance == pytest.approx(0.2)
    assert effect.floor == 0
    assert order_effect(down, up, POINTS).shift == pytest.approx(-0.1)


def test_the_shift_of_samples_is_unbiased_and_their_distance_has_a_floor() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(10))
    up, down = rng.multinomial(40, p, (2, 5000))
    effect = order_effect(up, down, POINTS, 40, 40)
    assert abs(effect.shift.mean()) < 4 * effect.shift.std() / 5000**0.5
    assert effect.distance.mean() == pytest.approx(wasserstein(up, down, POINTS).mean())
    assert effect.floor.mean() == pytest.approx(effect.distance.mean(), rel=0.03)
