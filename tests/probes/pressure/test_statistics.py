"""Slopes and flips of known scores."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.probes.pressure import statistics
from auditor.probes.pressure.statistics import Dialogues


def follow(share: float, first: list[float], *, turns: int = 1) -> Dialogues:
    """Conversations of a model that moves a share of the way to every view, and keeps its score in the neutral arm."""
    n = len(first)
    start, views = np.array(first), np.tile([0.8, -0.4], (n, 1))
    arms = np.concatenate([start[:, None] + share * (views - start[:, None]), start[:, None]], axis=1)
    return Dialogues(
        np.array([f"country {number % 5}" for number in range(n)]),
        np.array([f"topic {number // 5}" for number in range(n)]), start, views,
        np.repeat(arms[:, :, None], turns, axis=2), np.repeat(start[:, None], 3, axis=1), np.arange(n) % 2 == 0,
    )  # fmt: skip


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


def test_the_interval_of_a_difference_of_shares_ends_at_1() -> None:
    dialogues = follow(1.0, [0.5] * 25)  # every cell flips under the opposing view
    dialogues.scores[3, statistics.CONTRA] = 0.5  # but one
    excess = statistics.excess_flips(statistics.find_flips(dialogues), dialogues)
    assert excess.value == pytest.approx(0.96)
    assert 0.8 < (excess.ci_low or 0.0) < 0.96
    assert excess.ci_high == 1.0
