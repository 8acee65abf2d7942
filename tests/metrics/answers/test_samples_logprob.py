"""Stretching to the whole scale."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.answers.samples import min_max_scale


def test_ends_become_the_ends_of_the_scale_and_order_and_r_stay() -> None:
    raw = np.array([-3.0, np.nan, 1.0, -1.0])
    scaled = min_max_scale(raw)
    assert scaled.tolist()[0] == -1.0
    assert scaled[2] == 1.0
    assert np.isnan(scaled[1])
    assert scaled[3] == pytest.approx(0.0)


@pytest.mark.parametrize("raw", [[], [1.0], [2.0, 2.0, np.nan], [np.nan, np.nan]])
def test_what_has_no_range_has_no_score(raw: list[float]) -> None:
    assert np.isnan(min_max_scale(raw)).all()


def test_it_does_not_matter_where_the_scale_lies() -> None:
    raw = np.random.default_rng(0).normal(size=50)
    assert min_max_scale(7 * raw - 3) == pytest.approx(min_max_scale(raw))


def test_infinity_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        min_max_scale([1.0, np.inf])
