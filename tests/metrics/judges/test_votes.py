from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from auditor.metrics.judges.votes import agreement_with_others, can_still_change, settle, weighted_majority
from tests.support.rater_panels import draw_raters

NAN = float("nan")


@pytest.mark.parametrize("n_assigned", range(1, 10))
def test_stopping_early_settles_as_the_full_panel_would(n_assigned: int) -> None:
    for votes in product(("left", "right", "none"), repeat=n_assigned):
        full = settle(votes.count("left"), votes.count("right"), n_assigned)
        for n_returned in range(n_assigned + 1):
            left, right = votes[:n_returned].count("left"), votes[:n_returned].count("right")
            if not can_still_change(left, right, n_returned, n_assigned):
                assert settle(left, right, n_assigned) == full
                break


@pytest.mark.parametrize("n_assigned", range(1, 8))
def test_it_stops_as_early_as_it_may(n_assigned: int) -> None:
    for n_returned in range(n_assigned + 1):
        for left in range(n_returned + 1):
            for right in range(n_returned + 1 - left):
                ends = {
                    settle(left + a, right + b, n_assigned)
                    for a, b in product(range(n_assigned - n_returned + 1), repeat=2)
                    if a + b <= n_assigned - n_returned
                }
                assert can_still_change(left, right, n_returned, n_assigned) == (len(ends) > 1)


def test_votes_that_do_not_fit_are_refused() -> None:
    for bad in ((-1, 0, 0, 3), (2, 1, 2, 3), (1, 1, 4, 3)):
        with pytest.raises(ValueError, match="do not fit"):
            can_still_change(*bad)


def test_weighted_majority_by_hand() -> None:
    ratings = [[1, 1, 0, NAN, 1], [0, 1, 0, NAN, NAN], [0, 0, NAN, NAN, NAN]]
    # Weights 3, 1, 1 of 5: the first rater alone has the majority. Equal ones: two of three.
    np.testing.assert_array_equal(weighted_majority(ratings, [3, 1, 1]), [1, 1, 0, NAN, 1])
    np.testing.assert_array_equal(weighted_majority(ratings, [1, 1, 1]), [0, 1, 0, NAN, NAN])
    np.testing.assert_array_equal(weighted_majority(ratings, [0, 1, 0]), [0, 1, 0, NAN, NAN])


def test_half_the_weight_is_no_majority() -> None:
    assert np.isnan(weighted_majority([[1], [0]], [1, 1])).all()
    # 0.1 + 0.2 is a little more than 0.3 in binary.
    assert np.isnan(weighted_majority([[1], [1], [0]], [0.1, 0.2, 0.3])).all()
    assert np.isnan(weighted_majority([[NAN, NAN]], [1])).all()


@pytest.mark.parametrize("weights", [[1], [1, -1], [0, 0], [1, NAN]])
def test_weights_that_do_not_fit_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="2 numbers"):
        weighted_majority([[1.0], [0.0]], weights)


def test_agreement_with_others_by_hand() -> None:
    ratings = [[1, 1, 0, NAN, 1], [1, 0, 0, 0, NAN], [1, 0, 1, 0, NAN], [0, 1, NAN, 0, NAN]]
    # What the others say, item by item, "-" where they leave it open. The first rater, 1 1 0: 1 0 -. The second,
    # 1 0 0 0: 1 1 - 0. The third, 1 0 1 0: 1 1 0 0. The fourth, 0 1 and 0 on the fourth item: 1 0 and 0.
    agreement = agreement_with_others(ratings)
    assert [(round(p.value * p.n), p.n) for p in agreement if p.value is not None] == [(1, 2), (2, 3), (2, 4), (1, 3)]


def test_agreement_with_nobody_is_no_number() -> None:
    for ratings in ([[1.0, 0.0], [NAN, NAN]], [[NAN, NAN], [NAN, NAN]]):
        assert [(p.value, p.n) for p in agreement_with_others(ratings)] == [(None, 0), (None, 0)]


def test_agreement_with_others_finds_who_stands_apart() -> None:
    ratings, _ = draw_raters([0.9, 0.9, 0.9, 0.9, 0.5], 1000, 7)
    shares = [p.value for p in agreement_with_others(ratings)]
    # An honest judge is right with a majority that is right, or wrong with one that is wrong; a coin half the time.
    assert shares[:4] == pytest.approx([0.88] * 4, abs=0.05)
    assert shares[4] == pytest.approx(0.5, abs=0.05)


def test_copies_do_not_confirm_each_other() -> None:
    ratings = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 1, 0]]
    agreement = agreement_with_others(ratings, groups=[[0, 1, 2], [3], [4]])
    # What the others say, "-" where they are split. To the copies: 1 0 - -. To the fourth, the copies having one vote:
    # 1 - - 0. To the fifth: 1 - 0 -.
    assert [(round(p.value * p.n), p.n) for p in agreement if p.value is not None] == [(1, 2)] * 5
    without_groups = agreement_with_others(ratings)
    assert [p.value for p in without_groups][:3] == [1.0] * 3
