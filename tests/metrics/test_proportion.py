from __future__ import annotations

import pytest
from scipy import stats

from auditor.metrics.proportion import proportion


@pytest.mark.parametrize(("part", "whole"), [(0, 1), (0, 10), (10, 10), (1, 3), (263, 1000), (81, 83)])
def test_is_scipys(part: int, whole: int) -> None:
    want = stats.binomtest(part, whole).proportion_ci(method="wilson")
    got = proportion(part, whole)
    assert got.value == part / whole
    assert (got.ci_low, got.ci_high) == pytest.approx((want.low, want.high), abs=1e-12)
    assert got.n == whole


def test_nothing_to_count_is_no_number() -> None:
    got = proportion(0, 0)
    assert (got.value, got.ci_low, got.ci_high, got.n) == (None, None, None, 0)
    assert got.reason == "nothing to count"


@pytest.mark.parametrize(("part", "whole"), [(2, 1), (-1, 4), (0, -1)])
def test_refuses_what_is_no_share(part: int, whole: int) -> None:
    with pytest.raises(ValueError, match="between 0 and the whole"):
        proportion(part, whole)
