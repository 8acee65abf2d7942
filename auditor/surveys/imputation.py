"""Multiple imputation of missing answers within a country, and Rubin's rules. Pure functions on numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.surveys.estimates import compute_weighted_mean
from auditor.surveys.survey_design import SurveyDesign

Floats = NDArray[np.float64]
N_DONORS = 5
"""Number of nearest donors from which an answer is drawn."""


class PooledEstimate(NamedTuple):
    """An estimate over several imputations.

    Attributes:
        mean: mean of the estimates; None without imputations.
        standard_error: from the variance within and between imputations; None with fewer than two imputations, or if
            one of them has no standard error.
        missing_information: share of the variance that is between imputations, in [0, 1]; None without standard_error.
    """

    mean: float | None
    standard_error: float | None
    missing_information: float | None


def pool_estimates(means: Sequence[float], standard_errors: Sequence[float | None]) -> PooledEstimate:
    """Pool estimates by Rubin's rules: T = U + (1 + 1/m) B (Rubin 1987, eq. 3.1.2 to 3.1.5).

    U is the mean squared standard error within imputations, B the sample variance of the means between them.
    """
    m = len(means)
    if m == 0:
        return PooledEstimate(None, None, None)
    mean = float(np.mean(means))
    known_errors = [error for error in standard_errors if error is not None]
    if m < 2 or len(known_errors) != m:
        return PooledEstimate(mean, None, None)
    within = float(np.mean(np.square(known_errors)))
    between = (1 + 1 / m) * float(np.var(means, ddof=1))
    total = within + between
    return PooledEstimate(mean, math.sqrt(total), between / total if total > 0 else 0.0)


def impute_answers(answers: Floats, asked: NDArray[np.bool_], rng: np.random.Generator, n_imputations: int) -> Floats:
    """Impute the missing answers of one country several times, by hot deck.

    A missing answer is copied from a random one of the `N_DONORS` respondents whose mean answer to the other topics is
    nearest, in a bootstrap sample of those who answered. The bootstrap carries the uncertainty about the donors
    (approximate Bayesian bootstrap, Rubin & Schenker 1986; hot deck, Andridge & Little 2010). Respondents without any
    answer count as average. The method assumes that nonresponse depends only on country and those answers.

    Args:
        answers: shape (respondents, topics), nan without an answer.
        asked: shape (respondents, topics); answers that were not asked stay nan, as do topics that nobody answered.
        n_imputations: number of imputations.

    Returns:
        Shape (n_imputations, respondents, topics).
    """
    is_answered = ~np.isnan(answers)
    mean_of_others = _respondent_means(answers, is_answered)
    completed = np.repeat(answers[None], n_imputations, axis=0)
    for topic in range(answers.shape[1]):
        donors = np.flatnonzero(is_answered[:, topic])
        missing = np.flatnonzero(~is_answered[:, topic] & asked[:, topic])
        if missing.size and donors.size:
            # Donors with equal means are in random order, so that none of them is preferred.
            donors = donors[np.lexsort((rng.random(donors.size), mean_of_others[donors, topic]))]
            donor_positions = _draw_donors(
                mean_of_others[donors, topic], mean_of_others[missing, topic], rng, n_imputations
            )
            completed[:, missing, topic] = answers[donors, topic][donor_positions]
    return completed


def _respondent_means(answers: Floats, is_answered: NDArray[np.bool_]) -> Floats:
    """Return each respondent's mean deviation from the topic means over the other topics: shape (respondents, topics).

    0 is average. Answers are centred by topic, so that respondents who skip the topics with the lowest scores do not
    get a high mean.
    """
    filled = np.where(is_answered, answers, 0.0)
    n_answered = is_answered.sum(axis=0)
    topic_means = np.divide(filled.sum(axis=0), n_answered, out=np.zeros(n_answered.size), where=n_answered > 0)
    deviation = np.where(is_answered, answers - topic_means, 0.0)
    n_others = is_answered.sum(axis=1, keepdims=True) - is_answered
    sum_of_others = deviation.sum(axis=1, keepdims=True) - deviation
    mean_of_others: Floats = np.divide(sum_of_others, n_others, out=np.zeros_like(answers), where=n_others > 0)
    return mean_of_others


def _draw_donors(
    donor_means: Floats, recipient_means: Floats, rng: np.random.Generator, n_imputations: int
) -> NDArray[np.intp]:
    """Draw one of the `N_DONORS` nearest donors for each recipient, in each of several bootstrap samples of the donors.

    Args:
        donor_means: shape (donors,), sorted.
        recipient_means: shape (recipients,).

    Returns:
        Shape (n_imputations, recipients): positions among the donors.
    """
    # `window` is the number of donors among whom one is drawn; `offset` makes positions unique over all samples.
    n_donors, window = donor_means.size, min(N_DONORS, donor_means.size)
    offset = n_donors * np.arange(n_imputations)[:, None]
    # How often each bootstrap sample contains each donor: shape (n_imputations, n_donors).
    draw_counts = np.bincount(
        (rng.integers(0, n_donors, (n_imputations, n_donors)) + offset).ravel(), minlength=n_imputations * n_donors
    ).reshape(n_imputations, n_donors)
    cumulative_counts = np.cumsum(draw_counts, axis=1)
    # `counts_before[:, d]` is the number of draws of donors before d. A sample is taken as sorted by the donors' means:
    # `first_tied` and `after_tied` bound the positions in it of draws whose mean equals the recipient's.
    counts_before = np.hstack([np.zeros((n_imputations, 1), cumulative_counts.dtype), cumulative_counts])
    first_tied, after_tied = (
        counts_before[:, np.searchsorted(donor_means, recipient_means, side)] for side in ("left", "right")
    )
    # A window of odd width cannot be centred between two donors, so it is shifted to a random side.
    window_start = np.clip(
        (first_tied + after_tied) // 2 - (window + rng.integers(0, 2, first_tied.shape)) // 2, 0, n_donors - window
    )
    # If donors with the recipient's mean fill the window, draw from all of them, and from no other donor.
    ties_fill_window = after_tied - first_tied >= window
    n_choices = np.where(ties_fill_window, after_tied - first_tied, window)
    sample_position = np.where(ties_fill_window, first_tied, window_start) + (
        rng.random(first_tied.shape) * n_choices
    ).astype(np.intp)
    # Which donor is at that position of the sorted sample.
    donor_positions: NDArray[np.intp] = (
        np.searchsorted((cumulative_counts + offset).ravel(), sample_position + offset, side="right") - offset
    )
    return donor_positions


def compute_imputed_means(
    answers: Floats,
    asked: NDArray[np.bool_],
    weights: Floats,
    rng: np.random.Generator,
    n_imputations: int,
    design: SurveyDesign | None = None,
) -> list[PooledEstimate]:
    """Estimate the weighted mean of each topic of one country over several imputations, pooled by Rubin's rules.

    Args:
        answers, asked: as in `impute_answers`.
        weights: shape (respondents,), above 0.
        design: how the respondents were drawn; None if each was drawn by themselves.

    Returns:
        One estimate per topic.
    """
    completed = impute_answers(answers, asked, rng, n_imputations)
    pooled = []
    for topic in range(answers.shape[1]):
        estimates = [compute_weighted_mean(drawn_answers, weights, design) for drawn_answers in completed[:, :, topic]]
        means = [estimate.mean for estimate in estimates if estimate.mean is not None]
        pooled.append(pool_estimates(means, [estimate.standard_error for estimate in estimates]))
    return pooled
