"""Leniency and effects of exposures, against statsmodels and by hand, and named biases in simulated panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.stats import t as student

from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.judges.accuracy import JudgeDifference, length_association
from auditor.metrics.judges.bias import NO_COMPARISON_REASON, exposure_effects, later_half, leniency
from tests.support.judge_worlds import Panel, PanelWorld

Floats = NDArray[np.float64]
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
    panel = PanelWorld(7, 6, 5).draw(5)
    [effect, *_] = exposure_effects(panel.verdicts, panel.is_own_family, panel.units)

    def refit(keep: NDArray[np.bool_]) -> float:
        return float(fit_with_statsmodels(panel.verdicts[:, keep], panel.is_own_family[:, keep])[4])

    variances = []
    for labels in (*panel.units.values(), panel.units["country"] * 6 + panel.units["topic"]):
        without = np.array([refit(labels != unit) for unit in np.unique(labels)])
        variances.append((len(without) - 1) ** 2 / len(without) * without.var(ddof=1))
    by_country, by_topic, by_cell = variances
    std_error = np.sqrt(max(by_country + by_topic - by_cell / 2, by_country, by_topic))
    assert effect.value is not None
    half_width = student.ppf(0.975, 5) * std_error
    # The variance over cells is of first order.
    assert effect.ci_low == pytest.approx(effect.value - half_width, abs=0.01 * half_width)
    assert effect.ci_high == pytest.approx(effect.value + half_width, abs=0.01 * half_width)


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


# --- named biases --------------------------------------------------------------------------------------------------


def name_judges(panel: Panel) -> dict[str, list[int]]:
    """Judges with a significant difference, by kind, adjusted over judges and kinds as in a report."""
    differences: Mapping[str, Sequence[JudgeDifference]] = {
        "leniency": leniency(panel.verdicts, panel.units),
        "verbosity": length_association(panel.verdicts, panel.is_longer, panel.units),
        "own_family": exposure_effects(panel.verdicts, panel.is_own_family, panel.units),
        "order": exposure_effects(
            panel.verdicts, later_half(panel.times, panel.verdicts), panel.units, relative_to_median=True
        ),
    }
    adjusted = iter(adjust_tests((difference for column in differences.values() for difference in column), "bias"))
    return {
        kind: [i for i, difference in enumerate(next(adjusted) for _ in column) if difference.is_significant]
        for kind, column in differences.items()
    }


@pytest.mark.parametrize(
    ("world", "planted"),
    [
        (PanelWorld(55, 19, 1, lenient=1.0), [0]),
        (PanelWorld(20, 10, 4, lenient=2.5), [0]),
        (PanelWorld(10, 8, 6, lenient=4.0), [0]),
        (PanelWorld(20, 10, 4, lenient=2.5, copied=0.9), [0]),
        (PanelWorld(20, 10, 4, lenient=3.0, missing=0.3, quality_by_length=0.6), [0]),
        (PanelWorld(20, 10, 4), []),
        (PanelWorld(20, 10, 4, judge_by_topic=1.0), []),
        (PanelWorld(10, 8, 6, quality_by_length=0.6, judge_by_topic=1.0), []),
    ],
)
def test_only_the_lenient_judge_is_named(world: PanelWorld, planted: list[int]) -> None:
    runs = 40
    named = [name_judges(world.draw(seed)) for seed in range(runs)]
    kinds = ("leniency", "own_family", "order")
    correct = sum([names[kind] for kind in kinds] == [planted, [], []] for names in named)
    assert correct >= 0.95 * runs, [names["leniency"] for names in named]


def test_the_mean_of_the_others_names_honest_judges() -> None:
    """Negative control: compared with the mean of the others, honest judges look strict beside a lenient one."""
    n_named = 0
    for seed in range(20):
        panel = PanelWorld(20, 10, 4, lenient=2.5).draw(seed)
        others = (panel.verdicts.sum(axis=0) - panel.verdicts) / 4
        cell = panel.units["country"] * 10 + panel.units["topic"]
        excess = np.array([np.bincount(cell, row) for row in panel.verdicts - others])
        t = excess.mean(axis=1) / (excess.std(axis=1, ddof=1) / np.sqrt(excess.shape[1]))
        n_named += bool((t[1:] < -student.ppf(1 - 0.025 / 5, 199)).any())
    assert n_named >= 18


@pytest.mark.parametrize("lenient", [0.0, 2.0])
def test_intervals_hold_the_leniency_over_other_countries_and_topics(lenient: float) -> None:
    world = PanelWorld(20, 10, 3, lenient=lenient, judge_by_topic=0.8)
    large_world = PanelWorld(60, 60, 1, lenient=lenient, judge_by_topic=0.8)
    shares = np.mean([large_world.draw(seed).verdicts.mean(axis=1) for seed in range(60)], axis=0)
    truth = [shares[0] - shares[1:].mean() if lenient else 0.0, 0.0]  # of the first judge, of the others
    held = {0: [0, 0], 1: [0, 0]}
    for seed in range(150):
        panel = world.draw(seed)
        for i, difference in enumerate(leniency(panel.verdicts, panel.units)):
            if difference.ci_low is not None and difference.ci_high is not None:
                counts = held[min(i, 1)]
                counts[0] += difference.ci_low <= truth[min(i, 1)] <= difference.ci_high
                counts[1] += 1
    assert all(hits / n >= 0.92 for hits, n in held.values()), held
