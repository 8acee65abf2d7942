from __future__ import annotations

import pytest
from statsmodels.stats.proportion import proportion_confint

from auditor.metrics.share import Share, mean_share, wilson_share


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 10), (3, 10), (517, 1000)])
def test_interval_is_wilsons_also_for_means_that_are_whole(hits: int, n: int) -> None:
    share = wilson_share(hits, n, lost=2)
    assert (share.value, share.n, share.lost) == (hits / n, n, 2)
    assert (share.ci_low, share.ci_high) == pytest.approx(proportion_confint(hits, n, method="wilson"), abs=1e-12)
    assert mean_share(float(hits), n, lost=2) == share


def test_a_mean_of_fractions_has_the_wider_bounds() -> None:
    share = mean_share(3.5, 10)
    assert share.value == 0.35
    assert share.ci_low == wilson_share(3, 10).ci_low
    assert share.ci_high == wilson_share(4, 10).ci_high


def test_nothing_measured_has_no_share() -> None:
    assert wilson_share(0, 0, lost=4) == mean_share(0.0, 0, lost=4) == Share(None, 0, None, None, "nothing to count", 4)


def test_more_hits_than_cases_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        wilson_share(3, 2)
