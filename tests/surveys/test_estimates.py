"""Weighted means, errors and bounds against statsmodels and by hand, and multiple imputation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from samplics import PopParam
from samplics.estimation import TaylorEstimator
from statsmodels.stats.weightstats import DescrStatsW

from auditor.surveys.estimates import (
    Floats,
    SurveyDesign,
    compute_imputed_means,
    compute_neutral_mean,
    compute_weighted_mean,
    impute_answers,
    nonresponse_bounds,
    pool_estimates,
    weighted_share,
)
from tests.support.known import known
from tests.support.linearised_error import linearised_error

NAN = math.nan


def test_errors_equal_statsmodels() -> None:
    rng = np.random.default_rng(5)
    x, w = rng.choice([-1, -0.5, 0, 1], 200), rng.gamma(2, 0.5, 200)
    for scale in (1, 1e-4, 3e6):
        mean = compute_weighted_mean(x, w * scale)
        assert mean.mean == pytest.approx(DescrStatsW(x, w).mean, abs=1e-12)
        assert mean.standard_error == pytest.approx(linearised_error(x, w), abs=1e-12)


def test_errors_of_designs_equal_samplics() -> None:
    """Strata, sampling units and unequal weights; some people did not answer, and some places have nobody who did."""
    rng = np.random.default_rng(11)
    n = 400
    strata, places = rng.integers(0, 6, n), rng.integers(0, 9, n)
    x, w = rng.choice([-1, -0.5, 0, 1], n) + 0.3 * strata / 6, rng.gamma(2, 0.5, n)
    x[(rng.random(n) < 0.2) | ((strata == 2) & (places < 2))] = NAN
    units, unit = np.unique(np.column_stack([strata, places]), axis=0, return_inverse=True)
    design = SurveyDesign(unit.ravel(), units[:, 0])
    reference = TaylorEstimator(PopParam.mean)
    answered = ~np.isnan(x)
    domain = np.where(answered, "yes", "no")
    reference.estimate(np.nan_to_num(x, nan=1.0), samp_weight=w, stratum=strata, psu=unit.ravel(), domain=domain)
    mean = compute_weighted_mean(x, w, design)
    assert mean.mean == pytest.approx(reference.point_est["yes"], abs=1e-12)
    assert mean.standard_error == pytest.approx(reference.stderror["yes"], abs=1e-12)


def test_a_design_in_which_everybody_is_a_unit_is_no_design() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=50), rng.gamma(2, 0.5, 50)
    design = SurveyDesign(np.arange(50), np.zeros(50, np.int64))
    assert compute_weighted_mean(x, w, design) == pytest.approx(compute_weighted_mean(x, w))


def test_one_sampling_unit_has_no_error() -> None:
    design = SurveyDesign(np.zeros(3, np.int64), np.zeros(1, np.int64))
    assert compute_weighted_mean(np.array([0.0, 0, 1]), np.ones(3), design).standard_error is None


def test_equal_weights_are_the_plain_mean_and_its_error() -> None:
    # x = 0, 0, 1: mean 1/3, sum of squares 2/3, error sqrt(2/3 / 3 / 2) = 1/3; n - 1 in both.
    mean = compute_weighted_mean(np.array([0.0, 0, NAN, 1]), np.ones(4))
    assert mean.mean == pytest.approx(1 / 3)
    assert mean.standard_error == pytest.approx(1 / 3)
    assert (mean.n, mean.n_effective) == (3, 3.0)


def test_unequal_weights_cost_precision() -> None:
    # Weights 1 and 3: effective size 16 / 10.
    assert compute_weighted_mean(np.array([0.0, 1]), np.array([1.0, 3])).n_effective == pytest.approx(1.6)


@pytest.mark.parametrize("x", [[], [NAN, NAN]])
def test_no_answer_has_no_mean(x: list[float]) -> None:
    assert compute_weighted_mean(np.array(x), np.ones(len(x))) == (None, None, 0, 0.0)
    assert compute_neutral_mean(np.array(x), np.ones(len(x))).mean is None
    assert nonresponse_bounds(np.array(x), np.ones(len(x))) is None


def test_one_answer_has_no_error() -> None:
    assert compute_weighted_mean(np.array([0.5]), np.array([2.0]))[:2] == (0.5, None)


def test_nobody_has_no_share() -> None:
    assert weighted_share(np.array([], bool), np.array([])) is None


def test_treatments_by_hand() -> None:
    # Answers 1 (weight 1) and 0.5 (weight 2); one person of weight 1 gave none: 2/4, and 2/4 +- 1/4.
    x, w = np.array([1, 0.5, NAN]), np.array([1.0, 2, 1])
    assert compute_neutral_mean(x, w).mean == pytest.approx(0.5)
    assert nonresponse_bounds(x, w) == pytest.approx((0.25, 0.75))


@given(st.lists(st.tuples(st.one_of(st.just(NAN), st.floats(-1, 1)), st.floats(0.01, 5)), min_size=1, max_size=30))
def test_every_treatment_lies_within_the_bounds(people: list[tuple[float, float]]) -> None:
    x, w = (np.array(column) for column in zip(*people, strict=True))
    ends, zero = nonresponse_bounds(x, w), compute_neutral_mean(x, w).mean
    if ends is None:
        assert zero is None
        return
    assert zero is not None
    assert ends[0] - 1e-9 <= zero <= ends[1] + 1e-9
    assert ends[0] >= -1 - 1e-9
    assert ends[1] <= 1 + 1e-9
    missing = weighted_share(np.isnan(x), w)
    assert ends[1] - ends[0] == pytest.approx(2 * (missing or 0), abs=1e-9)


def test_rubins_rules_by_hand() -> None:
    # U = (4 + 4) / 2 = 4, B = ((1 - 2)^2 + (3 - 2)^2) / 1 = 2, T = 4 + 3/2 * 2 = 7; 3/7 is between.
    pooled = pool_estimates([1.0, 3.0], [2.0, 2.0])
    assert pooled.mean == pytest.approx(2)
    assert pooled.standard_error == pytest.approx(math.sqrt(7))
    assert pooled.missing_information == pytest.approx(3 / 7)


def test_what_cannot_be_pooled_has_no_number() -> None:
    assert pool_estimates([], []) == (None, None, None)
    assert pool_estimates([0.5], [0.1]) == (0.5, None, None)
    assert pool_estimates([0.5, 0.5], [None, None]) == (0.5, None, None)
    assert pool_estimates([0.5, 0.5], [0.0, 0.0]) == (0.5, 0.0, 0.0)


def people(rng: np.random.Generator, n: int = 3000) -> tuple[Floats, Floats]:
    """Answers to 5 topics that go together, and the same with the lenient often silent about the first."""
    lenient = rng.normal(0, 0.4, (n, 1))
    complete_answers = np.clip(np.round(4 * (lenient + rng.normal(0, 0.2, (n, 5)))) / 4, -1, 1)
    seen = complete_answers.copy()
    seen[rng.random(n) < 1 / (1 + np.exp(-4 * lenient[:, 0])), 0] = NAN
    return complete_answers, seen


def test_imputation_uses_a_respondents_other_answers() -> None:
    complete_answers, seen = people(np.random.default_rng(1))
    truth, dropped = complete_answers[:, 0].mean(), float(np.nanmean(seen[:, 0]))
    imputed_mean = compute_imputed_means(
        seen, np.ones(seen.shape, bool), np.ones(len(seen)), np.random.default_rng(2), 20
    )[0]
    assert abs(dropped - truth) > 0.1
    assert abs(known(imputed_mean.mean) - truth) < 0.35 * abs(dropped - truth)
    # Half the answers are missing: the error must be larger than that of complete data.
    assert known(imputed_mean.standard_error) > complete_answers[:, 0].std() / math.sqrt(len(complete_answers))
    assert 0.02 < known(imputed_mean.missing_information) < 0.9


def test_intervals_cover_the_truth_where_nonresponse_is_at_random() -> None:
    covered, rounds = 0, 100
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        lenient = rng.normal(0, 0.4, (300, 1))
        answers = lenient + rng.normal(0, 0.3, (300, 4))
        answers[rng.random(300) < 0.3, 0] = NAN
        imputed_mean = compute_imputed_means(answers, np.ones(answers.shape, bool), np.ones(300), rng, 20)[0]
        assert imputed_mean.mean is not None
        assert imputed_mean.standard_error is not None
        covered += abs(imputed_mean.mean) <= 1.96 * imputed_mean.standard_error
    # 95% of 100, within three binomial standard deviations, less what a bootstrap of donors is known to lose.
    assert 0.89 * rounds <= covered <= 0.995 * rounds


def test_only_what_was_asked_and_not_answered_is_filled_with_answers_that_were_given() -> None:
    rng = np.random.default_rng(3)
    answers = rng.choice([-1, -0.2, 0.6], (50, 4))
    answers[:10, 0] = NAN
    answers[20:30, 1] = NAN
    answers[:, 3] = NAN
    asked = np.ones(answers.shape, bool)
    asked[20:30, 1] = False
    completed = impute_answers(answers, asked, rng, 7)
    assert completed.shape == (7, 50, 4)
    assert set(np.unique(completed[:, :10, 0])) <= {-1, -0.2, 0.6}
    assert np.isnan(completed[:, 20:30, 1]).all()
    assert np.isnan(completed[:, :, 3]).all()
    known = ~np.isnan(answers)
    assert (completed[:, known] == answers[known]).all()
    assert len({copy.tobytes() for copy in completed}) > 1


def test_a_single_donor_gives_all_answers() -> None:
    answers = np.array([[0.5, 1], [NAN, -1], [NAN, NAN]])
    completed = impute_answers(answers, np.ones(answers.shape, bool), np.random.default_rng(0), 3)
    assert (completed[:, 1:, 0] == 0.5).all()


def test_the_nearest_are_drawn() -> None:
    # Donors of leaning -1 say -1, of +1 say +1; a seeker leans like one or the other.
    lenient = np.repeat([-1.0, 1.0], 100)
    answers = np.column_stack([lenient, lenient])
    answers[[0, 199], 0] = NAN
    completed = impute_answers(answers, np.ones(answers.shape, bool), np.random.default_rng(0), 50)
    assert (completed[:, 0, 0] == -1).all()
    assert (completed[:, 199, 0] == 1).all()


def test_the_donors_are_a_bootstrap_sample() -> None:
    # One topic, so that all are equally near. Half of 1,000 are missing: the mean of a copy varies by
    # (1/2)^2 (s^2/500 + s^2/500), the second for the donors (Rubin & Schenker 1986).
    rng = np.random.default_rng(4)
    donors = rng.choice([-1.0, -0.2, 0.6, 1.0], 500)
    answers = np.append(donors, np.full(500, NAN))[:, None]
    copies = impute_answers(answers, np.ones(answers.shape, bool), rng, 2000)
    between = copies.mean(axis=1).var(ddof=1)
    assert between == pytest.approx(donors.var() / 1000, rel=0.1)
