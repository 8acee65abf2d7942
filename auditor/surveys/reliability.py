"""How high a correlation with a survey can be: its split-half reliability by respondents."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from auditor.surveys.microdata import Microdata
from auditor.surveys.survey_facts import Reliability

Floats = NDArray[np.float64]
DEFAULT_SPLITS = 100
ZERO_TOLERANCE = 1e-9
"""What differences of sums may leave where exact arithmetic leaves nothing."""


def compute_half_scores(microdata: Microdata, seed: int = 0, n_splits: int = DEFAULT_SPLITS) -> Floats:
    """Scores of two random halves of the respondents of each country, several times over.

    Returns:
        Shape (splits, 2, countries, topics); nan where nobody in the half answered.
    """
    rng = np.random.default_rng(seed)
    there = ~np.isnan(microdata.answers)
    scores = np.empty((n_splits, 2, len(microdata.countries), len(microdata.topics)))
    for country, (start, end) in enumerate(itertools.pairwise(microdata.country_offsets)):
        one = slice(start, end)
        weights = there[one] * microdata.weights[one, None]
        weighted = np.where(there[one], microdata.answers[one], 0.0) * microdata.weights[one, None]
        half = rng.permuted(np.tile(np.arange(end - start) % 2, (n_splits, 1)), axis=1).astype(float)
        for side, members in enumerate((half, 1 - half)):
            total = members @ weights
            scores[:, side, country] = np.divide(
                members @ weighted, total, out=np.full(total.shape, np.nan), where=total > 0
            )
    return scores


def compute_reliability(half_scores: Floats, within_topics: bool = False) -> Reliability:
    """Split-half reliability over country x topic cells.

    Args:
        halves: as `half_scores` gives them.
        within_topics: take each topic's mean over countries out first, so that what remains is how countries
            differ, which is the harder part.

    Returns:
        The mean over the splits; no number, with a reason, where fewer than 3 cells have answers in both halves or
        all scores are equal.
    """
    pairs = [_correlate_halves(left, right, within_topics) for left, right in half_scores]
    n = min((n for _, n in pairs), default=0)
    rs = [r for r, _ in pairs if r is not None]
    if not rs or len(rs) < len(pairs):
        reason = "fewer than 3 cells have answers in both halves" if n < 3 else "all scores are equal"
        return Reliability(None, None, None, None, None, n, len(half_scores), reason)
    whole = np.array([2 * r / (1 + r) if r > -1 else -1.0 for r in rs])
    mean = float(whole.mean())
    low, high = (float(q) for q in np.quantile(whole, (0.025, 0.975)))
    return Reliability(float(np.mean(rs)), mean, low, high, math.sqrt(max(0.0, mean)), n, len(half_scores))


def _correlate_halves(left: Floats, right: Floats, within_topics: bool) -> tuple[float | None, int]:
    there = ~np.isnan(left) & ~np.isnan(right)
    if within_topics:
        left, right = (np.where(there, x, np.nan) for x in (left, right))
        alone = there.sum(axis=0) < 2
        left, right = (x - np.nanmean(np.where(alone, 0.0, x), axis=0) for x in (left, right))
        there &= ~alone
    x, y = left[there], right[there]
    if x.size < 3 or np.ptp(x) < ZERO_TOLERANCE or np.ptp(y) < ZERO_TOLERANCE:
        return None, int(x.size)
    return float(np.corrcoef(x, y)[0, 1]), int(x.size)
