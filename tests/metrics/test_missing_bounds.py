from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.missing_bounds import MissingValueBounds, gap_bounds, mae_bounds

NAN = float("nan")


def test_bounds_written_out() -> None:
    assert mae_bounds([0.5, NAN, NAN, 0.1], [0.1, -0.4, 0.0, NAN]) == pytest.approx((0.4 / 3, (0.4 + 1.4 + 1.0) / 3))


def test_without_a_loss_both_are_the_mae_and_without_truth_there_is_none() -> None:
    assert mae_bounds([0.5, 0.0], [0.0, 0.5]) == (0.5, 0.5)
    assert mae_bounds([0.5], [NAN]) == (None, None)
    assert gap_bounds(MissingValueBounds(None, None), MissingValueBounds(0.1, 0.2)) == (None, None)


def test_no_filling_in_leaves_the_bounds() -> None:
    rng = np.random.default_rng(0)
    truth, all_scores = rng.uniform(-1, 1, (2, 40))
    lost = rng.random(40) < 0.3
    low, high = mae_bounds(np.where(lost, NAN, all_scores), truth)
    assert low is not None
    assert high is not None
    for fill in [*rng.uniform(-1, 1, (200, 40)), truth, -np.sign(truth)]:
        assert low - 1e-12 <= np.abs(np.where(lost, fill, all_scores) - truth).mean() <= high + 1e-12
    assert np.abs(np.where(lost, -np.sign(truth), all_scores) - truth).mean() == pytest.approx(high)


def test_a_gap_lies_between_the_farthest_ends() -> None:
    assert gap_bounds(MissingValueBounds(0.1, 0.2), MissingValueBounds(0.5, 0.6)) == pytest.approx((0.3, 0.5))
