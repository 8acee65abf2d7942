"""Shares and means over cells that hang together: by hand, and their intervals by simulation."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from auditor.metrics.proportion import proportion
from auditor.metrics.two_way_means import CELLS_LABEL, TWO_WAY_LABEL, two_way_mean, two_way_share
from tests.support.two_way_tables import World


def test_a_share_counts_cases_and_cells_may_come_in_parts() -> None:
    rng = np.random.default_rng(0)
    country, topic = (i.ravel() for i in np.indices((8, 6)))
    total = rng.integers(0, 5, 48)
    hits = rng.binomial(total, 0.7)
    share = two_way_share(hits, total, country, topic)
    assert (share.value, share.n, share.over) == (hits.sum() / total.sum(), total.sum(), TWO_WAY_LABEL)
    halves = (np.concatenate([hits, total * 0]), np.concatenate([total * 0 + hits, total - hits]))
    share_of_halves = two_way_share(*halves, np.tile(country, 2), np.tile(topic, 2))
    assert (share_of_halves.ci_low, share_of_halves.ci_high) == pytest.approx((share.ci_low, share.ci_high))


def test_traces_one_by_one_have_the_interval_of_their_cells() -> None:
    """A jackknife that left a cell out once for each of its traces would take off too much, and be too narrow."""
    rng = np.random.default_rng(3)
    country, topic = (i.ravel() for i in np.indices((6, 5)))
    lean = 0.1 + 0.08 * country + 0.09 * topic
    valid = rng.random((12, 30)) < lean
    share_by_cell = two_way_share(valid.sum(axis=0), np.full(30, 12), country, topic)
    single = two_way_share(valid.ravel(), np.ones(valid.size), np.tile(country, 12), np.tile(topic, 12))
    assert (single.value, single.n) == (share_by_cell.value, share_by_cell.n)
    assert (single.ci_low, single.ci_high) == pytest.approx((share_by_cell.ci_low, share_by_cell.ci_high), abs=1e-12)


@pytest.mark.parametrize(("countries", "topics"), [(20, 10), (40, 4), (1, 12)])
def test_nominal_intervals_of_a_share_hold_the_truth_where_wilson_s_do_not(countries: int, topics: int) -> None:
    """Whether a trace is VALID hangs on its country, its topic and its cell; three judges say the same of it."""
    held, wilson = [], []
    for seed in range(200):
        world, rng = World(seed, countries, topics), np.random.default_rng(seed)
        lean = world.first - world.truth if topics > 4 and countries > 4 else 0.5 * rng.normal(size=countries * topics)
        valid = 3 * rng.binomial(5, np.clip(0.7 + 0.5 * lean, 0.0, 1.0))
        share = two_way_share(valid, np.full(valid.size, 15), world.countries, world.topics)
        truth = _truth(countries, topics)
        assert share.ci_low is not None
        assert share.ci_high is not None
        assert share.over == (TWO_WAY_LABEL if min(countries, topics) >= 5 else CELLS_LABEL)
        held.append(share.ci_low <= truth <= share.ci_high)
        plain = proportion(int(valid.sum()), 15 * valid.size)
        wilson.append((plain.ci_low or 0) <= truth <= (plain.ci_high or 0))
    assert 0.91 <= np.mean(held) <= 0.99
    assert np.mean(wilson) < 0.8


@cache
def _truth(countries: int, topics: int) -> float:
    """Mean of what is clipped, over normal leanings."""
    spread = float(np.sqrt(0.2**2 + 0.3**2 + 0.2**2)) if min(countries, topics) > 4 else 0.5
    draws = np.random.default_rng(99).normal(0, spread, 400_000)
    return float(np.clip(0.7 + 0.5 * draws, 0, 1).mean())


@pytest.mark.parametrize("hits", [0, 3])
def test_all_or_none_has_the_width_of_the_fewer_margin(hits: int) -> None:
    country, topic = (i.ravel() for i in np.indices((20, 10)))
    share = two_way_share(np.full(200, hits), np.full(200, 3), country, topic)
    expected = proportion(10 if hits else 0, 10)
    assert (share.ci_low, share.ci_high) == pytest.approx((expected.ci_low, expected.ci_high))


def test_a_missing_estimate_has_a_reason() -> None:
    assert two_way_share([], [], [], []).reason == "nothing to count"
    assert two_way_share([1], [3], ["a"], ["t"]).reason == "an interval needs 5 cells"
    assert two_way_mean([np.nan], ["a"], ["t"]).reason == "no cell has a value"
    assert two_way_mean([0.5, 0.7], ["a", "b"], ["t", "t"]).reason == "an interval needs 5 cells"
    country, topic = (i.ravel() for i in np.indices((6, 6)))
    same = two_way_mean(np.full(36, 0.5), country, topic)
    assert (same.value, same.ci_low, same.over) == (0.5, None, "")
    assert same.reason
    with pytest.raises(ValueError, match="at most"):
        two_way_share([3], [2], ["a"], ["t"])


@pytest.mark.parametrize(("countries", "topics"), [(20, 10), (40, 3)])
def test_nominal_intervals_of_a_mean_hold_the_truth(countries: int, topics: int) -> None:
    held = []
    for seed in range(200):
        world, rng = World(seed, countries, topics), np.random.default_rng(seed)
        is_two_way = min(countries, topics) >= 5
        values = 0.5 + (world.first - world.truth if is_two_way else rng.normal(size=countries * topics))
        mean = two_way_mean(values, world.countries, world.topics)
        assert mean.ci_low is not None
        assert mean.ci_high is not None
        assert mean.over == (TWO_WAY_LABEL if is_two_way else CELLS_LABEL)
        held.append(mean.ci_low <= 0.5 <= mean.ci_high)
    assert 0.91 <= np.mean(held) <= 0.99


def test_ends_are_cut_at_what_a_value_can_be() -> None:
    country, topic = (i.ravel() for i in np.indices((5, 5)))
    values = np.where(country == 0, 0.0, 1.0)
    assert two_way_mean(values, country, topic, (-1.0, 1.0)).ci_high == 1.0
    assert (two_way_mean(values, country, topic).ci_high or 0) > 1.0
