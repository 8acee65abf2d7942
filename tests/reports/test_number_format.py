"""Number formats of the reports."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.metrics.intervals.unit_means import share_over_units
from auditor.reports.number_format import (
    MINUS_SIGN,
    MISSING_SYMBOL,
    describe_estimate,
    describe_interval,
    describe_points,
    format_count,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    format_share,
    format_signed,
    format_styled,
    format_usd,
)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (format_number(-0.5), "−0.50"), (format_number(-0.001), "0.00"), (format_number(None), "–"),
        (format_styled(-3, "signed", 3), "−3"), (format_styled(-3.0, "signed", 3), "−3.000"),
        (format_signed(0.5), "+0.50"), (format_signed(-0.004), "0.00"), (format_signed(None), "–"),
        (format_interval(-1, 0.5), "−1.00 to 0.50"), (format_interval(None, 1), "–"),
        (format_p_value(0.0), "< 0.001"), (format_p_value(0.0125), "0.013"), (format_p_value(None), "–"),
        (format_percent(0, 0), "–"), (format_percent(1, 1000), "< 1%"), (format_percent(999, 1000), "> 99%"),
        (format_percent(0, 5), "0%"), (format_percent(5, 5), "100%"), (format_percent(1, 3), "33%"),
        (format_share(0.254), "25%"), (format_share(None), "–"),
        (format_share(0.996), "> 99%"), (format_share(0.004), "< 1%"),
        (format_count(1234567), "1\u202f234\u202f567"), (format_usd(None), "unknown"), (format_usd(0.0), "$0.00"),
        (format_usd(0.0123, True), "≥ $0.0123"), (format_usd(1234.5), "$1,234.50"),
    ],
)  # fmt: skip
def test_numbers_are_formatted_for_readers(shown: str, text: str) -> None:
    assert shown == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.012, "+1 percentage point"),
        (-0.009, f"{MINUS_SIGN}1 percentage point"),
        (0.0, "0 percentage points"),
        (0.11, "+11 percentage points"),
        (None, f"{MISSING_SYMBOL} percentage points"),
    ],
)
def test_one_point_is_singular(share: float | None, text: str) -> None:
    assert describe_points(share) == text


def test_the_number_of_observations_is_outside_of_a_reason() -> None:
    without = Estimate(0.5, 93, reason="an interval needs at least 5 countries, but there are 4 countries")
    assert describe_estimate("r", without, "cell") == (
        "r = 0.50, 93 cells, no 95% CI: an interval needs at least 5 countries, but there are 4 countries"
    )
    assert describe_estimate("r", Estimate(0.5, 93, 0.2, 0.8), "cell") == "r = 0.50, 95% CI 0.20 to 0.80, 93 cells"


def test_the_two_intervals_of_a_share_are_named_where_they_differ() -> None:
    population = ("country", "topic")
    both = ShareEstimate(0.5, 9, 0.2, 0.8, None, population, cells_ci_low=0.4, cells_ci_high=0.6)
    assert describe_interval(both, 0, "percent") == (
        "95% CI 20% to 80% for other countries and topics like these, 40% to 60% for these cells"
    )
    equal = ShareEstimate(0.5, 9, 0.2, 0.8, None, population, cells_ci_low=0.2001, cells_ci_high=0.8)
    assert describe_interval(equal) == "95% CI 0.20 to 0.80"
    items = ShareEstimate(0.5, 9, 0.2, 0.8, None, ("item",), cells_ci_low=0.4, cells_ci_high=0.6)
    assert describe_interval(items) == "95% CI 0.20 to 0.80 for other items like these, 0.40 to 0.60 for these items"
    cells_only = ShareEstimate(0.5, 9, reason="too few topics", cells_ci_low=0.4, cells_ci_high=0.6)
    assert describe_interval(cells_only) == "no 95% CI: too few topics; 95% CI for these cells only: 0.40 to 0.60"


@pytest.mark.parametrize(("unit", "cells"), [("item", "items"), ("question", "questions"), ("country", "cells")])
@pytest.mark.parametrize("n", [1, 4])
def test_a_share_of_too_few_units_names_them(unit: str, cells: str, n: int) -> None:
    share = share_over_units([1] * n, [2] * n, {unit: range(n)})
    assert f"; 95% CI for these {cells} only: " in describe_interval(share)
