"""Estimates over clustered answers: several samples, models or judges on one item are correlated.

Intervals are over items, as if other items had been drawn: n correlated answers count as fewer independent ones.
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
"""Fewest items for a jackknife interval: fewer show too little of how items differ."""
MAX_JACKKNIFE_GROUPS = 200
"""The jackknife leaves items out one by one up to this many items; more are left out in this many groups."""
SINGLE_ITEM_REASON = "one item alone shows nothing of how items differ: no interval"

Bools = NDArray[np.bool_]
MaskStatistic = Callable[[Bools], float]
"""From the mask of the included answers, shape (answers,), to a number, nan where undefined."""


@dataclass(frozen=True, slots=True)
class ClusteredEstimate:
    """An estimate over `n` answers to `clusters` items with its 95% interval; `reason` says why something is None."""

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
    number of answers (Korn & Graubard, Survey Methodology 24, 1998; Dean & Pagano, J. of Survey Statistics and
    Methodology 3, 2015). Where all answers are hits, or none is, items count as one answer each.

    Args:
        hits, counts: shape (items,), for each item the number of hits and the number of answers; items without answers
            are left out.
        empty_reason: the reason given where there is no answer at all.

    Returns:
        The share in [0, 1]; None where there is no answer, no interval over a single item.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= counts.
    """
    h, n = _check_counts(hits, counts)
    total, n_items = float(n.sum()), len(n)
    if not n_items:
        return ClusteredEstimate(None, 0, 0, None, None, empty_reason)
    p = float(h.sum()) / total
    if n_items == 1:
        return ClusteredEstimate(p, int(total), 1, None, None, SINGLE_ITEM_REASON)
    effective_size = _effective_sample_size(p, h, n)
    low, high = wilson_interval(p, effective_size)
    return ClusteredEstimate(p, int(total), n_items, low, high)


def clustered_difference(
    hits: ArrayLike, counts: ArrayLike, other_hits: ArrayLike, other_counts: ArrayLike
) -> ClusteredEstimate:
    """One share minus another over the same items, with Student's interval of the linearised difference.

    Args:
        hits, counts: shape (items,), of the first share; other_hits, other_counts: of the second. An item may lack
            answers on either side, or on both.

    Returns:
        The difference in [-1, 1]; None where one side has no answer. No interval below 5 items with answers, or where
        the difference is the same for all items.

    Raises:
        ValueError: as `clustered_share`.
    """
    first_share, second_share = (
        [np.asarray(column, dtype=np.float64) for column in columns]
        for columns in ((hits, counts), (other_hits, other_counts))
    )
    for counted in (first_share, second_share):
        _check_counts(*counted)
    if first_share[0].shape != second_share[0].shape:
        raise ValueError("both shares must be over the same items")
    n_items = int(((first_share[1] > 0) | (second_share[1] > 0)).sum())
    n = int(first_share[1].sum() + second_share[1].sum())
    if not first_share[1].sum() or not second_share[1].sum():
        return ClusteredEstimate(None, n, n_items, None, None, "one side has no answer")
    # For each share: what every item contributes to its deviation, shape (items,), and the share itself.
    linearized = [((h - h.sum() / c.sum() * c) / c.sum(), h.sum() / c.sum()) for h, c in (first_share, second_share)]
    value = float(linearized[0][1] - linearized[1][1])
    if n_items < MIN_CLUSTERS:
        return ClusteredEstimate(value, n, n_items, None, None, f"an interval needs {MIN_CLUSTERS} items")
    std_error = float(np.sqrt(n_items / (n_items - 1) * ((linearized[0][0] - linearized[1][0]) ** 2).sum()))
    if std_error < 1e-12:
        return ClusteredEstimate(value, n, n_items, None, None, "no item differs from another: no interval")
    half_width = float(stdtrit(n_items - 1, 0.975)) * std_error
    return ClusteredEstimate(value, n, n_items, max(-1.0, value - half_width), min(1.0, value + half_width))


