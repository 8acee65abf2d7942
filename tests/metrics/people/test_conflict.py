from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from auditor.metrics.judges.votes import judge_vote, settle
from auditor.metrics.people.conflict import (
    ConflictingPair,
    auto_threshold,
    find_conflicts,
    is_within_noise,
    third_quartile,
)
from tests.support.known import known

NAN = float("nan")
HUNDREDTHS = st.one_of(st.none(), st.integers(-100, 100))


def _by_definition(scores: list[int | None], threshold: int) -> set[tuple[int, int, str]]:
    """The docstring in whole hundredths, where nothing is rounded."""
    known = [i for i, s in enumerate(scores) if s is not None]

    def differ(i: int, j: int) -> bool:
        return abs((scores[i] or 0) - (scores[j] or 0)) >= threshold

    def is_outlier(i: int) -> bool:
        other_models = [j for j in known if j != i]
        agree = not any(differ(a, b) for a, b in combinations(other_models, 2))
        return len(other_models) >= 2 and all(differ(i, j) for j in other_models) and agree

    def kind(i: int, j: int) -> str:
        if (scores[i] or 0) * (scores[j] or 0) < 0:
            return "binary"
        return "outlier" if is_outlier(i) or is_outlier(j) else "gradient"

    return {(i, j, kind(i, j)) for i, j in combinations(known, 2) if differ(i, j)}


@given(st.lists(HUNDREDTHS, max_size=7), st.integers(1, 200))
def test_conflicts_are_those_of_the_definition(scores: list[int | None], threshold: int) -> None:
    values = [NAN if s is None else s / 100 for s in scores]
    conflicts = find_conflicts(values, threshold / 100)
    assert set(conflicts) == _by_definition(scores, threshold)
    assert conflicts == sorted(conflicts)


@pytest.mark.parametrize(
    ("scores", "want"),
    [
        ([0.5, -0.5], [ConflictingPair(0, 1, "binary")]),
        ([0.9, 0.1], [ConflictingPair(0, 1, "gradient")]),
        ([0.9, 0.1, 0.0], [ConflictingPair(0, 1, "outlier"), ConflictingPair(0, 2, "outlier")]),
        ([0.9, 0.1, NAN], [ConflictingPair(0, 1, "gradient")]),
        ([0.0, -0.9], [ConflictingPair(0, 1, "gradient")]),  # zero is on neither side
        ([float(np.mean([0.1, 0.2, -0.3])), -0.5], [ConflictingPair(0, 1, "gradient")]),  # nor is 2e-17
        (
            [0.9, 0.5, 0.1],
            [ConflictingPair(0, 1, "gradient"), ConflictingPair(0, 2, "gradient"), ConflictingPair(1, 2, "gradient")],
        ),
        ([0.7, 0.32], [ConflictingPair(0, 1, "gradient")]),  # exactly 0.38, which is less in floating point
        ([0.7, 0.33], []),
        ([0.4, 0.6], []),
        ([NAN, NAN], []),
        ([], []),
    ],
)
def test_kinds(scores: list[float], want: list[ConflictingPair]) -> None:
    assert find_conflicts(scores, 0.38) == want


