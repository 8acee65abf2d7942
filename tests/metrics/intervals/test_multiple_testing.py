from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests

from auditor.metrics.intervals.multiple_testing import benjamini_yekutieli, holm, intersection_union

NAN = float("nan")


def test_holm_is_statsmodels() -> None:
    for seed in range(5):
        p = np.random.default_rng(seed).beta(0.5, 3, size=12)
        p[3] = p[4]
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-15)


def test_weights_give_a_test_a_larger_share_of_the_error() -> None:
    p = [0.03, 0.004, NAN, 0.5]
    assert holm(p, [1, 1, 1, 1]) == pytest.approx(holm(p), nan_ok=True)
    # 0.03 / 0.8 is before 0.004 / 0.1, as a share of the weight of 1 (that of the missing test counts nowhere)
    assert holm(p, [0.8, 0.1, 0.3, 0.1]) == pytest.approx([0.0375, 0.0375, NAN, 0.5], nan_ok=True)
    for weights in ([1, 1], [1, 1, 1, 0]):
        with pytest.raises(ValueError, match="weights"):
            holm(p, weights)


def test_holm_counts_only_tests() -> None:
    # 0.01 * 3, 0.02 * 2, max(0.04, 0.03 * 1)
    assert holm([0.02, NAN, 0.01, 0.03]) == pytest.approx([0.04, NAN, 0.03, 0.04], nan_ok=True)
    assert holm([]).size == 0
    assert np.isnan(holm([NAN])).all()
    with pytest.raises(ValueError, match="p-values"):
        holm([0.5, 1.2])


def test_benjamini_yekutieli_is_scipys() -> None:
    for seed in range(5):
        p = np.random.default_rng(seed).beta(0.5, 3, size=12)
        p[3] = p[4]
        assert benjamini_yekutieli(p) == pytest.approx(false_discovery_control(p, method="by"), abs=1e-15)


def test_benjamini_yekutieli_counts_only_tests() -> None:
    # The sum 1 + 1/2 = 1.5: the smallest of 0.01 * 2 * 1.5 / 1 and 0.02 * 2 * 1.5 / 2, and the latter.
    assert benjamini_yekutieli([0.02, NAN, 0.01]) == pytest.approx([0.03, NAN, 0.03], nan_ok=True)
    assert benjamini_yekutieli([]).size == 0
    with pytest.raises(ValueError, match="p-values"):
        benjamini_yekutieli([-0.1])


def test_a_claim_over_several_comparisons_is_as_weak_as_the_weakest() -> None:
    assert intersection_union([0.01, 0.04, 0.002]) == 0.04
    assert np.isnan(intersection_union([0.01, NAN]))
    assert np.isnan(intersection_union([]))
