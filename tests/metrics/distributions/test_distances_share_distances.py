"""Distances of answers without an order, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from auditor.metrics import jensen_shannon, total_variation


def test_jensen_shannon_is_scipys_in_bits() -> None:
    p, q = np.random.default_rng(0).dirichlet(np.full(5, 0.4), (2, 40))
    p[0], q[0] = [1, 0, 0, 0, 0], [0, 0.5, 0.5, 0, 0]
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q, base=2, axis=1))
    assert jensen_shannon(p, q)[0] == 1
    assert jensen_shannon(p, p) == pytest.approx(np.zeros(40))


def test_total_variation_is_the_share_that_has_to_move() -> None:
    assert total_variation([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]) == pytest.approx(0.3)
    assert total_variation([4, 0], [0, 9]) == 1
    assert np.isnan(total_variation([np.nan, 1], [1, 0]))
