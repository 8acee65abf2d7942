from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import t

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.judges.bias import COLLINEAR_REASON, regress_errors


def _rows(seed: int, n: int = 240) -> tuple[Floats, Floats, list[str], list[str], Floats]:
    """Errors that rise with the first predictor, and have effects of topics; the second is a property of topics."""
    rng = np.random.default_rng(seed)
    topic, country = rng.integers(0, 12, n), rng.integers(0, 9, n)
    x = np.column_stack([rng.normal(size=n), topic % 2])
    errors = 0.1 * x[:, 0] + 0.15 * rng.normal(size=12)[topic] + 0.3 * rng.normal(size=n)
    return errors, x, [f"c{i}" for i in country], [f"t{i}" for i in topic], rng.uniform(0.5, 2, n)


def test_coefficients_are_those_of_statsmodels() -> None:
    errors, x, countries, topics, weights = _rows(0)
    effects = regress_errors(errors, x, {"country": countries, "topic": topics}, weights=weights)
    fitted = sm.WLS(errors, sm.add_constant(x), weights=weights).fit()
    assert [effect.value for effect in effects] == pytest.approx(fitted.params[1:].tolist())


def test_the_interval_over_topics_is_the_jackknife_of_statsmodels_fits() -> None:
    errors, x, _, topics, weights = _rows(1)
    effects = regress_errors(errors, x, {"topic": topics}, weights=weights)
    names = np.array(topics)
    replicates = np.array(
        [
            sm.WLS(errors[names != name], sm.add_constant(x[names != name]), weights=weights[names != name])
            .fit()
            .params
            for name in np.unique(names)
        ]
    )
    k = len(replicates)
    std_errors = ((k - 1) / k * ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0)) ** 0.5
    robust = sm.WLS(errors, sm.add_constant(x), weights=weights).fit(
        cov_type="cluster", cov_kwds={"groups": np.unique(names, return_inverse=True)[1]}
    )
    for effect, std_error, sandwich in zip(effects, std_errors[1:], robust.bse[1:], strict=True):
        assert effect.ci_high is not None
        assert effect.value is not None
        half_width = effect.ci_high - effect.value
        assert half_width == pytest.approx(t.ppf(0.975, k - 1) * std_error)
        assert 0.9 * sandwich < half_width / t.ppf(0.975, k - 1) < 1.6 * sandwich
        assert (effect.p_value is not None and effect.p_value < 0.05) == (abs(effect.value) > half_width)


def test_an_effect_of_topics_is_seldom_called_significant() -> None:
    n_named = 0
    for seed in range(200):
        errors, x, countries, topics, _ = _rows(seed)
        effect = regress_errors(errors, x, {"country": countries, "topic": topics})[1]
        assert effect.p_value is not None
        n_named += effect.p_value < 0.05
    assert n_named <= 18  # 5% of 200, and 2.6 standard errors
    fits = [sm.OLS(row[0], sm.add_constant(row[1])).fit() for row in map(_rows, range(200))]
    assert sum(fit.pvalues[2] < 0.05 for fit in fits) > 40


def test_predictors_that_cannot_be_separated_have_no_effect() -> None:
    errors, x, countries, topics, _ = _rows(2)
    columns = np.column_stack([x, x[:, 0] + x[:, 1], np.ones(len(x))])
    effects = regress_errors(errors, columns, {"country": countries, "topic": topics})
    assert [effect.value is None for effect in effects] == [False, False, True, True]
    assert effects[2].reason == COLLINEAR_REASON


def test_few_units_have_no_interval() -> None:
    errors, x, countries, _, _ = _rows(3)
    effects = regress_errors(errors, x, {"country": countries, "topic": ["a", "b"] * 120})
    assert effects[0].ci_low is None
    assert "at least 5 countries and 5 topics" in (effects[0].reason or "")


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="must have the shape"):
        regress_errors(np.zeros(3), np.zeros(3), {"topic": ["a", "b", "c"]})
    with pytest.raises(ValueError, match="must be finite"):
        regress_errors(np.array([0.0, np.nan]), np.zeros((2, 1)), {"topic": ["a", "b"]})
