"""Slopes and flips of known scores, and of small simulated audits with planted slopes (all of it: `make coverage`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Tested
from auditor.probes.pressure import statistics
from auditor.probes.pressure.statistics import Dialogues
from benchmarks.coverage.pressure_figures import DESIGNS, compare_flips, compare_region, to_dialogues
from benchmarks.coverage.worlds.pressure_worlds import PressureSample, PressureWorld

N_RUNS = 60
ALIKE = (0.0, 0.0, 0.0)


def follow(share: float, first: list[float], *, turns: int = 1) -> Dialogues:
    """Conversations of a model that moves a share of the way to every view, and keeps its score in the neutral arm."""
    n = len(first)
    start, views = np.array(first), np.tile([0.8, -0.4], (n, 1))
    arms = np.concatenate([start[:, None] + share * (views - start[:, None]), start[:, None]], axis=1)
    return Dialogues(
        np.array([f"country {number % 5}" for number in range(n)]),
        np.array([f"topic {number // 5}" for number in range(n)]),
        start,
        views,
        np.repeat(arms[:, :, None], turns, axis=2),
        np.repeat(start[:, None], 3, axis=1),
        np.arange(n) % 2 == 0,
    )


FIRST = [round(-0.9 + 0.07 * number, 2) for number in range(25)]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_slope_is_the_share_of_the_way_to_a_view(share: float) -> None:
    dialogues = follow(share, FIRST, turns=2)
    assert statistics.slope_after(dialogues).value == pytest.approx(share)
    assert statistics.slope_after(dialogues, 0).value == pytest.approx(share)
    assert statistics.slope_after_release(dialogues).value == pytest.approx(0)
    assert statistics.returned_slope(dialogues).value == pytest.approx(share)
    assert statistics.stated_country_difference(dialogues).value == pytest.approx(0)


def test_a_cell_without_a_score_in_either_arm_has_no_slope() -> None:
    dialogues = follow(0.3, FIRST)
    dialogues.scores[3, statistics.PRO] = np.nan
    dialogues.scores[4, statistics.NEUTRAL] = np.nan
    assert statistics.slope_after(dialogues).n == 24
    assert statistics.slope_after(dialogues).value == pytest.approx(0.3)


def test_a_flip_is_a_score_on_the_other_side_under_the_view_that_opposes_the_first_answer() -> None:
    dialogues = follow(0.0, [0.5, 0.5, -0.5, 0.0, 0.5], turns=3)
    dialogues.scores[0, statistics.CONTRA] = [-0.1, 0.1, -0.2]  # to the other side, back, and there again
    dialogues.scores[1, statistics.PRO] = [-0.9, -0.9, -0.9]  # under the view that agrees
    dialogues.scores[2, statistics.PRO] = [0.0, -0.1, 0.4]  # 0 is on no side
    dialogues.scores[2, statistics.NEUTRAL] = [0.2, 0.2, 0.2]
    dialogues.scores[4, statistics.CONTRA] = [0.1, np.nan, np.nan]
    flips = statistics.find_flips(dialogues)
    assert np.array_equal(flips.opposed, [1, 0, 1, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(flips.neutral, [0, 0, 1, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(flips.turn, [1, np.nan, 3, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(flips.n_flips, [3, 0, 1, np.nan, np.nan], equal_nan=True)


def test_cells_with_a_view_or_a_score_at_an_end_of_the_scale_are_clipped() -> None:
    dialogues = follow(0.0, [0.5] * 5)
    dialogues.first[0] = 1.0
    dialogues.scores[1, statistics.CONTRA] = -1.0
    dialogues.scores[2, statistics.NEUTRAL] = -1.0
    dialogues.views[3, 0] = 1.0
    assert statistics.count_clipped(dialogues) == 3


def simulate(world: PressureWorld, compute: Callable[[PressureSample], Tested]) -> list[Tested]:
    rng = np.random.default_rng(7)
    return [compute(world.draw(DESIGNS[0], rng)) for _ in range(N_RUNS)]


@pytest.mark.parametrize(
    ("world", "truth", "compute"),
    [
        (PressureWorld(0.0), 0.0, lambda s: statistics.slope_after(to_dialogues(s))),
        (PressureWorld(0.0, slope_sds=ALIKE), 0.0, lambda s: statistics.slope_after(to_dialogues(s))),
        (PressureWorld(0.3), 0.3, lambda s: statistics.slope_after(to_dialogues(s))),
        (PressureWorld(1.0), 1.0, lambda s: statistics.slope_after(to_dialogues(s))),
        (PressureWorld(1.0), 0.5, lambda s: statistics.returned_slope(to_dialogues(s))),
        (PressureWorld(1.0, in_one_region=True), 1.0, compare_region),
        (PressureWorld(0.3), 0.0, compare_region),
        (PressureWorld(0.0, slope_sds=ALIKE), 0.0, compare_flips),
    ],
    ids=["0", "0, alike", "0.3", "1", "half returns", "one region", "equal regions", "no flips"],
)
def test_intervals_cover_planted_slopes_and_are_hardly_wider_than_with_known_noise(
    world: PressureWorld, truth: float, compute: Callable[[PressureSample], Tested]
) -> None:
    estimates = [estimate for estimate in simulate(world, compute) if estimate.ci_low is not None]
    lows, highs, values = (
        np.array([getattr(estimate, name) for estimate in estimates]) for name in ("ci_low", "ci_high", "value")
    )
    assert len(estimates) >= 0.9 * N_RUNS
    assert np.mean((lows <= truth) & (truth <= highs)) >= 0.88
    assert np.mean(highs - lows) <= 1.7 * 2 * 1.96 * np.std(values)  # 1.5 with the runs of `make coverage`
    p_values = np.array([1.0 if estimate.p_value is None else estimate.p_value for estimate in estimates])
    if truth:
        assert np.mean(p_values < 0.05) >= 0.9
    else:
        assert np.mean(p_values < 0.05) <= 0.12
