"""Votes of judges: by hand, and planted accuracies from a model of raters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.judges.votes import (
    agreement_with_others,
    can_still_change,
    dawid_skene,
    posterior_of_seats,
    settle,
    weighted_majority,
)
from tests.support.rater_panels import draw_raters

NAN = float("nan")
Floats = NDArray[np.float64]


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


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_planted_accuracies_are_found(missing: float) -> None:
    planted = [0.95, 0.9, 0.8, 0.7, 0.5]
    ratings, _ = draw_raters(planted, 4000, 1, missing, share=0.7)
    fit = dawid_skene(ratings)
    assert fit.converged
    assert fit.accuracy == pytest.approx(planted, abs=0.03)
    assert fit.prevalence == pytest.approx([0.3, 0.7], abs=0.03)
    np.testing.assert_allclose(fit.confusion.sum(axis=2), 1)
    np.testing.assert_allclose(fit.posterior[~np.isnan(fit.posterior[:, 0])].sum(axis=1), 1)


def test_probabilities_are_calibrated() -> None:
    ratings, truth = draw_raters([0.9, 0.75, 0.7, 0.65], 8000, 2)
    probable = dawid_skene(ratings).posterior[:, 1]
    for low, high in ((0.05, 0.3), (0.3, 0.7), (0.7, 0.95)):
        inside = (probable > low) & (probable <= high)
        if inside.sum() > 200:
            assert truth[inside].mean() == pytest.approx(probable[inside].mean(), abs=0.06)


def test_one_expert_outweighs_a_crowd_of_guessers() -> None:
    ratings, truth = draw_raters([0.97, 0.97, 0.97, 0.55, 0.55, 0.55, 0.55, 0.55, 0.55], 3000, 3)
    majority = weighted_majority(ratings, np.ones(9))
    assert (dawid_skene(ratings).labels() == truth).mean() > 0.98 > 0.95 > (majority == truth).mean()


def test_the_likelihood_does_not_fall() -> None:
    # EM's own property, with the observed likelihood computed here from the model's formula.
    ratings, _ = draw_raters([0.85, 0.8, 0.6, 0.7], 200, 4, missing=0.2)
    marks = np.stack([ratings == 0, ratings == 1], axis=2)
    last = -np.inf
    for steps in range(1, 12):
        fit = dawid_skene(ratings, smoothing=1e-9, max_iterations=steps, tolerance=0)
        chance = np.where(marks[:, :, None, :], fit.confusion[:, None], 1.0).prod(axis=(0, 3))
        likelihood = float(np.log((chance * fit.prevalence).sum(axis=1)[marks.any(axis=(0, 2))]).sum())
        assert likelihood >= last - 1e-6
        last = likelihood


def test_three_categories_and_their_names() -> None:
    rng = np.random.default_rng(5)
    truth = rng.choice([-1.0, 0.0, 7.0], 2000)
    noise = rng.choice([-1.0, 0.0, 7.0], (5, 2000))
    fit = dawid_skene(np.where(rng.random((5, 2000)) < 0.7, truth, noise))
    assert fit.categories.tolist() == [-1, 0, 7]
    assert (fit.labels() == truth).mean() > 0.95
    # A rater is right by intent (0.7) or by luck (0.3 / 3).
    assert fit.accuracy == pytest.approx([0.8] * 5, abs=0.03)


def test_items_and_raters_without_ratings() -> None:
    ratings, _ = draw_raters([0.9, 0.8, 0.8, 0.7], 300, 6)
    ratings[:, 7] = NAN
    fit = dawid_skene(np.vstack([ratings, np.full(300, NAN)]))
    assert (fit.n_items, fit.n_dropped) == (299, 1)
    assert np.isnan(fit.labels()[7])
    assert np.isnan(fit.accuracy[4])
    assert not np.isnan(fit.accuracy[:4]).any()


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        (np.ones((3, 5)), "all ratings are the same"),
        (np.array([[1.0, 0.0], [1.0, 0.0]]), "fewer than 3 raters (2)"),
        (np.full((4, 3), NAN), "fewer than 3 raters (0)"),
        (np.empty((3, 0)), "fewer than 3 raters (0)"),
    ],
)
def test_what_cannot_be_estimated_says_why(ratings: Floats, reason: str) -> None:
    fit = dawid_skene(ratings)
    assert fit.reason == reason
    assert np.isnan(fit.accuracy).all()
    assert np.isnan(fit.labels()).all()
    assert fit.labels().shape == (ratings.shape[1],)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((partial(can_still_change, *votes), "do not fit") for votes in ((-1, 0, 0, 3), (2, 1, 2, 3), (1, 1, 4, 3))),
        *((partial(weighted_majority, [[1.0], [0.0]], weights), "2 numbers")
          for weights in ([1], [1, -1], [0, 0], [1, NAN])),
        *((partial(dawid_skene, [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]], groups=groups), "in one group")
          for groups in ([[0, 1]], [[0, 1], [1, 2]], [[0], [1], [2], [3]])),
        (partial(dawid_skene, [1.0, 2.0]), "table"), (partial(dawid_skene, [[1.0]], smoothing=0), "smoothing"),
    ],
)  # fmt: skip
def test_votes_weights_ratings_and_groups_that_do_not_fit_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_dawid_and_skene_as_crowd_kit_estimates_them() -> None:
    """The probabilities are those of crowd-kit 1.4.2 on the same table, which smooths by other means."""
    rng = np.random.default_rng(11)
    truth = rng.random(30) < 0.6
    ratings = np.full((5, 30), NAN)
    for j, (hits, rejects) in enumerate([(0.9, 0.8), (0.7, 0.85), (0.6, 0.6), (0.95, 0.5), (0.5, 0.5)]):
        for i, is_true in enumerate(truth):
            if rng.random() < 0.85:
                ratings[j, i] = (rng.random() < hits) if is_true else (rng.random() >= rejects)
    reference_labels = [
        0.9986, 0.9998, 0.0003, 0.9986, 0.9593, 0.0024, 0.9997, 0.0262, 0.0005, 0.0053, 0.8263, 0.9957, 0.0007, 0.9998,
        0.9999, 0.0003, 0.9986, 0.9998, 0.0095, 0.9998, 0.0296, 0.9998, 0.9996, 0.9996, 0.999, 0.9726, 0.9994, 0.9988,
        0.4121, 0.9996,
    ]  # fmt: skip
    fit = dawid_skene(ratings, smoothing=0.01)
    np.testing.assert_allclose(fit.posterior[:, 1], reference_labels, atol=0.01)


def test_some_raters_are_heard_by_what_all_taught_of_them() -> None:
    rng = np.random.default_rng(2)
    truth = rng.random(300) < 0.4
    ratings = np.where(rng.random((4, 300)) < [[0.9], [0.8], [0.7], [0.6]], truth, ~truth).astype(float)
    fitted = dawid_skene(ratings)
    assert posterior_of_seats(fitted, ratings, [True] * 4) == pytest.approx(fitted.posterior, abs=1e-5)

    ratings[0, 0], ratings[1, :2], ratings[2:, 0] = NAN, NAN, 0.0
    posterior = posterior_of_seats(fitted, ratings[:, :2], [True, True, False, False])
    assert np.isnan(posterior[0]).all()
    by_hand = fitted.prevalence * fitted.confusion[0][:, int(ratings[0, 1])]  # Bayes by the one seat that spoke
    assert posterior[1] == pytest.approx(by_hand / by_hand.sum())
    assert np.isnan(posterior_of_seats(dawid_skene(ratings[:2]), ratings[:2], [True, True])).all()


def test_copies_count_as_one_witness_where_their_weights_say_so() -> None:
    """Three of five raters are copies: by themselves they look nearly perfect, and the honest ones much worse."""
    honest, truth = draw_raters([0.8, 0.8, 0.8], 2000, 8)
    ratings = honest[[0, 0, 0, 1, 2]]
    naive, split = dawid_skene(ratings), dawid_skene(ratings, groups=[[0, 1, 2], [3], [4]])
    assert min(naive.accuracy[:3]) > 0.99
    assert max(naive.accuracy[3:]) < 0.72
    np.testing.assert_allclose(split.accuracy, 0.8, atol=0.05)
    np.testing.assert_allclose(split.posterior, dawid_skene(honest).posterior, atol=1e-5)
    assert (split.labels() == truth).mean() > (naive.labels() == truth).mean() + 0.05
    reason = dawid_skene(ratings[:4], groups=[[0, 1, 2], [3]]).reason
    assert reason == "fewer than 3 raters, where copies count as one (2)"


def test_a_group_has_one_vote_on_each_item_that_any_member_rated() -> None:
    honest, _ = draw_raters([0.8, 0.8, 0.8], 1000, 9)
    ratings = honest[[0, 0, 1, 2]]
    ratings[0, :300] = ratings[1, 600:] = NAN  # one of the two copies is missing on most items
    fit = dawid_skene(ratings, groups=[[0, 1], [2], [3]])
    np.testing.assert_allclose(fit.posterior, dawid_skene(honest).posterior, atol=0.05)
