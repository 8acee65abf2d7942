"""Verdicts of two sides: intervals and tests over countries and topics, whose verdicts are alike."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.judges.agreement import fleiss_kappa
from auditor.metrics.judges.consistency import compare_verdicts_over_units

Floats = NDArray[np.float64]


def _units(n_countries: int, n_topics: int) -> dict[str, NDArray[np.intp]]:
    return {"country": np.repeat(np.arange(n_countries), n_topics), "topic": np.tile(np.arange(n_topics), n_countries)}


def test_scotts_pi_and_its_interval_are_fleiss_kappa_of_two() -> None:
    one_each = np.random.default_rng(0).permutation(np.repeat(np.eye(4), [20, 9, 16, 15], axis=0))
    units = _units(10, 6)
    flips = compare_verdicts_over_units(one_each, units)
    assert flips.change.value == pytest.approx(-7 / 60)
    assert (flips.change.n, flips.kappa.n) == (60, 60)
    counts = one_each @ [[2, 0], [1, 1], [1, 1], [0, 2]]
    assert flips.kappa.value == pytest.approx(fleiss_kappa(counts).value)
    kappa = fleiss_kappa(counts, units=units)
    assert (flips.kappa.ci_low, flips.kappa.ci_high) == pytest.approx((kappa.ci_low, kappa.ci_high))
    assert flips.kappa.generalizes_to == "other countries and topics like these"


def test_kappa_has_no_interval_where_the_rarer_verdict_is_in_few_countries() -> None:
    units = _units(6, 5)
    counts = np.tile([4, 0, 0, 0], (30, 1))
    counts[units["country"] < 4] = [2, 1, 0, 1]
    flips = compare_verdicts_over_units(counts, units)
    assert (flips.kappa.ci_low, flips.kappa.ci_high) == (None, None)
    assert flips.kappa.reason == (
        "the rarer of the two ratings occurs in fewer than 5 countries, too few for an interval for other countries "
        "and topics"
    )
    assert flips.change.ci_low is not None


def test_many_judges_of_one_trace_are_no_more_cells() -> None:
    rng, units = np.random.default_rng(1), _units(8, 5)
    once = rng.multinomial(1, [0.4, 0.25, 0.1, 0.25], 40)
    one, ten = compare_verdicts_over_units(once, units), compare_verdicts_over_units(10 * once, units)
    assert (one.change.n, ten.change.n) == (40, 400)
    assert (one.change.ci_low, one.change.ci_high) == pytest.approx((ten.change.ci_low, ten.change.ci_high))
    assert (one.kappa.ci_low, one.change.p_value) == pytest.approx((ten.kappa.ci_low, ten.change.p_value))


def _two_judges(rng: np.random.Generator, n_countries: int, n_topics: int) -> Floats:
    """Counts by cell of two equally lenient judges, each with its own view of each topic."""
    country, topic = rng.normal(size=(n_countries, 1)), rng.normal(size=(1, n_topics))
    judge_topic, noise = rng.normal(size=(2, 1, n_topics)), rng.normal(size=(4, 2, n_countries, n_topics))
    quality = 0.4 * country + 0.5 * topic + rng.normal(size=(4, 1, n_countries, n_topics))
    first, second = (quality + judge_topic + 0.7 * noise > 0).transpose(1, 0, 2, 3).reshape(2, 4, -1)
    kinds = (first & second, ~first & second, first & ~second, ~first & ~second)
    return np.stack([kind.sum(axis=0) for kind in kinds], axis=1).astype(float)


def _sign_flip_p_value(differences: Floats, rng: np.random.Generator) -> float:
    """The test over cells that was used before: the negative control."""
    signs = rng.integers(0, 2, (999, len(differences))) * 2 - 1
    return float((1 + np.sum(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9)) / 1000)


def test_judges_with_their_own_views_of_topics_are_not_found_more_lenient() -> None:
    n_runs, rejected, rejected_over_cells, units = 200, 0, 0, _units(20, 10)
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        counts = _two_judges(rng, 20, 10)
        p_value = compare_verdicts_over_units(counts, units).change.p_value
        assert p_value is not None
        rejected += p_value < 0.05
        rejected_over_cells += _sign_flip_p_value(counts[:, 1] - counts[:, 2], rng) < 0.05
    assert rejected / n_runs < 0.09
    assert rejected_over_cells / n_runs > 0.4


def test_missing_figures_have_a_reason() -> None:
    units = _units(6, 5)
    assert compare_verdicts_over_units(np.zeros((0, 4)), {"item": []}).change.reason == "no verdict on both sides"
    same = compare_verdicts_over_units([[3, 0, 0, 0]] * 30, units)
    assert (same.change.value, same.kappa.value) == (0.0, None)
    assert same.kappa.reason == "all verdicts are the same"
    few = compare_verdicts_over_units([[3, 1, 0, 2]] * 12, _units(4, 3))
    assert (few.change.ci_low, few.kappa.ci_low, few.change.p_value) == (None, None, None)
    assert "but there are 4 countries and 3 topics" in str(few.change.reason)
    with pytest.raises(ValueError, match="at least 0"):
        compare_verdicts_over_units([[1, -1, 0, 0]], {"item": [1]})
