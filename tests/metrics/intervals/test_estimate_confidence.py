import pytest
from scipy import stats
from scipy.special import ndtri

from auditor.metrics.intervals.estimate import (
    CONFIDENCE_LEVEL,
    LOWER_QUANTILE,
    NORMAL_QUANTILE,
    UPPER_QUANTILE,
    bonferroni_level,
    bound_p_value,
)


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
