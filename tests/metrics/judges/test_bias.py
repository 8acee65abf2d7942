"""Leniency, effects of exposures and regression of errors, against statsmodels and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.stats import t, t as student

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.judges.bias import (
    COLLINEAR_REASON,
    NO_COMPARISON_REASON,
    exposure_effects,
    later_half,
    leniency,
    regress_errors,
)
from tests.support.hand_jackknife import two_way_variance
from tests.support.judge_worlds import PanelWorld
from tests.support.known import known

NAN = float("nan")


def fit_with_statsmodels(verdicts: Floats, exposures: Floats | None = None) -> Floats:
    """Coefficients of the judges after the first, and of the exposures: least squares with one dummy per trace."""
    judge, trace = np.nonzero(~np.isnan(verdicts))
    judges = [(judge == j).astype(float) for j in range(1, len(verdicts))]
    exposed = [] if exposures is None else [exposures[judge, trace] * (judge == j) for j in range(len(verdicts))]
    traces = [(trace == i).astype(float) for i in np.unique(trace)]
    result = sm.OLS(verdicts[judge, trace], np.stack([*judges, *exposed, *traces], axis=1)).fit()
    return np.asarray(result.params[: len(judges) + len(exposed)])


def test_leniency_is_the_least_squares_fit_of_judges_and_traces() -> None:
    panel = PanelWorld(6, 5, 2, lenient=2.0, missing=0.4).draw(3)
    values = [difference.value or 0.0 for difference in leniency(panel.verdicts, panel.units)]
    expected = fit_with_statsmodels(panel.verdicts)
    assert [value - values[0] for value in values[1:]] == pytest.approx(expected.tolist(), abs=1e-9)


def test_the_effect_of_an_exposure_is_the_least_squares_fit() -> None:
    panel = PanelWorld(6, 5, 5, missing=0.3).draw(4)
    effects = exposure_effects(panel.verdicts, panel.is_own_family, panel.units)
    expected = fit_with_statsmodels(panel.verdicts, panel.is_own_family)[len(effects) - 1 :]
    assert [effect.value for effect in effects] == pytest.approx(expected.tolist(), abs=1e-9)
    assert all(effect.evidence == "association" for effect in effects)


def test_the_interval_of_an_exposure_is_the_jackknife_over_countries_and_topics() -> None:
    panel = PanelWorld(6, 5, 5).draw(5)
    [effect, *_] = exposure_effects(panel.verdicts, panel.is_own_family, panel.units)

    def refit(keep: NDArray[np.bool_]) -> float:
        return float(fit_with_statsmodels(panel.verdicts[:, keep], panel.is_own_family[:, keep])[4])

    std_error = two_way_variance(refit, **panel.units, cell=panel.units["country"] * 5 + panel.units["topic"]) ** 0.5
    half_width = student.ppf(0.975, 4) * std_error
    # The variance over cells is of first order.
    assert effect.ci_low == pytest.approx(known(effect.value) - half_width, abs=0.01 * half_width)
    assert effect.ci_high == pytest.approx(known(effect.value) + half_width, abs=0.01 * half_width)


def test_judges_far_apart_are_compared_with_the_one_in_the_middle() -> None:
    rng = np.random.default_rng(1)
    units = {"country": np.repeat(np.arange(10), 40), "topic": np.tile(np.arange(10), 40)}
    verdicts = np.stack([(rng.random(400) < p).astype(float) for p in (0.9, 0.5, 0.1)])
    lenient, middle, strict = leniency(verdicts, units)
    assert lenient.value == pytest.approx(verdicts[0].mean() - verdicts[1].mean())
    assert strict.value == pytest.approx(verdicts[2].mean() - verdicts[1].mean())
    assert (middle.value, middle.ci_low, middle.p_value) == (0.0, None, None)
    assert "median judge" in (middle.reason or "")
    assert (lenient.evidence, lenient.resampled) == ("panel", ("country", "topic"))


def test_what_cannot_be_compared_says_why() -> None:
    units = {"item": np.arange(20)}
    pair = leniency(np.random.default_rng(1).integers(0, 2, (2, 20)).astype(float), units)
    assert [difference.value for difference in pair] == [None, None]
    assert "needs 3 judges" in (pair[0].reason or "")
    verdicts = np.random.default_rng(2).integers(0, 2, (4, 20)).astype(float)
    verdicts[3] = NAN
    assert leniency(verdicts, units)[3].reason == NO_COMPARISON_REASON
    # Two groups of judges without a trace in common: the larger group is compared, the other is not.
    verdicts = np.random.default_rng(3).integers(0, 2, (5, 40)).astype(float)
    verdicts[:3, 20:] = verdicts[3:, :20] = NAN
    groups = leniency(verdicts, {"item": np.arange(40)})
    assert [difference.value is None for difference in groups] == [False, False, False, True, True]
    always_exposed = exposure_effects(verdicts[:3, :20], np.ones((3, 20)), units)
    assert [difference.value for difference in always_exposed] == [None] * 3
    few = leniency(np.random.default_rng(4).integers(0, 2, (3, 20)).astype(float), {"country": np.arange(20) % 4})
    assert all("5 countries" in (difference.reason or "") for difference in few if difference.value)
    assert leniency(np.full((3, 0), NAN), {"item": np.arange(0)})[0].value is None


def test_the_later_half_is_the_judges_own() -> None:
    times = np.array([[5.0, 1.0, 4.0, 2.0, NAN], [1.0, 2.0, 3.0, 4.0, 5.0]])
    verdicts = np.array([[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, NAN, 1.0, 1.0, 0.0]])
    assert later_half(times, verdicts) == pytest.approx(np.array([[1, 0, 1, 0, NAN], [0, NAN, 0, 1, 1]]), nan_ok=True)


def test_a_judge_that_tires_is_the_only_one_with_an_order_effect() -> None:
    """All judges see the traces in the same order; the later ones are better, and one judge becomes more lenient."""
    named = []
    for seed in range(20):
        panel = PanelWorld(20, 10, 4).draw(seed)
        late = later_half(panel.times, panel.verdicts)
        rng = np.random.default_rng(seed)
        verdicts = np.where((rng.random(panel.verdicts.shape) < 0.2) & (late == 1), 1.0, panel.verdicts)
        verdicts[0] = np.where((rng.random(verdicts.shape[1]) < 0.9) & (late[0] == 1), 1.0, verdicts[0])
        effects = adjust_tests(exposure_effects(verdicts, late, panel.units, relative_to_median=True), "order")
        named.append([i for i, effect in enumerate(effects) if effect.is_significant])
    assert sum(judges == [0] for judges in named) >= 19, named


def _rows(seed: int, n: int = 240) -> tuple[Floats, Floats, list[str], list[str], Floats]:
    """Errors that rise with the first predictor, and have effects of topics; the second is a property of topics."""
    rng = np.random.default_rng(seed)
    topic, country = rng.integers(0, 12, n), rng.integers(0, 9, n)
    x = np.column_stack([rng.normal(size=n), topic % 2])
    errors = 0.1 * x[:, 0] + 0.15 * rng.normal(size=12)[topic] + 0.3 * rng.normal(size=n)
    return errors, x, [f"c{i}" for i in country], [f"t{i}" for i in topic], rng.uniform(0.5, 2, n)


def test_coefficients_of_errors_are_those_of_statsmodels() -> None:
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
        half_width = known(effect.ci_high) - known(effect.value)
        assert half_width == pytest.approx(t.ppf(0.975, k - 1) * std_error)
        assert 0.9 * sandwich < half_width / t.ppf(0.975, k - 1) < 1.6 * sandwich
        assert (effect.p_value is not None and effect.p_value < 0.05) == (abs(known(effect.value)) > half_width)


def test_predictors_that_cannot_be_separated_have_no_effect() -> None:
    errors, x, countries, topics, _ = _rows(2)
    columns = np.column_stack([x, x[:, 0] + x[:, 1], np.ones(len(x))])
    effects = regress_errors(errors, columns, {"country": countries, "topic": topics})
    assert [effect.value is None for effect in effects] == [False, False, True, True]
    assert effects[2].reason == COLLINEAR_REASON


def test_errors_of_few_units_have_no_interval() -> None:
    errors, x, countries, _, _ = _rows(3)
    effects = regress_errors(errors, x, {"country": countries, "topic": ["a", "b"] * 120})
    assert effects[0].ci_low is None
    assert "at least 5 countries and 5 topics" in (effects[0].reason or "")


def test_wrong_arguments_of_the_regression_are_named() -> None:
    with pytest.raises(ValueError, match="must have the shape"):
        regress_errors(np.zeros(3), np.zeros(3), {"topic": ["a", "b", "c"]})
    with pytest.raises(ValueError, match="must be finite"):
        regress_errors(np.array([0.0, np.nan]), np.zeros((2, 1)), {"topic": ["a", "b"]})
