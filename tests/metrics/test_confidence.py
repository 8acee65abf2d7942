import pytest
from scipy.special import ndtri

from auditor.metrics.confidence import (
    CONFIDENCE_LEVEL,
    LOWER_QUANTILE,
    NORMAL_QUANTILE,
    UPPER_QUANTILE,
    bonferroni_level,
)


def test_the_level_is_95_percent_without_rounding_errors() -> None:
    assert (LOWER_QUANTILE, CONFIDENCE_LEVEL, UPPER_QUANTILE) == (0.025, 0.95, 0.975)


def test_the_normal_quantile_is_that_of_scipy() -> None:
    assert pytest.approx(ndtri(UPPER_QUANTILE), rel=1e-15) == NORMAL_QUANTILE


def test_bonferroni_divides_the_error_rate() -> None:
    assert bonferroni_level(1) == CONFIDENCE_LEVEL
    assert bonferroni_level(10) == pytest.approx(0.995)
