"""Multiple imputation of missing answers within a country, and Rubin's rules. Pure functions on numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.surveys.estimates import compute_weighted_mean

Floats = NDArray[np.float64]
N_DONORS = 5
"""Donors among whom an answer is drawn."""


class PooledEstimate(NamedTuple):
    """An estimate over several imputations.

    Attributes:
        mean: mean of the estimates; None where there was nothing to impute from.
        standard_error: within and between imputations; None with fewer than two imputations or no errors.
        missing_information: share of the variance that is between imputations, in [0, 1]; None where unknown.
        imputations: how many were pooled.
    """

    mean: float | None
    standard_error: float | None
    missing_information: float | None
    n_imputations: int


def pool_estimates(means: Sequence[float], standard_errors: Sequence[float | None]) -> PooledEstimate:
    """Rubin's rules: T = U + (1 + 1/m) B (Rubin 1987, eq. 3.1.2 to 3.1.5).

    U is the mean squared standard error within imputations, B the sample variance of the means between them.
    """
    m = len(means)
    if m == 0:
        return PooledEstimate(None, None, None, 0)
    mean = float(np.mean(means))
    known = [e for e in standard_errors if e is not None]
    if m < 2 or len(known) != m:
        return PooledEstimate(mean, None, None, m)
    within = float(np.mean(np.square(known)))
    between = (1 + 1 / m) * float(np.var(means, ddof=1))
    total = within + between
    return PooledEstimate(mean, math.sqrt(total), between / total if total > 0 else 0.0, m)


def impute_answers(answers: Floats, asked: NDArray[np.bool_], rng: np.random.Generator, n_imputations: int) -> Floats:
    """Complete the answers of one country, several times over.

    A missing answer is drawn from respondents whose answers to the other topics are alike on average: the nearest
    `DONORS` in the mean of their answers, among a bootstrap sample of those who answered, which carries the
    uncertainty about the donors (approximate Bayesian bootstrap, Rubin & Schenker 1986; hot deck, Andridge & Little
    2010). A respondent with no answer at all is taken to be average. It assumes that nonresponse depends on nothing
    but country and those answers.

    Args:
        answers: shape (respondents, topics), nan where there is no answer.
        asked: shape (respondents, topics); what was not asked stays nan, and so does a topic that nobody answered.
        times: how many completed copies.

    Returns:
        Shape (times, respondents, topics).
    """
    there = ~np.isnan(answers)
    leaning = _respondent_means(answers, there)
    completed = np.repeat(answers[None], n_imputations, axis=0)
    for topic in range(answers.shape[1]):
        donors = np.flatnonzero(there[:, topic])
        missing = np.flatnonzero(~there[:, topic] & asked[:, topic])
        if missing.size and donors.size:
            # Equals are in random order, so that none of them is preferred.
            donors = donors[np.lexsort((rng.random(donors.size), leaning[donors, topic]))]
            drawn = _draw_donors(leaning[donors, topic], leaning[missing, topic], rng, n_imputations)
            completed[:, missing, topic] = answers[donors, topic][drawn]
    return completed


def _respondent_means(answers: Floats, is_answered: NDArray[np.bool_]) -> Floats:
    """Each respondent's mean answer to all topics but one, for each topic; 0 is average.

    It is taken from each topic's own mean, so that nobody looks lenient for having skipped the strictest topics.
    """
    filled = np.where(is_answered, answers, 0.0)
    people = is_answered.sum(axis=0)
    centre = np.divide(filled.sum(axis=0), people, out=np.zeros(people.size), where=people > 0)
    deviation = np.where(is_answered, answers - centre, 0.0)
    others = is_answered.sum(axis=1, keepdims=True) - is_answered
    total = deviation.sum(axis=1, keepdims=True) - deviation
    leaning: Floats = np.divide(total, others, out=np.zeros_like(answers), where=others > 0)
    return leaning


def _draw_donors(donors: Floats, recipients: Floats, rng: np.random.Generator, n_imputations: int) -> NDArray[np.intp]:
    """For each seeker, in each of several bootstrap samples of the sorted donors, one of the nearest `DONORS`.

    Returns:
        Shape (times, seekers): positions among the donors.
    """
    n, width = donors.size, min(N_DONORS, donors.size)
    offset = n * np.arange(n_imputations)[:, None]
    taken = np.bincount((rng.integers(0, n, (n_imputations, n)) + offset).ravel(), minlength=n_imputations * n).reshape(
        n_imputations, n
    )
    upto = np.cumsum(taken, axis=1)
    below = np.hstack([np.zeros((n_imputations, 1), upto.dtype), upto])
    left, right = (below[:, np.searchsorted(donors, recipients, side)] for side in ("left", "right"))
    # An odd window has no middle between two donors: it leans to either side by chance.
    start = np.clip((left + right) // 2 - (width + rng.integers(0, 2, left.shape)) // 2, 0, n - width)
    # Where that many donors are equal to the seeker, any of them will do, and no other.
    equal = right - left >= width
    choices = np.where(equal, right - left, width)
    place = np.where(equal, left, start) + (rng.random(left.shape) * choices).astype(np.intp)
    positions: NDArray[np.intp] = np.searchsorted((upto + offset).ravel(), place + offset, side="right") - offset
    return positions


def compute_imputed_means(
    answers: Floats, asked: NDArray[np.bool_], weights: Floats, rng: np.random.Generator, n_imputations: int
) -> list[PooledEstimate]:
    """The weighted mean of each topic of one country over several imputations, by Rubin's rules.

    Args:
        answers, asked: as in `impute`.
        weight: shape (respondents,), above 0.

    Returns:
        One estimate a topic.
    """
    completed = impute_answers(answers, asked, rng, n_imputations)
    pooled = []
    for topic in range(answers.shape[1]):
        estimates = [compute_weighted_mean(copy, weights) for copy in completed[:, :, topic]]
        means = [e.mean for e in estimates if e.mean is not None]
        pooled.append(pool_estimates(means, [e.standard_error for e in estimates]))
    return pooled
