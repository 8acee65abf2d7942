from __future__ import annotations

import pytest
from statsmodels.stats.proportion import proportion_confint

from auditor.metrics.share import Share, wilson_share


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 10), (3, 10), (517, 1000)])
def test_interval_is_wilsons(hits: int, n: int) -> None:
    share = wilson_share(hits, n, lost=2)
    assert (share.value, share.n, share.lost) == (hits / n, n, 2)
    assert (share.ci_low, share.ci_high) == pytest.approx(proportion_confint(hits, n, method="wilson"), abs=1e-12)


def test_nothing_measured_has_no_share() -> None:
    assert wilson_share(0, 0, lost=4) == Share(None, 0, None, None, "nothing to count", 4)


def test_more_hits_than_cases_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        wilson_share(3, 2)
