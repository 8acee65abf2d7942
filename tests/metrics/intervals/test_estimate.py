"""An estimate says why it lacks a value or an interval; levels, shares and pooled counts are those of scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from scipy import stats
from scipy.special import ndtri

from auditor.metrics.intervals.estimate import (
    CONFIDENCE_LEVEL,
    LOWER_QUANTILE,
    NORMAL_QUANTILE,
    UPPER_QUANTILE,
    Estimate,
    Tested,
    bonferroni_level,
    bound_p_value,
    pool_shares,
    proportion,
    sum_counts,
)


@pytest.mark.parametrize(("value", "reason", "message"), [
    (None, None, "needs a reason"),
    (0.5, None, "needs a reason"),
    (float("nan"), "no scores", "not finite"),
    (float("inf"), "no scores", "not finite"),
])  # fmt: skip
def test_a_figure_that_is_missing_or_not_finite_is_refused(
    value: float | None, reason: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Estimate(value, 1, reason=reason)


@pytest.mark.parametrize("fields", [
    {"value": None, "n": 0},
    {"value": float("nan"), "n": 1, "reason": "no scores"},
    {"value": 0.5, "n": 1, "reason": "one cell", "unknown_key": 1},
])  # fmt: skip
def test_pydantic_refuses_what_the_class_refuses_and_unknown_keys(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Estimate).validate_python(fields)


def test_an_estimate_survives_json() -> None:
    adapter = TypeAdapter(Estimate)
    estimate = Estimate(0.5, 25, 0.31, 0.68)
    assert adapter.validate_json(adapter.dump_json(estimate)) == estimate


def test_json_has_the_figures_of_the_type_of_the_field() -> None:
    tested = Tested(0.5, 3, 0.1, 0.9, resampled=("item",), p_value=0.04)
    [stored] = TypeAdapter(list[Estimate]).dump_python([tested], mode="json")
    assert "p_value" not in stored
    assert TypeAdapter(Tested).dump_python(tested, mode="json")["p_value"] == 0.04


def test_the_level_is_95_percent_without_rounding_errors() -> None:
    assert (LOWER_QUANTILE, CONFIDENCE_LEVEL, UPPER_QUANTILE) == (0.025, 0.95, 0.975)


def test_the_normal_quantile_is_that_of_scipy() -> None:
    assert pytest.approx(ndtri(UPPER_QUANTILE), rel=1e-15) == NORMAL_QUANTILE


def test_bonferroni_divides_the_error_rate() -> None:
    assert bonferroni_level(1) == CONFIDENCE_LEVEL
    assert bonferroni_level(10) == pytest.approx(0.995)


@pytest.mark.parametrize("df", [4, 5, 11, 1000])
@pytest.mark.parametrize("multiple", [1.0, 1.5, 3.0])
def test_the_p_value_of_an_interval_is_never_below_that_of_its_test(df: int, multiple: float) -> None:
    half_width = stats.t.ppf(0.975, df)
    p_value = bound_p_value(multiple * half_width, (multiple - 1) * half_width, (multiple + 1) * half_width)
    exact = 2 * stats.t.sf(multiple * half_width, df)
    assert p_value == pytest.approx(exact) if df == 4 or multiple == 1 else p_value > exact


def test_an_interval_without_length_excludes_any_other_value() -> None:
    assert bound_p_value(0.5, 0.5, 0.5) == 0
    assert bound_p_value(0.5, 0.5, 0.5, reference=0.5) == 1


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


@pytest.mark.parametrize(("part", "total"), [(0, 1), (0, 10), (10, 10), (1, 3), (263, 1000), (81, 83)])
def test_a_proportion_is_scipys(part: int, total: int) -> None:
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
def test_what_is_no_share_is_refused(part: int, total: int) -> None:
    with pytest.raises(ValueError, match="between 0 and the whole"):
        proportion(part, total)