@pytest.mark.parametrize("threshold", [0, -0.1, 2.1, NAN])
def test_a_threshold_out_of_range_raises(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be in"):
        find_conflicts([0.1, 0.2], threshold)


def test_resolution_takes_more_than_half_of_the_assigned_judges() -> None:
    for left, right, n_assigned in product(range(8), repeat=3):
        if left + right > n_assigned:
            with pytest.raises(ValueError, match="do not fit"):
                settle(left, right, n_assigned)
            continue
        winner = settle(left, right, n_assigned)
        assert (winner == "left") == (left > n_assigned / 2)
        assert (winner == "right") == (right > n_assigned / 2)


def test_votes_that_failed_stay_in_the_denominator() -> None:
    assert settle(2, 0, 3) == "left"
    assert settle(2, 0, 4) is None
    assert settle(2, 2, 4) is None
    assert settle(0, 0, 0) is None
    with pytest.raises(ValueError, match="do not fit"):
        settle(-1, 0, 3)


@given(*[st.integers(0, 12)] * 4)
def test_a_judge_votes_for_the_larger_share(valid_left: int, more_left: int, valid_right: int, more_right: int) -> None:
    given_left, given_right = valid_left + more_left, valid_right + more_right
    vote = judge_vote(valid_left, given_left, valid_right, given_right)
    if given_left == 0 or given_right == 0:
        assert vote is None
        return
    left, right = Fraction(valid_left, given_left), Fraction(valid_right, given_right)
    assert vote == (None if left == right else "left" if left > right else "right")


def test_third_quartile_by_hand() -> None:
    # Five sizes 0 .1 .2 .4 .8: the third quartile is the fourth.
    quartile = third_quartile([[0.1, -0.8, NAN], [0.4, -0.2, 0.0]])
    assert quartile.value == pytest.approx(0.4)
    # Four of five are at most 0.4. Clopper and Pearson's ends for 4 of 5, moved to 0.75, are levels of the sizes.
    low, high = stats.binomtest(4, 5).proportion_ci(0.95, "exact")
    ends = np.quantile([0, 0.1, 0.2, 0.4, 0.8], [low - 0.05, high - 0.05])
    assert quartile.n == 5
    assert (quartile.ci_low, quartile.ci_high) == pytest.approx(tuple(ends))
    assert third_quartile([0.1, 0.2, 0.3]).reason == "an interval needs at least 5 pairs, but there are 3 pairs"
    assert third_quartile([0.1, 0.2]).value == pytest.approx(0.175)


@pytest.mark.parametrize("n", [20, 57, 100, 1000])
def test_third_quartile_of_independent_differences_has_nearly_binomial_ranks(n: int) -> None:
    # The quartile of ranks 1 to n; low and high are then ranks: B(n, 0.75) is between them with 95%.
    quartile = third_quartile(np.arange(1, n + 1))
    assert quartile.generalizes_to == "other pairs like these"
    low, high = stats.binom(n, 0.75).ppf([0.025, 0.975])
    tolerance = 1 + 0.05 * (high - low)
    assert low - tolerance <= known(quartile.ci_low) <= low + tolerance / 2
    assert high - tolerance / 2 <= known(quartile.ci_high) <= high + 1 + tolerance


def test_third_quartile_degenerate() -> None:
    none = third_quartile([NAN, NAN])
    assert (none.value, none.n, none.reason) == (None, 0, "no differences")
    assert third_quartile([]).value is None
    assert third_quartile(np.zeros(30)).value == 0
    noise = np.abs(np.full(30, 0.1 + 0.2) - 0.3)  # 5.6e-17: equal scores, by another sum
    assert noise.min() > 0
    assert third_quartile(noise).value == 0
    assert third_quartile([0.0] * 3 + [1e-9]).value == pytest.approx(2.5e-10)
    for n in range(1, 40):
        assert (third_quartile(np.arange(n)).ci_low is None) == (n < 5), n
    with pytest.raises(ValueError, match="infinite"):
        third_quartile([np.inf])


@pytest.mark.parametrize(("third", "threshold"), [(None, 2.0), (0.0, 2.0), (2.5e-10, 2.0), (1e-9, 1e-9), (0.4, 0.4)])
def test_a_threshold_of_nothing_is_none(third: float | None, threshold: float) -> None:
    assert auto_threshold(third) == threshold


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3, 0.6])
def test_noise_is_welchs_test(shift: float) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(0, 0.2, 5), rng.normal(shift, 0.3, 6)
    expected = stats.ttest_ind(a, b, equal_var=False).pvalue >= 0.05
    within_noise = is_within_noise(float(a.mean() - b.mean()), (float(a.var(ddof=1)), float(b.var(ddof=1))), (5, 6))
    assert within_noise == expected


def test_noise_that_is_not_known_is_not_called_none() -> None:
    assert is_within_noise(0.5, (None, 0.1), (1, 5)) is None
    assert is_within_noise(0.5, (0.0, 0.0), (5, 5)) is None
    assert is_within_noise(0.5, (0.0, 0.1), (5, 5)) is False
