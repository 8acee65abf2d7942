"""Split-half reliability of a survey over its respondents, and the highest correlation that it allows."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.intervals.estimate import LOWER_QUANTILE, UPPER_QUANTILE
from auditor.surveys.microdata import Microdata
from auditor.surveys.survey_facts import Reliability

Floats = NDArray[np.float64]
DEFAULT_SPLITS = 100
ZERO_TOLERANCE = 1e-9
"""Range of scores below which they count as equal, to allow for rounding errors."""


def compute_half_scores(microdata: Microdata, seed: int = 0, n_splits: int = DEFAULT_SPLITS) -> Floats:
    """Compute the weighted mean scores of two random halves of each country's respondents, for each of several splits.

    Returns:
        Shape (splits, 2, countries, topics); nan if nobody in the half answered.
    """
    rng = np.random.default_rng(seed)
    is_answered = ~np.isnan(microdata.answers)
    scores = np.empty((n_splits, 2, len(microdata.countries), len(microdata.topics)))
    for country, (start, end) in enumerate(itertools.pairwise(microdata.country_offsets)):
        country_rows = slice(start, end)
        answer_weights = is_answered[country_rows] * microdata.weights[country_rows, None]
        weighted_answers = (
            np.where(is_answered[country_rows], microdata.answers[country_rows], 0.0)
            * microdata.weights[country_rows, None]
        )
        # Shape (splits, respondents): 1 for those in the first half of each split, else 0.
        in_first_half = rng.permuted(np.tile(np.arange(end - start) % 2, (n_splits, 1)), axis=1).astype(float)
        for half_index, membership in enumerate((in_first_half, 1 - in_first_half)):
            total_weight = membership @ answer_weights
            scores[:, half_index, country] = np.divide(
                membership @ weighted_answers,
                total_weight,
                out=np.full(total_weight.shape, np.nan),
                where=total_weight > 0,
            )
    return scores


def compute_reliability(half_scores: Floats, within_topics: bool = False) -> Reliability:
    """Compute split-half reliability over country x topic cells.

    Args:
        half_scores: as returned by `compute_half_scores`.
        within_topics: first subtract each topic's mean over countries, so that only differences between countries
            count, which are harder to measure.

    Returns:
        The mean over the splits; without a number, but with a reason, if fewer than 3 cells have answers in both
        halves or all scores are equal.
    """
    correlations = [
        _correlate_halves(first_half, second_half, within_topics) for first_half, second_half in half_scores
    ]
    # The fewest cells that any split could compare.
    n = min((n for _, n in correlations), default=0)
    half_rs = [half_r for half_r, _ in correlations if half_r is not None]
    if not half_rs or len(half_rs) < len(correlations):
        reason = "fewer than 3 cells have answers in both halves" if n < 3 else "all scores are equal"
        # No half_r, reliability, low, high and ceiling.
        return Reliability(None, None, None, None, None, n, len(half_scores), reason)
    # Spearman-Brown: the reliability of the whole sample from the correlation of its halves; r = -1 would divide by 0.
    reliabilities = np.array([2 * half_r / (1 + half_r) if half_r > -1 else -1.0 for half_r in half_rs])
    mean = float(reliabilities.mean())
    low, high = (float(quantile) for quantile in np.quantile(reliabilities, (LOWER_QUANTILE, UPPER_QUANTILE)))
    return Reliability(float(np.mean(half_rs)), mean, low, high, math.sqrt(max(0.0, mean)), n, len(half_scores))


def _correlate_halves(first_half: Floats, second_half: Floats, within_topics: bool) -> tuple[float | None, int]:
    """Return Pearson r between two halves, both of shape (countries, topics), and the number of cells compared.

    r is None for fewer than 3 cells or equal scores. With `within_topics`, topics with one country are left out.
    """
    is_compared = ~np.isnan(first_half) & ~np.isnan(second_half)
    if within_topics:
        first_half, second_half = (np.where(is_compared, half, np.nan) for half in (first_half, second_half))
        is_single_country = is_compared.sum(axis=0) < 2
        first_half, second_half = (
            half - np.nanmean(np.where(is_single_country, 0.0, half), axis=0) for half in (first_half, second_half)
        )
        is_compared &= ~is_single_country
    x, y = first_half[is_compared], second_half[is_compared]
    if x.size < 3 or np.ptp(x) < ZERO_TOLERANCE or np.ptp(y) < ZERO_TOLERANCE:
        return None, int(x.size)
    return float(np.corrcoef(x, y)[0, 1]), int(x.size)
