"""Counts and shares of several audits together."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Estimate, pool_shares, sum_counts


def known(value: float, n: int) -> Estimate:
    return Estimate(value, n, reason="no interval")


NOTHING = Estimate(None, 0, reason="none")


def test_counts_are_added() -> None:
    total = sum_counts([known(3, 48), known(5, 40)])
    assert (total.value, total.n, total.ci_low) == (8, 88, None)
    assert total.reason


def test_a_pooled_share_is_that_in_all_cases() -> None:
    cases = [np.array([1, 0, 0, 1]), np.array([1, 1, 0, 1, 1, 1])]
    pooled = pool_shares([known(float(of_audit.mean()), len(of_audit)) for of_audit in cases])
    assert pooled.value == pytest.approx(np.concatenate(cases).mean())
    assert (pooled.n, pooled.ci_low) == (10, None)
    assert pooled.reason


def test_an_audit_without_a_case_has_no_weight() -> None:
    assert pool_shares([known(0.25, 8), NOTHING]).value == 0.25
    assert pool_shares([known(0.25, 8), NOTHING]).n == 8


def test_what_is_missing_is_never_left_out() -> None:
    for counts in ([], [known(3, 48), NOTHING]):
        with pytest.raises(ValueError, match="every audit must have a count"):
            sum_counts(counts)
    for shares in ([], [NOTHING], [known(0.25, 8), Estimate(None, 4, reason="none")]):
        with pytest.raises(ValueError, match="every audit with cases must have a share"):
            pool_shares(shares)
