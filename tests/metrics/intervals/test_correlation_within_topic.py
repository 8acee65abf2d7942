"""Agreement within topics: against scipy, on a model that knows nothing of countries, and where nothing can be said."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.correlation import within_topic_correlation
from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import PEARSON
from tests.support.two_way_tables import World


def test_it_is_pearson_s_r_of_what_is_left_when_each_topic_s_mean_is_out() -> None:
    world = World(1, 9, 6)
    scores = world.first.copy()
    scores[[3, 17]] = np.nan
    is_scored = ~np.isnan(scores)
    topics = world.topics[is_scored]
    left = [
        values - np.array([values[topics == t].mean() for t in topics])
        for values in (scores[is_scored], world.truth[is_scored])
    ]
    correlation = within_topic_correlation(scores, world.truth, world.countries, world.topics)
    assert correlation.value == pytest.approx(stats.pearsonr(*left).statistic)
    assert correlation.n == 52
    assert correlation.ci_low is not None
    assert correlation.ci_high is not None
    assert -1 < correlation.ci_low < (correlation.value or 0) < correlation.ci_high < 1


def test_what_topics_are_like_everywhere_adds_nothing() -> None:
    world = World(2, 12, 8)
    moved = world.first + 3.0 * np.sin(world.topics)
    for scores in (world.first, moved):
        correlation = within_topic_correlation(scores, world.truth, world.countries, world.topics)
        assert correlation.value == pytest.approx(
            within_topic_correlation(world.first, world.truth, world.countries, world.topics).value, abs=1e-9
        )


def test_of_a_model_that_knows_topics_only_the_interval_holds_0_in_19_of_20_runs() -> None:
    held = []
    for seed in range(200):
        world = World(seed, 20, 8)
        noise = np.random.default_rng(1000 + seed).normal(size=world.truth.size)
        scores = np.cos(world.topics) + 0.01 * noise
        correlation = within_topic_correlation(scores, world.truth, world.countries, world.topics)
        assert correlation.ci_low is not None
        assert correlation.ci_high is not None
        held.append(correlation.ci_low <= 0 <= correlation.ci_high)
        assert (correlation.p_value is not None and correlation.p_value >= 0.05) == held[-1]
    assert 0.92 <= np.mean(held) <= 0.99


def test_the_same_everywhere_is_no_correlation_but_a_reason() -> None:
    world = World(3, 8, 6)
    constant = np.cos(world.topics) * 0.3
    correlation = within_topic_correlation(constant, world.truth, world.countries, world.topics)
    assert (correlation.value, correlation.ci_low, correlation.p_value) == (None, None, None)
    assert correlation.reason == "scores constant within topics"
    assert within_topic_correlation(constant, constant, world.countries, world.topics).reason == (
        "scores and truth constant within topics"
    )
    assert within_topic_correlation([], [], [], []).reason == "no cell has all its values"


@pytest.mark.parametrize("sign", [1, -1])
def test_p_is_below_5_percent_just_where_the_interval_leaves_out_0(sign: int) -> None:
    sizes = []
    for seed in range(40):
        world = World(seed, 12, 7)
        scores = sign * world.truth * 0.4 + 0.9 * (world.first - world.truth)
        estimate = crossed_jackknife(PEARSON, scores, world.truth, world.countries, world.topics)
        p = estimate.p_value
        assert p is not None
        assert estimate.ci_low is not None
        assert estimate.ci_high is not None
        assert (p < 0.05) == (estimate.ci_low > 0 or estimate.ci_high < 0)
        sizes.append(p < 0.05)
    assert 0 < sum(sizes) < len(sizes)


def test_without_an_interval_there_is_no_p() -> None:
    world = World(4, 4, 9)
    estimate = crossed_jackknife(PEARSON, world.first, world.truth, world.countries, world.topics)
    assert estimate.value is not None
    assert estimate.p_value is None
