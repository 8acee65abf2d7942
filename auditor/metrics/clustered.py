"""Figures over answers that come in clusters: several samples, models or judges on one item rise and fall together.

The items are what could have been others, so intervals are over items, and n answers count as no more than they tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, stdtrit
from scipy.stats import rankdata

from auditor.metrics._complete_cases import Z_95, Floats
from auditor.metrics.proportion import wilson_interval

MIN_CLUSTERS = 5
"""Items below which leaving one out shows too little of how they differ."""
MAX_JACKKNIFE_GROUPS = 200
"""Items are left out one by one up to so many, of more in so many groups."""
SINGLE_ITEM_REASON = "one item alone shows nothing of how items differ: no interval"

Bools = NDArray[np.bool_]
MaskStatistic = Callable[[Bools], float]


@dataclass(frozen=True, slots=True)
class ClusteredEstimate:
    """A figure over `n` answers to `clusters` items with its 95% interval; `reason` says why something is None."""

    value: float | None
    n: int
    clusters: int
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None


def clustered_share(hits: ArrayLike, counts: ArrayLike, empty_reason: str = "nothing to count") -> ClusteredEstimate:
    """The share of hits in all answers, with an interval over items.

    Wilson's interval at the effective number of answers, p (1 - p) / v, where v is the variance of the ratio over items
    (linearised, Cochran 1977, Sampling Techniques, eq. 6.13), shrunk by (z / t)² for few items and never more than the
    answers there are (Korn & Graubard, Survey Methodology 24, 1998; Dean & Pagano, J. of Survey Statistics and
    Methodology 3, 2015). Where all answers are hits, or none is, items count as one answer each.

    Args:
        hits, counts: shape (items,), of each item how many answers are hits and how many there are; items without
            answers are left out.
        nothing: the reason given where there is no answer at all.

    Returns:
        The share in [0, 1]; None where there is no answer, no interval over a single item.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= counts.
    """
    h, n = _check_counts(hits, counts)
    total, items = float(n.sum()), len(n)
    if not items:
        return ClusteredEstimate(None, 0, 0, None, None, empty_reason)
    p = float(h.sum()) / total
    if items == 1:
        return ClusteredEstimate(p, int(total), 1, None, None, SINGLE_ITEM_REASON)
    effective = _effective_sample_size(p, h, n)
    low, high = wilson_interval(p, effective)
    return ClusteredEstimate(p, int(total), items, low, high)


def clustered_difference(
    hits: ArrayLike, counts: ArrayLike, other_hits: ArrayLike, other_counts: ArrayLike
) -> ClusteredEstimate:
    """One share less another over the same items, with Student's interval of the linearised difference.

    Args:
        hits, counts: shape (items,), of the first share; other_hits, other_counts: of the second. An item may lack
            answers on either side, or on both.

    Returns:
        The difference in [-1, 1]; None where one side has no answer. No interval below 5 items with answers, nor
        where no item differs from another.

    Raises:
        ValueError: as `clustered_share`.
    """
    one, other = (
        [np.asarray(v, dtype=np.float64) for v in pair] for pair in ((hits, counts), (other_hits, other_counts))
    )
    for side in (one, other):
        _check_counts(*side)
    if one[0].shape != other[0].shape:
        raise ValueError("both shares must be over the same items")
    items = int(((one[1] > 0) | (other[1] > 0)).sum())
    n = int(one[1].sum() + other[1].sum())
    if not one[1].sum() or not other[1].sum():
        return ClusteredEstimate(None, n, items, None, None, "one side has no answer")
    parts = [((h - h.sum() / c.sum() * c) / c.sum(), h.sum() / c.sum()) for h, c in (one, other)]
    value = float(parts[0][1] - parts[1][1])
    if items < MIN_CLUSTERS:
        return ClusteredEstimate(value, n, items, None, None, f"an interval needs {MIN_CLUSTERS} items")
    spread = float(np.sqrt(items / (items - 1) * ((parts[0][0] - parts[1][0]) ** 2).sum()))
    if spread < 1e-12:
        return ClusteredEstimate(value, n, items, None, None, "no item differs from another: no interval")
    half = float(stdtrit(items - 1, 0.975)) * spread
    return ClusteredEstimate(value, n, items, max(-1.0, value - half), min(1.0, value + half))


def area_under_curve(support: ArrayLike, is_correct: ArrayLike, items: ArrayLike) -> ClusteredEstimate:
    """How likely a right answer has more support than a wrong one, ties counting half: 0.5 is no better than chance.

    The area under the ROC curve (Mann & Whitney, Annals of Mathematical Statistics 18, 1947), with the jackknife over
    items on the scale of its log-odds.

    Args:
        support: shape (answers,), larger is more.
        right: shape (answers,), whether the answer is right.
        items: shape (answers,), labels.

    Returns:
        In [0, 1]; None where all answers are right, or all wrong.

    Raises:
        ValueError: shapes differ.
    """
    s, r, label = _check_answers(support, is_correct, items)
    if r.all() or not r.any():
        return _undefined_estimate(
            label, "all answers are wrong" if not r.any() and len(r) else "all answers are right"
        )
    return _jackknife(lambda keep: _auc(s[keep], r[keep]), label, logit, expit)


def area_under_curve_within_items(support: ArrayLike, is_correct: ArrayLike, items: ArrayLike) -> ClusteredEstimate:
    """The same over pairs of a right and a wrong answer to one item alone, so that no item is easier than another.

    Args, Raises: as `area_under_curve`.

    Returns:
        In [0, 1]; None where no item has both right and wrong answers. `clusters` counts those that have.
    """
    s, r, label = _check_answers(support, is_correct, items)
    names, place = np.unique(label, return_inverse=True)
    pairs, won = np.zeros(len(names)), np.zeros(len(names))
    for i in range(len(names)):
        mine = place == i
        up, down = s[mine & r], s[mine & ~r]
        pairs[i] = len(up) * len(down)
        won[i] = float((np.sign(up[:, None] - down[None, :]) + 1).sum() / 2) if pairs[i] else 0.0
    mixed = pairs > 0
    if not mixed.any():
        return _undefined_estimate(label, "no item has both right and wrong answers")
    w, p = won[mixed], pairs[mixed]
    found = _jackknife(lambda keep: float(w[keep].sum() / p[keep].sum()), np.arange(len(w)), logit, expit)
    return ClusteredEstimate(found.value, int(p.sum()), len(w), found.ci_low, found.ci_high, found.reason)


def clustered_rank_correlation(x: ArrayLike, y: ArrayLike, items: ArrayLike) -> ClusteredEstimate:
    """Spearman's rank correlation of two figures of each answer, with the jackknife over items on Fisher's scale.

    Args:
        x, y: shape (answers,).
        items: shape (answers,), labels.

    Returns:
        In [-1, 1]; None with fewer than 3 answers, or where one side is the same for all.

    Raises:
        ValueError: shapes differ.
    """
    a, b, label = (np.asarray(v) for v in (x, y, items))
    if not a.shape == b.shape == label.shape or a.ndim != 1:
        raise ValueError("x, y and items must be one-dimensional and of one length")
    if np.isnan(_spearman(a, b)):
        return _undefined_estimate(label, "fewer than 3 answers, or one side is the same for all")
    return _jackknife(lambda keep: _spearman(a[keep], b[keep]), label, np.arctanh, np.tanh)


# --- inside -----------------------------------------------------------------------------------------------------


def _check_counts(hits: ArrayLike, counts: ArrayLike) -> tuple[Floats, Floats]:
    h, n = (np.asarray(v, dtype=np.float64) for v in (hits, counts))
    if h.shape != n.shape or h.ndim != 1 or (h < 0).any() or (h > n).any():
        raise ValueError("hits and counts must have one shape (items,), with 0 <= hits <= counts")
    return h[n > 0], n[n > 0]


def _effective_sample_size(p: float, hits: Floats, counts: Floats) -> float:
    """Independent answers that tell as much as these."""
    total, items = float(counts.sum()), len(counts)
    if p in (0.0, 1.0):
        return float(items)
    variance = items / (items - 1) * float(((hits - p * counts) ** 2).sum()) / total**2
    few = (Z_95 / float(stdtrit(items - 1, 0.975))) ** 2
    return total * few if variance == 0 else few * min(total, p * (1 - p) / variance)


def _check_answers(
    support: ArrayLike, is_correct: ArrayLike, items: ArrayLike
) -> tuple[Floats, Bools, NDArray[np.generic]]:
    s, r, label = np.asarray(support, dtype=np.float64), np.asarray(is_correct, dtype=np.bool_), np.asarray(items)
    if not s.shape == r.shape == label.shape or s.ndim != 1:
        raise ValueError("support, right and items must be one-dimensional and of one length")
    return s, r, label


def _undefined_estimate(item_labels: NDArray[np.generic], reason: str) -> ClusteredEstimate:
    return ClusteredEstimate(
        None, len(item_labels), len(np.unique(item_labels)), None, None, reason if len(item_labels) else "no answer"
    )


def _auc(support: Floats, is_correct: Bools) -> float:
    up, down = int(is_correct.sum()), int((~is_correct).sum())
    if not up or not down:
        return float("nan")
    return float((rankdata(support)[is_correct].sum() - up * (up + 1) / 2) / (up * down))


def _spearman(x: NDArray[np.generic], y: NDArray[np.generic]) -> float:
    if len(x) < 3 or len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
        return float("nan")
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def _jackknife(
    statistic: MaskStatistic,
    item_labels: NDArray[np.generic],
    transform: Callable[[Floats], Floats],
    inverse: Callable[[Floats], Floats],
) -> ClusteredEstimate:
    """Leaves out one item, or one group of items, at a time (Efron & Stein, Annals of Statistics 9, 1981)."""
    names, place = np.unique(item_labels, return_inverse=True)
    n, items = len(item_labels), len(names)
    estimate = statistic(np.ones(n, dtype=np.bool_))
    if items < MIN_CLUSTERS:
        return ClusteredEstimate(estimate, n, items, None, None, f"an interval needs {MIN_CLUSTERS} items")
    groups = min(items, MAX_JACKKNIFE_GROUPS)
    left_out = np.array([statistic(place % groups != g) for g in range(groups)])
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled, centre = transform(left_out), transform(np.array([estimate]))[0]
    if not np.isfinite(scaled).all() or not np.isfinite(centre):
        return ClusteredEstimate(
            estimate, n, items, None, None, "without some item the figure is at its end, or not defined"
        )
    spread = float(np.sqrt((groups - 1) / groups * ((scaled - scaled.mean()) ** 2).sum()))
    half = float(stdtrit(groups - 1, 0.975)) * spread
    low, high = inverse(np.array([centre - half, centre + half]))
    return ClusteredEstimate(estimate, n, items, float(low), float(high))
