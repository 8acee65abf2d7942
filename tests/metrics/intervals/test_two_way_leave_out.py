from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.intervals.two_way import LeaveOutValue, leave_out_range
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic

NAN = float("nan")


def test_the_ends_are_the_plain_figures_without_one_group() -> None:
    rng = np.random.default_rng(0)
    truth, groups = rng.normal(size=60), np.array(["a", "b", "c", "d"] * 15)
    scores = truth + rng.normal(size=60)
    scores[5] = NAN
    functions: list[tuple[Statistic, Callable[[Floats, Floats], float]]] = [
        (PEARSON, lambda x, y: float(np.corrcoef(x, y)[0, 1])),
        (MAE, lambda x, y: float(np.abs(x - y).mean())),
        (BIAS, lambda x, y: float((x - y).mean())),
    ]
    for statistic, function in functions:
        expected = {}
        for group in "abcd":
            is_used = (groups != group) & ~np.isnan(scores)
            expected[group] = function(scores[is_used], truth[is_used])
        ends = leave_out_range(statistic, scores, truth, groups)
        assert ends is not None
        for end, group in zip(
            ends, (min(expected, key=expected.__getitem__), max(expected, key=expected.__getitem__)), strict=True
        ):
            assert end.group == group
            assert end.value == pytest.approx(expected[group], abs=1e-12)


def test_one_group_or_no_value_has_no_range() -> None:
    assert leave_out_range(MAE, [0.1, 0.2], [0.0, 0.0], ["a", "a"]) is None
    assert leave_out_range(MAE, [NAN, 0.2], [0.0, 0.0], ["a", "b"]) is None
    assert leave_out_range(PEARSON, [0.1, 0.2], [0.0, 0.3], ["a", "b"]) is None
    both = leave_out_range(MAE, [0.25, 0.5], [0.0, 0.0], ["a", "b"])
    assert both == (LeaveOutValue(0.25, "b"), LeaveOutValue(0.5, "a"))
