from __future__ import annotations

import pytest
from scipy import stats

from auditor.metrics.intervals.estimate import proportion


@pytest.mark.parametrize(("part", "total"), [(0, 1), (0, 10), (10, 10), (1, 3), (263, 1000), (81, 83)])
def test_is_scipys(part: int, total: int) -> None:
    want = stats.binomtest(part, total).proportion_ci(method="wilson")
    share = proportion(part, total)
    assert share.value == part / total
    assert (share.ci_low, share.ci_high) == pytest.approx((want.low, want.high), abs=1e-12)
    assert share.n == total


def test_nothing_to_count_is_no_number() -> None:
    share = proportion(0, 0)
    assert (share.value, share.ci_low, share.ci_high, share.n) == (None, None, None, 0)
    assert share.reason == "nothing to count"


@pytest.mark.parametrize(("part", "total"), [(2, 1), (-1, 4), (0, -1)])
def test_refuses_what_is_no_share(part: int, total: int) -> None:
    with pytest.raises(ValueError, match="between 0 and the whole"):
        proportion(part, total)
