"""Rankings from comparisons, and what REPAIR makes of agreement with people."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import spearmanr

from auditor.metrics.logic.consistency import JudgeAnswers, commutativity, human_agreement, negation_invariance
from auditor.metrics.logic.ranking import (
    add_flip_noise,
    bradley_terry,
    comparisons_from_preferences,
    elo,
    measure_repair_effect,
    repair,
    win_loss_rate,
)
from auditor.metrics.logic.transitivity import transitivity
from tests.support.known import known

NAN = math.nan
Floats = NDArray[np.float64]
N = 5
TRUTH = (np.arange(N)[:, None] > np.arange(N)[None, :]).astype(float)
ASKED = np.ones((2, N, N), dtype=bool)


def games(strength: Floats, m: int, seed: int, items: int | None = None) -> Floats:
    rng = np.random.default_rng(seed)
    n = items or len(strength)
    i = rng.integers(0, n, m)
    j = (i + rng.integers(1, n, m)) % n
    won = rng.random(m) < 1 / (1 + np.exp(strength[j] - strength[i]))
    return np.column_stack([i, j, won]).astype(float)


def logistic(comparisons: Floats, n: int) -> Any:
    """The same model as a logistic regression with item 0 at 0."""
    design = np.zeros((len(comparisons), n))
    row = np.arange(len(comparisons))
    design[row, comparisons[:, 0].astype(int)] = 1
    design[row, comparisons[:, 1].astype(int)] = -1
    return sm.GLM(comparisons[:, 2], design[:, 1:], family=sm.families.Binomial()).fit(tol=1e-12)


def test_comparisons_of_a_preference_array() -> None:
    rows = comparisons_from_preferences(np.array([[0, 1, NAN], [0.5, 0, NAN], [0, NAN, 0]]))
    assert rows.tolist() == [[0, 1, 1], [1, 0, 0.5], [2, 0, 0]]


def test_win_loss_rate_by_hand() -> None:
    # 0: two wins and a tie of 3; 1: a loss, a tie of 2; 2: a loss of 1; 3: nothing valid.
    rows = np.array([[0, 1, 1], [2, 0, 0], [1, 0, 0.5], [3, 0, NAN]])
    expected = np.array([2.5 * 2 / 3 - 1, 0.5 * 2 / 2 - 1, -1, NAN])
    np.testing.assert_allclose(win_loss_rate(rows, 4), expected)
    by_probability = np.array([[0, 1, 0.51], [2, 0, 0.1], [1, 0, 0.5]])
    np.testing.assert_allclose(win_loss_rate(by_probability, 3), [2 / 3, -1 / 2, -1])
    assert np.isnan(win_loss_rate([], 2)).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1]], "shape"),
        ([[0, 2, 1]], "0 to 1"),
        ([[0, 0.5, 1]], "whole"),
        ([[1, 1, 1]], "itself"),
        ([[0, 1, 2]], r"\[0, 1\]"),
    ],
)
def test_wrong_comparisons_and_settings_are_named(rows: list[list[float]], message: str) -> None:
    for rank in (win_loss_rate, bradley_terry, elo):
        with pytest.raises(ValueError, match=message):
            rank(rows, 2)
    with pytest.raises(ValueError, match="prior"):
        bradley_terry([[0, 1, 1]], 2, prior=-1)
    with pytest.raises(ValueError, match="shuffles"):
        elo([[0, 1, 1]], 2, shuffles=-1)


@pytest.mark.parametrize("spread", [0.0, 2.0, 50.0])
def test_bradley_terry_comes_to_rest_on_a_full_tournament(spread: float) -> None:
    # With a spread of 50 the tournament is an order, without upsets: the hardest case for an iteration.
    rng = np.random.default_rng(0)
    truth = rng.normal(0, spread, 120)
    i, j = np.triu_indices(120, 1)
    upset = rng.random(len(i)) > 1 / (1 + np.exp(np.clip(truth[j] - truth[i], -700, 700)))
    strengths = bradley_terry(np.column_stack([i, j, ~upset]), 120)
    assert strengths.reason is None
    assert strengths.iterations < 30
    # At the top, wins equal what the strengths promise, the games against the phantom included.
    expected = 1 / (1 + np.exp(strengths.strength[None, :] - strengths.strength[:, None]))
    np.fill_diagonal(expected, 0.1 / (1 + np.exp(-strengths.strength)))
    won = np.bincount(i, ~upset, 120) + np.bincount(j, upset, 120) + 0.05
    np.testing.assert_allclose(expected.sum(axis=1), won, atol=1e-6)


def test_bradley_terry_equals_logistic_regression() -> None:
    rows = games(np.linspace(-1.5, 1.5, 8), 400, 0)
    rows[::10, 2] = 0.5
    strengths, reference = bradley_terry(rows, 8, prior=0), logistic(rows, 8)
    np.testing.assert_allclose(strengths.strength[1:] - strengths.strength[0], reference.params, atol=1e-6)
    assert strengths.strength.mean() == pytest.approx(0, abs=1e-9)
    assert strengths.reason is None
    # Standard errors are those of contrasts with the mean: the same linear map of the regression's covariance.
    contrast = np.eye(8)[:, 1:] - 1 / 8
    expected = np.sqrt(np.diag(contrast @ reference.cov_params() @ contrast.T))
    np.testing.assert_allclose(strengths.std_error, expected, rtol=1e-4)


def test_two_items_have_the_log_odds() -> None:
    # 3 wins to 1, no prior: difference log 3. With a prior of 2, by hand: each side plays 2 with the phantom.
    rows = [[0, 1, 1]] * 3 + [[1, 0, 1]]
    strengths = bradley_terry(rows, 2, prior=0)
    assert strengths.strength[0] - strengths.strength[1] == pytest.approx(math.log(3))
    drawn = bradley_terry(rows, 2, prior=2).strength
    assert 0 < drawn[0] - drawn[1] < math.log(3)
    # Stationarity: expected wins equal those counted, phantom games among them.
    between, phantom = 1 / (1 + math.exp(drawn[1] - drawn[0])), 1 / (1 + math.exp(-drawn[0]))
    assert 4 * between + 2 * phantom == pytest.approx(3 + 1)


def test_an_unbeaten_item_has_a_strength_only_with_a_prior() -> None:
    rows = [[0, 1, 1], [1, 2, 1], [0, 2, 1]]
    without = bradley_terry(rows, 3, prior=0)
    assert np.isnan(without.strength).all()
    assert "no finite estimate" in known(without.reason)
    strength = bradley_terry(rows, 3).strength
    assert strength[0] > strength[1] > strength[2]


def test_disconnected_sets_and_silent_items_are_named() -> None:
    strengths = bradley_terry(np.array([[0, 1, 1], [3, 4, 1], [4, 5, 0], [2, 1, NAN]]), 6)
    assert strengths.component.tolist() == [0, 0, -1, 1, 1, 1]
    assert strengths.reason == "2 sets of items are not compared with each other; items without a comparison: 1"
    assert np.isnan(strengths.strength).tolist() == [False, False, True, False, False, False]
    assert bradley_terry([], 3).reason == "no comparisons"
    assert bradley_terry([[0, 1, 1]] * 99, 2, max_iterations=2).reason == "not converged in 2 iterations"


def test_elo_depends_on_the_order_and_says_how_far() -> None:
    strength = np.linspace(-2, 2, 10)
    rows = games(strength, 600, 3)
    elo_ratings = elo(rows, 11, seed=1)
    assert np.isnan(elo_ratings.rating[10])
    assert (elo_ratings.low[:10] < elo_ratings.rating[:10]).all()
    assert (elo_ratings.rating[:10] < elo_ratings.high[:10]).all()
    assert spearmanr(elo_ratings.rating[:10], strength).statistic > 0.9
    assert elo_ratings.rating[:10].mean() == pytest.approx(1000)
    np.testing.assert_array_equal(elo_ratings.rating, elo(rows, 11, seed=1).rating)


def test_elo_of_one_game_is_the_known_step() -> None:
    # Even players: the winner gains half of k. One comparison has one order.
    elo_ratings = elo([[1, 0, 1]], 2, k=32, shuffles=5)
    assert elo_ratings.rating.tolist() == [984.0, 1016.0]
    assert elo_ratings.low.tolist() == elo_ratings.high.tolist() == [984.0, 1016.0]
    assert np.isnan(elo([], 2).rating).all()


def order_of(n: int, seed: int) -> Floats:
    rank = np.random.default_rng(seed).permutation(n)
    return (rank[:, None] < rank[None, :]).astype(float)


@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("seed", range(3))
def test_repair_of_a_ranking_with_a_tenth_flipped(n: int, seed: int) -> None:
    truth = order_of(n, seed)
    [noisy] = add_flip_noise([truth], 0.1, seed)
    repaired = repair(noisy)
    assert transitivity(repaired.preferences, k=n).value == 1.0
    assert commutativity(repaired.preferences).value == 1.0
    assert negation_invariance(repaired.preferences, repaired.negated).value == 1.0
    before, after = human_agreement(noisy, truth), human_agreement(repaired.preferences, truth)
    assert known(after.value) > known(before.value)
    decided = ~np.isnan(repaired.preferences) & ~np.eye(n, dtype=bool)
    differs = np.argwhere(decided & (repaired.preferences != noisy))
    assert repaired.flipped.tolist() == differs.tolist()


def test_repair_of_an_order_changes_nothing() -> None:
    truth = order_of(12, 0)
    repaired = repair(truth)
    off = ~np.eye(12, dtype=bool)
    np.testing.assert_array_equal(repaired.preferences[off], truth[off])
    assert repaired.flipped.shape == (0, 2)
    assert [int(truth[a, b]) for a, b in zip(repaired.order, repaired.order[1:], strict=False)] == [1] * 11


def test_repair_does_not_compare_ties_strangers_and_silent_items() -> None:
    # 0 and 1 tie and beat 2; 3 beats 4 but met none of the others; 5 never had an answer.
    values = np.full((6, 6), NAN)
    values[0, 1], values[0, 2], values[1, 2], values[3, 4] = 0.5, 1, 1, 1
    repaired = repair(values)
    known = {(int(i), int(j)): repaired.preferences[i, j] for i, j in np.argwhere(~np.isnan(repaired.preferences))}
    assert known == {(0, 2): 1, (1, 2): 1, (2, 0): 0, (2, 1): 0, (3, 4): 1, (4, 3): 0}
    assert set(repaired.order) == {0, 1, 2, 3, 4}
    assert repair(np.empty((0, 0))).order == ()


def test_noise_reverses_exactly_the_share_of_valid_answers() -> None:
    values = order_of(20, 1)
    values[3, :] = NAN
    [noisy] = add_flip_noise([values], 0.25, seed=2)
    valid = ~np.isnan(values) & ~np.eye(20, dtype=bool)
    assert (noisy != values)[valid].sum() == round(0.25 * valid.sum())
    np.testing.assert_array_equal(np.isnan(noisy), ~valid)
    np.testing.assert_array_equal(noisy, add_flip_noise([values], 0.25, seed=2)[0])
    with pytest.raises(ValueError, match="share"):
        add_flip_noise([values], 1.5)


def test_noise_is_a_share_of_all_sets_together() -> None:
    """Rounded in each set, a tenth of at most five answers would be none, and one of six would be a sixth."""
    sets = []
    for n_answers in [3, 5, 6, 2, 4] * 20:
        values = np.full((4, 4), NAN)
        values[tuple(np.argwhere(~np.eye(4, dtype=bool))[:n_answers].T)] = 1.0
        sets.append(values)
    noisy = add_flip_noise(sets, 0.1, seed=1)
    n_reversed = sum(int((after == 1 - before).sum()) for before, after in zip(sets, noisy, strict=True))
    assert n_reversed == round(0.1 * 20 * (3 + 5 + 6 + 2 + 4)) == 40


def test_noise_is_drawn_from_decided_answers_only() -> None:
    """A tie has no opposite: of 40 decided answers beside 60 ties, a tenth are 4."""
    values = np.full((11, 11), 0.5)
    values[:4, :] = 1.0
    off = ~np.eye(11, dtype=bool)
    for seed in range(5):
        [noisy] = add_flip_noise([values], 0.1, seed)
        assert (noisy != values)[off].sum() == 4
        assert set(noisy[4:][off[4:]]) == {0.5}


def test_the_methods_of_the_repair_differ_as_the_paper_describes() -> None:
    """Appendix N of Aligning with Logic: A beat B and C, which did not meet."""
    values = np.full((3, 3), NAN)
    values[0, 1] = values[0, 2] = 1.0
    assert np.isnan(repair(values, "win-loss").preferences[1, 2])
    assert np.isnan(repair(values, "bradley-terry").preferences[1, 2])
    assert repair(values, "elo").preferences[1, 2] == 0.0  # A over C over B
    by_seed = {float(repair(values, "elo", seed).preferences[1, 2]) for seed in range(10)}
    assert by_seed == {0.0, 1.0}
    with pytest.raises(ValueError, match="method"):
        repair(values, "borda")  # type: ignore[arg-type]


def answered(preferences: np.ndarray) -> JudgeAnswers:
    return JudgeAnswers(preferences, 1 - preferences, ASKED, np.empty((0, 0)), TRUTH)


def test_a_judge_that_draws_lots_gains_nothing() -> None:
    rng = np.random.default_rng(0)
    answer_sets = [answered(rng.choice([0.0, 0.5, 1.0], (N, N))) for _ in range(400)]
    effect = measure_repair_effect(answer_sets, [repair(one.preferences).preferences for one in answer_sets])
    assert effect.before.n == effect.after.n == effect.gain.n
    assert effect.n_tied > 0
    assert effect.before.value == pytest.approx(0.5, abs=0.03)
    assert effect.gain.value == pytest.approx((effect.after.value or 0) - (effect.before.value or 0))
    assert effect.gain.value == pytest.approx(0, abs=0.03)
    assert known(effect.gain.ci_low) < 0 < known(effect.gain.ci_high)


def test_the_gain_is_over_sets() -> None:
    """By hand: the pooled gain without each set, and Student's quantile."""
    rng = np.random.default_rng(2)
    sets = [answered(np.where(rng.random((N, N)) < 0.3, 1 - TRUTH, TRUTH))._replace(set_name=f"{i}") for i in range(7)]
    repaired = [repair(one.preferences).preferences for one in sets]
    gain = measure_repair_effect(sets, repaired).gain
    counts = []
    for one, ranking in zip(sets, repaired, strict=True):
        decided = ~np.isnan(ranking) & (ranking != 0.5) & ~np.eye(N, dtype=bool)
        before, after = ((values > 0.5) == (TRUTH > 0.5) for values in (one.preferences, ranking))
        counts.append((after[decided].sum() - before[decided].sum(), decided.sum()))
    table = np.array(counts, dtype=float)
    value = table[:, 0].sum() / table[:, 1].sum()
    without = (table[:, 0].sum() - table[:, 0]) / (table[:, 1].sum() - table[:, 1])
    half_width = stats.t.ppf(0.975, 6) * (6 / 7 * ((without - without.mean()) ** 2).sum()) ** 0.5
    assert gain.value == pytest.approx(value, abs=1e-12)
    assert gain.resampled == ("set",)
    assert (gain.ci_low, gain.ci_high) == pytest.approx((value - half_width, value + half_width), abs=1e-9)
    few = measure_repair_effect(sets[:4], repaired[:4]).gain
    assert (few.ci_low, few.reason) == (None, "an interval needs at least 5 item sets, but there are 4 item sets")


def test_one_reversal_is_repaired() -> None:
    preferences = TRUTH.copy()
    preferences[0, 4], preferences[4, 0] = 1.0, 0.0
    effect = measure_repair_effect([answered(preferences)], [repair(preferences).preferences])
    follows = repair(preferences).preferences
    n = int((~np.isnan(follows)).sum())  # items of equal rate are tied by the ranking
    assert (effect.before.n, effect.after.n, effect.n_tied) == (n, n, N * (N - 1) - n)
    assert effect.before.value == pytest.approx(1 - 2 / n)  # the two questions on the pair that was reversed
    tied = measure_repair_effect([answered(np.full((N, N), 0.5))], [np.full((N, N), np.nan)])
    assert (tied.before.value, tied.gain.value, tied.n_tied) == (None, None, 20)