def area_under_curve(support: ArrayLike, is_correct: ArrayLike, items: ArrayLike) -> ClusteredEstimate:
    """The probability that a right answer has more support than a wrong one, ties counting half; 0.5 is chance level.

    The area under the ROC curve (Mann & Whitney, Annals of Mathematical Statistics 18, 1947), with the jackknife over
    items on the log-odds scale.

    Args:
        support: shape (answers,), larger is more.
        is_correct: shape (answers,), whether the answer is right.
        items: shape (answers,), labels.

    Returns:
        In [0, 1]; None where all answers are right, or all wrong.

    Raises:
        ValueError: shapes differ.
    """
    support_values, correct, item_labels = _check_answers(support, is_correct, items)
    if correct.all() or not correct.any():
        return _undefined_estimate(
            item_labels, "all answers are wrong" if not correct.any() and len(correct) else "all answers are right"
        )
    return _jackknife(lambda included: _auc(support_values[included], correct[included]), item_labels, logit, expit)


def area_under_curve_within_items(support: ArrayLike, is_correct: ArrayLike, items: ArrayLike) -> ClusteredEstimate:
    """As `area_under_curve`, over pairs of a right and a wrong answer to the same item.

    Comparing within items removes differences in difficulty between items.

    Args, Raises: as `area_under_curve`.

    Returns:
        In [0, 1]; None where no item has both right and wrong answers. `n` counts pairs, `clusters` items with both.
    """
    support_values, correct, item_labels = _check_answers(support, is_correct, items)
    item_names, item_index = np.unique(item_labels, return_inverse=True)
    n_pairs, n_won = np.zeros(len(item_names)), np.zeros(len(item_names))
    for i in range(len(item_names)):
        of_item = item_index == i
        right_support, wrong_support = support_values[of_item & correct], support_values[of_item & ~correct]
        n_pairs[i] = len(right_support) * len(wrong_support)
        n_won[i] = (
            float((np.sign(right_support[:, None] - wrong_support[None, :]) + 1).sum() / 2) if n_pairs[i] else 0.0
        )
    has_both = n_pairs > 0
    if not has_both.any():
        return _undefined_estimate(item_labels, "no item has both right and wrong answers")
    won, pairs = n_won[has_both], n_pairs[has_both]
    auc = _jackknife(
        lambda included: float(won[included].sum() / pairs[included].sum()), np.arange(len(won)), logit, expit
    )
    return ClusteredEstimate(auc.value, int(pairs.sum()), len(won), auc.ci_low, auc.ci_high, auc.reason)


def clustered_rank_correlation(x: ArrayLike, y: ArrayLike, items: ArrayLike) -> ClusteredEstimate:
    """Spearman's rank correlation of two measures of each answer, with the jackknife over items on Fisher's z.

    Args:
        x, y: shape (answers,).
        items: shape (answers,), labels.

    Returns:
        In [-1, 1]; None with fewer than 3 answers, or where one side is the same for all.

    Raises:
        ValueError: shapes differ.
    """
    a, b, item_labels = (np.asarray(column) for column in (x, y, items))
    if not a.shape == b.shape == item_labels.shape or a.ndim != 1:
        raise ValueError("x, y and items must be one-dimensional and of one length")
    if np.isnan(_spearman(a, b)):
        return _undefined_estimate(item_labels, "fewer than 3 answers, or one side is the same for all")
    return _jackknife(lambda included: _spearman(a[included], b[included]), item_labels, np.arctanh, np.tanh)


# --- private helpers --------------------------------------------------------------------------------------------


def _check_counts(hits: ArrayLike, counts: ArrayLike) -> tuple[Floats, Floats]:
    """Both as float arrays without the items that have no answer; ValueError if not 0 <= hits <= counts."""
    h, n = (np.asarray(column, dtype=np.float64) for column in (hits, counts))
    if h.shape != n.shape or h.ndim != 1 or (h < 0).any() or (h > n).any():
        raise ValueError("hits and counts must have one shape (items,), with 0 <= hits <= counts")
    return h[n > 0], n[n > 0]


