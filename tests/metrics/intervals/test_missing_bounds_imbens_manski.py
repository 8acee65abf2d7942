from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from auditor.metrics.intervals.jackknife_interval import FISHER_Z, IDENTITY, JackknifeInterval, Transform
from auditor.metrics.intervals.missing_bounds import imbens_manski_interval

DF = 12


def bound(
    centre: float | None, std_error: float | None = 1.0, df: int = DF, transform: Transform = IDENTITY
) -> JackknifeInterval:
    """A bound with this centre and standard error."""
    if centre is None or std_error is None:
        return JackknifeInterval(None, None, reason="no standard error")

    def compute_ends(quantile: float) -> tuple[float, float]:
        low, high = transform.inverse(centre + np.array([-quantile, quantile]) * std_error)
        return float(low), float(high)

    return JackknifeInterval(None, None, centre, std_error, df, ends_at=compute_ends)


def test_without_a_loss_it_is_the_two_sided_interval() -> None:
    quantile = t.ppf(0.975, DF)
    assert imbens_manski_interval(bound(0.3), bound(0.3)) == pytest.approx((0.3 - quantile, 0.3 + quantile))


def test_far_apart_bounds_have_one_sided_ends() -> None:
    ends = imbens_manski_interval(bound(0.0, 0.1), bound(50.0, 0.2))
    assert ends == pytest.approx((-0.1 * t.ppf(0.95, DF), 50 + 0.2 * t.ppf(0.95, DF)))
    exact = imbens_manski_interval(bound(-np.inf, 0.0), bound(0.5, 0.1))
    assert exact == pytest.approx((-np.inf, 0.5 + 0.1 * t.ppf(0.95, DF)))


@pytest.mark.parametrize("width", [0.1, 0.5, 1.0, 3.0])
def test_the_quantile_solves_the_equation_of_the_paper(width: float) -> None:
    ends = imbens_manski_interval(bound(0.0, 0.5, df=10**7), bound(width, 1.0, df=10**7))
    assert ends is not None
    c = -ends[0] / 0.5
    assert norm.cdf(c + width) - norm.cdf(-c) == pytest.approx(0.95, abs=1e-6)
    assert ends[1] == pytest.approx(width + c)


def test_estimated_bounds_in_the_wrong_order_count_as_equal() -> None:
    quantile = t.ppf(0.975, DF)
    assert imbens_manski_interval(bound(0.2), bound(0.1)) == pytest.approx((0.2 - quantile, 0.1 + quantile))


def test_ends_are_on_the_scale_of_the_statistic_and_at_other_levels() -> None:
    low, high = bound(0.5, 0.1, transform=FISHER_Z), bound(0.5, 0.1, transform=FISHER_Z)
    half_width = 0.1 * t.ppf(0.995, DF)
    ends = imbens_manski_interval(low, high, confidence_level=0.99)
    assert ends == pytest.approx((np.tanh(0.5 - half_width), np.tanh(0.5 + half_width)))


def test_a_bound_without_an_error_gives_no_interval() -> None:
    assert imbens_manski_interval(bound(None, None), bound(1.0)) is None
    assert imbens_manski_interval(bound(1.0), bound(None, None)) is None


def test_it_covers_the_figure_wherever_it_lies_and_intervals_of_one_bound_do_not() -> None:
    rng = np.random.default_rng(0)
    for width in (0.0, 0.3, 2.0):
        for true_value in (0.0, width / 2, width):
            n_covered = n_naive = 0
            for error in rng.standard_normal(2000):
                # The bounds of one table err together.
                ends = imbens_manski_interval(bound(error, df=10**6), bound(width + error, df=10**6))
                assert ends is not None
                n_covered += ends[0] <= true_value <= ends[1]
                n_naive += abs(width / 2 + error - true_value) <= 1.96
            assert n_covered / 2000 >= 0.94
            if width == 2.0 and true_value != width / 2:
                assert n_naive / 2000 < 0.9  # the interval around the middle of the bounds
