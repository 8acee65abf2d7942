"""Multiple imputation: Rubin's rules by hand, and a simulation whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from auditor.surveys.estimates import Floats, compute_imputed_means, impute_answers, pool_estimates

NAN = math.nan


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
    assert imputed_mean.mean is not None
    assert imputed_mean.standard_error is not None
    assert abs(dropped - truth) > 0.1
    assert abs(imputed_mean.mean - truth) < 0.35 * abs(dropped - truth)
    # Half the answers are missing: the error must be larger than that of complete data.
    assert imputed_mean.standard_error > complete_answers[:, 0].std() / math.sqrt(len(complete_answers))
    assert imputed_mean.missing_information is not None
    assert 0.02 < imputed_mean.missing_information < 0.9


def test_intervals_cover_the_truth_where_nonresponse_is_at_random() -> None:
    covered, rounds = 0, 200
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        lenient = rng.normal(0, 0.4, (300, 1))
        answers = lenient + rng.normal(0, 0.3, (300, 4))
        answers[rng.random(300) < 0.3, 0] = NAN
        imputed_mean = compute_imputed_means(answers, np.ones(answers.shape, bool), np.ones(300), rng, 20)[0]
        assert imputed_mean.mean is not None
        assert imputed_mean.standard_error is not None
        covered += abs(imputed_mean.mean) <= 1.96 * imputed_mean.standard_error
    # 95% of 200, within three binomial standard deviations, less what a bootstrap of donors is known to lose.
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