def _effective_sample_size(p: float, hits: Floats, counts: Floats) -> float:
    """The number of independent answers whose share would have the same variance."""
    total, n_items = float(counts.sum()), len(counts)
    if p in (0.0, 1.0):
        return float(n_items)
    variance = n_items / (n_items - 1) * float(((hits - p * counts) ** 2).sum()) / total**2
    small_sample_factor = (Z_95 / float(stdtrit(n_items - 1, 0.975))) ** 2
    return total * small_sample_factor if variance == 0 else small_sample_factor * min(total, p * (1 - p) / variance)


def _check_answers(
    support: ArrayLike, is_correct: ArrayLike, items: ArrayLike
) -> tuple[Floats, Bools, NDArray[np.generic]]:
    """The columns as arrays of float, bool and labels; ValueError if their shapes differ."""
    support_values, correct, item_labels = (
        np.asarray(support, dtype=np.float64),
        np.asarray(is_correct, dtype=np.bool_),
        np.asarray(items),
    )
    if not support_values.shape == correct.shape == item_labels.shape or support_values.ndim != 1:
        raise ValueError("support, right and items must be one-dimensional and of one length")
    return support_values, correct, item_labels


def _undefined_estimate(item_labels: NDArray[np.generic], reason: str) -> ClusteredEstimate:
    """An estimate without a value, with the reason, or "no answer" where there is none."""
    return ClusteredEstimate(
        None, len(item_labels), len(np.unique(item_labels)), None, None, reason if len(item_labels) else "no answer"
    )


def _auc(support: Floats, is_correct: Bools) -> float:
    """The area under the ROC curve by ranks; nan where all answers are right, or all wrong."""
    n_right, n_wrong = int(is_correct.sum()), int((~is_correct).sum())
    if not n_right or not n_wrong:
        return float("nan")
    return float((rankdata(support)[is_correct].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong))


def _spearman(x: NDArray[np.generic], y: NDArray[np.generic]) -> float:
    """Spearman's rank correlation; nan with fewer than 3 values or a constant side."""
    if len(x) < 3 or len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
        return float("nan")
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def _jackknife(
    statistic: MaskStatistic,
    item_labels: NDArray[np.generic],
    transform: Callable[[Floats], Floats],
    inverse: Callable[[Floats], Floats],
) -> ClusteredEstimate:
    """Estimate a statistic with an interval that leaves out items, or groups of items, in turn.

    The jackknife is Efron & Stein's (Annals of Statistics 9, 1981), on a scale on which the statistic is nearly normal.

    Args:
        statistic: from the mask of the included answers to a number.
        item_labels: shape (answers,).
        transform, inverse: to that scale and back.
    """
    item_names, item_index = np.unique(item_labels, return_inverse=True)
    n, n_items = len(item_labels), len(item_names)
    estimate = statistic(np.ones(n, dtype=np.bool_))
    if n_items < MIN_CLUSTERS:
        return ClusteredEstimate(estimate, n, n_items, None, None, f"an interval needs {MIN_CLUSTERS} items")
    n_groups = min(n_items, MAX_JACKKNIFE_GROUPS)
    replicates = np.array([statistic(item_index % n_groups != group) for group in range(n_groups)])
    with np.errstate(divide="ignore", invalid="ignore"):
        transformed, centre = transform(replicates), transform(np.array([estimate]))[0]
    if not np.isfinite(transformed).all() or not np.isfinite(centre):
        return ClusteredEstimate(
            estimate, n, n_items, None, None, "without some item the figure is at its end, or not defined"
        )
    std_error = float(np.sqrt((n_groups - 1) / n_groups * ((transformed - transformed.mean()) ** 2).sum()))
    half_width = float(stdtrit(n_groups - 1, 0.975)) * std_error
    low, high = inverse(np.array([centre - half_width, centre + half_width]))
    return ClusteredEstimate(estimate, n, n_items, float(low), float(high))
