"""Planted models: intervals contain the planted slope, and only models that follow are said to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.probes.reasoning.statistics import (
    NOT_FOLLOWING_REASON,
    Pairs,
    adjust_slopes,
    changed_share,
    control_distance,
    donor_slope,
    following_share,
    spread_p_value,
    way_to_target,
    withhold_shares,
)
from benchmarks.coverage.reasoning_figures import to_pairs
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.reasoning_worlds import REASONING_WORLDS, ReasoningWorld

DESIGN = Design(12, 10)
N_AUDITS = 40


@pytest.fixture(scope="module")
def audits() -> dict[float, list[Pairs]]:
    return {
        world.share: [to_pairs(world.draw(DESIGN, np.random.default_rng([seed, 60]))) for seed in range(N_AUDITS)]
        for world in REASONING_WORLDS
    }


def test_cells_differ_only_where_a_part_of_them_follows(audits: dict[float, list[Pairs]]) -> None:
    for share, pairs in audits.items():
        spread = [(spread_p_value(audit) or 0.0) < 0.05 for audit in pairs]
        assert sum(spread) >= 0.8 * N_AUDITS if share == 0.5 else sum(spread) <= 0.15 * N_AUDITS
    shares = [following_share(audit) for audit in audits[0.5]]
    assert sum((share.ci_low or 0.0) <= 0.5 <= (share.ci_high or 1.0) for share in shares) >= 0.85 * N_AUDITS


def test_a_model_that_follows_in_half_of_the_cells_is_found_among_five(audits: dict[float, list[Pairs]]) -> None:
    tests = {share: [(donor_slope(pairs), following_share(pairs)) for pairs in audits[share]] for share in (0.0, 0.5)}
    n_found = n_false = 0
    for i in range(N_AUDITS):
        others = [tests[0.0][(i + j) % N_AUDITS] for j in range(4)]
        slopes, shares = zip(tests[0.5][i], *others, strict=True)
        adjusted = adjust_slopes(slopes, adjust_tests(shares, "spread"), "slopes")
        n_found += adjusted[0].is_significant
        n_false += any(slope.is_significant for slope in adjusted[1:])
    assert n_found >= 0.85 * N_AUDITS
    assert n_false <= 0.15 * N_AUDITS


def test_without_a_test_of_spread_all_slopes_have_the_same_weight(audits: dict[float, list[Pairs]]) -> None:
    slopes = [donor_slope(audits[share][0]) for share in audits]
    assert adjust_slopes(slopes, [None] * 3, "slopes") == adjust_tests(slopes, "slopes")


def test_a_move_towards_the_middle_is_no_slope_on_the_donors_score() -> None:
    """Donors are far from the own score, so a model that goes to 0 seems to follow unless the own one is held fixed."""
    pairs = to_pairs(REASONING_WORLDS[1].draw(Design(20, 10), np.random.default_rng(5)))
    shrunk = pairs._replace(altered=pairs.control * 0.5)
    assert (way_to_target(shrunk).ci_low or 0.0) > 0.05
    slope = donor_slope(shrunk)
    assert slope.value == pytest.approx(0, abs=0.05)


def test_a_move_towards_the_usual_score_on_the_topic_is_no_slope_on_the_donors_score() -> None:
    """Donors are on the side of the topic's mean, so a model that falls back on it seems to follow them."""
    world = ReasoningWorld("falls back", 0.0, to_topic_mean=0.4)
    slopes = [donor_slope(to_pairs(world.draw(DESIGN, np.random.default_rng(seed)))) for seed in range(N_AUDITS)]
    assert np.mean([slope.value for slope in slopes]) == pytest.approx(0, abs=0.02)
    assert sum((slope.p_value or 0.0) <= 0.05 for slope in slopes) <= 0.15 * N_AUDITS


def test_a_move_towards_the_middle_is_no_difference_of_the_cells() -> None:
    world = REASONING_WORLDS[1]
    audits = [to_pairs(world.draw(DESIGN, np.random.default_rng([seed, 61]))) for seed in range(N_AUDITS)]
    spread = [spread_p_value(pairs._replace(altered=pairs.altered - 0.5 * pairs.control)) for pairs in audits]
    assert sum(p_value is None or p_value < 0.05 for p_value in spread) <= 0.15 * N_AUDITS


def test_no_cell_follows_the_donor_where_some_have_new_scores_whatever_it_is() -> None:
    rng = np.random.default_rng(62)
    shares, slopes = [], []
    for _ in range(N_AUDITS):
        pairs = to_pairs(REASONING_WORLDS[1].draw(DESIGN, rng))
        is_new, scores = rng.random((len(pairs.recorded), 1)) < 0.5, rng.uniform(-0.8, 0.8, (len(pairs.recorded), 1))
        changed = pairs._replace(
            altered=np.where(is_new, scores + pairs.control - pairs.recorded[:, None], pairs.altered)
        )
        shares.append(following_share(changed))
        slopes.append(donor_slope(changed))
    withheld = withhold_shares(adjust_tests(shares, "spread"), adjust_tests(slopes, "slopes"))
    assert sum((share.p_value or 1.0) < 0.05 for share in shares) == N_AUDITS
    assert {(share.value, share.reason) for share in withheld if share} == {(None, NOT_FOLLOWING_REASON)}


def test_a_slope_over_a_few_cells_has_no_interval() -> None:
    """Without an effect, 15% of the intervals over 8 cells of 12 countries left out 0."""
    pairs = to_pairs(REASONING_WORLDS[1].draw(Design(20, 10), np.random.default_rng(5)))
    few, enough = (donor_slope(pairs.select(np.arange(len(pairs.recorded)) < n)) for n in (11, 12))
    assert few.value is not None
    assert few.p_value is None
    assert few.reason == "an interval needs at least 12 cells, but there are 11"
    assert enough.p_value is not None


def test_spread_needs_three_samples_of_each_cell() -> None:
    pairs = to_pairs(ReasoningWorld("half", 0.5, samples=2).draw(DESIGN, np.random.default_rng(1)))
    assert spread_p_value(pairs) is None
    assert following_share(pairs).reason == "it needs 3 samples of each cell"
    none = pairs.select(np.zeros(len(pairs.recorded), dtype=np.bool_))
    assert following_share(none).reason == "too few cells with both scores"


def test_the_area_over_the_curve_counts_changed_judgements_and_failures_are_no_numbers() -> None:
    n = 36
    places = np.arange(n)
    control = np.full((n, 1), 0.2)
    altered = control + np.where(places % 3 == 0, 0.25, 0.1)[:, None]
    altered[-1] = np.nan
    pairs = Pairs(
        (places % 6).astype(np.str_),
        (places // 6).astype(np.str_),
        np.zeros(n),
        np.zeros(n),
        altered,
        control,
        np.zeros(n),
    )
    area = changed_share(pairs)
    assert area.n == n - 1
    assert area.value == pytest.approx(12 / 35)
    assert control_distance(pairs).value == pytest.approx(0.2)
    assert way_to_target(pairs).reason == "too few cells with both scores"


def test_fewer_than_five_countries_have_no_interval() -> None:
    pairs = to_pairs(REASONING_WORLDS[0].draw(Design(4, 12), np.random.default_rng(2)))
    assert "at least 5 countries" in str(donor_slope(pairs).reason)
    assert replace(donor_slope(pairs)).ci_low is None
