"""Shares over the items of a task or of a few item sets, of which several samples, models or judges are correlated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import CONFIDENCE_LEVEL, Estimate, Tested, complete_cases
from auditor.metrics.intervals.jackknife_interval import (
    FISHER_Z,
    LOGIT,
    Transform,
    clopper_pearson,
    estimate_from_replicates,
    few_units_factor,
    jackknife_covariance,
    jackknife_interval,
    recompute_without_units,
    replicate_over_units,
    too_few_reason,
)
from auditor.metrics.intervals.special_functions import average_ranks
from auditor.metrics.intervals.unit_means import mean_over_units

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """Counts of the cases of one item set in one wording, such as its pairs, questions or subsets of items.

    Attributes:
        hits: of `n` decided cases; may be a fraction.
        ties: answered cases that are left out, since an answer is a tie.
        lost: cases that were asked about, but not answered completely.
        by_item: shape (items, 2), the hits and the decided cases that each item is part of; None if unknown.
        case_size: number of items in a case.
    """

    hits: float
    n: int
    ties: int = 0
    lost: int = 0
    by_item: Floats | None = field(default=None, repr=False, compare=False)
    case_size: int = 2

    @property
    def value(self) -> float | None:
        """Share of hits; None without a decided case."""
        return self.hits / self.n if self.n else None


def count_by_item(members: NDArray[np.intp], hits: Floats, n_items: int) -> Floats:
    """The hits and the cases that each item is part of, shape (n_items, 2).

    Args:
        members: shape (cases, size), the items of each case.
        hits: shape (cases,).
    """
    size = members.shape[1]
    return np.stack(
        [
            np.bincount(members.ravel(), np.repeat(hits, size), minlength=n_items),
            np.bincount(members.ravel(), minlength=n_items).astype(float),
        ],
        axis=1,
    )


MAX_JACKKNIFE_GROUPS = 200
"""The jackknife leaves items out one by one up to this many items; more are left out in this many groups."""
MIN_TWO_WAY_MODELS = 5
"""Fewest models that are resampled beside items."""

Bools = NDArray[np.bool_]
MaskStatistic = Callable[[Bools], float]
"""From the mask of the included answers, shape (answers,), to a number, nan where undefined."""


def share_difference_over_items(
    hits: ArrayLike, counts: ArrayLike, other_hits: ArrayLike, other_counts: ArrayLike
) -> Estimate:
    """One share minus another over the same items.

    Args:
        hits, counts: shape (items,), of the first share; other_hits, other_counts: of the second. An item may lack
            answers on either side, or on both.

    Returns:
        The difference in [-1, 1]; None where one side has no answer. `n` counts the answers of both.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= counts.
    """
    columns = [np.asarray(column, dtype=np.float64) for column in (hits, counts, other_hits, other_counts)]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise ValueError("both shares must be over the same items")
    moments = np.stack(columns, axis=1)
    if (moments < 0).any() or (moments[:, [0, 2]] > moments[:, [1, 3]]).any():
        raise ValueError("hits and counts must have one shape (items,), with 0 <= hits <= counts")
    moments = moments[moments[:, [1, 3]].any(axis=1)]
    totals, n = moments.sum(axis=0), int(moments[:, [1, 3]].sum())
    if not totals[1] or not totals[3]:
        return Estimate(None, n, reason="one side has no answer")
    replicates = replicate_over_units(moments, _difference_of_shares, {"item": np.arange(len(moments))})
    difference = float(_difference_of_shares(totals[None])[0])
    return estimate_from_replicates(difference, n, replicates.units, bounds=(-1.0, 1.0))


def area_under_curve(support: ArrayLike, is_correct: ArrayLike, items: ArrayLike) -> Tested:
    """The probability that a right answer has more support than a wrong one, ties counting half; 0.5 is chance level.

    The area under the ROC curve (Mann & Whitney, Annals of Mathematical Statistics 18, 1947), with its interval on the
    log-odds scale.

    Args:
        support: shape (answers,), larger is more.
        is_correct: shape (answers,), whether the answer is right.
        items: shape (answers,), labels.

    Returns:
        In [0, 1], tested against 0.5; None where all answers are right, or all wrong.

    Raises:
        ValueError: shapes differ.
    """
    support_values, correct, item_labels = _check_answers(support, is_correct, items)
    if not len(correct):
        return Tested(None, 0, reason="no answer")
    if correct.all() or not correct.any():
        return Tested(None, len(correct), reason=f"all answers are {'correct' if correct.all() else 'incorrect'}")
    return _estimate_over_items(
        lambda included: _auc(support_values[included], correct[included]), item_labels, len(correct), LOGIT
    )


def area_under_curve_within_items(support: ArrayLike, is_correct: ArrayLike, items: ArrayLike) -> Tested:
    """As `area_under_curve`, over pairs of a right and a wrong answer to the same item.

    Comparing within items removes differences in difficulty between items.

    Args, Raises: as `area_under_curve`.

    Returns:
        In [0, 1], tested against 0.5; None where no item has both right and wrong answers. `n` counts pairs.
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
        reason = "no item has both correct and incorrect answers" if len(correct) else "no answer"
        return Tested(None, len(correct), reason=reason)
    won, pairs = n_won[has_both], n_pairs[has_both]
    return _estimate_over_items(
        lambda included: float(won[included].sum() / pairs[included].sum()) if included.any() else np.nan,
        np.arange(len(won)),
        int(pairs.sum()),
        LOGIT,
    )


def correlation_over_items(x: ArrayLike, y: ArrayLike, items: ArrayLike, *, ranks: bool = False) -> Tested:
    """Pearson's or Spearman's correlation of two measures of each answer, with its interval on Fisher's z.

    Args:
        x, y: shape (answers,); answers with a nan are left out.
        items: shape (answers,), labels.
        ranks: whether the correlation is of ranks (Spearman's).

    Returns:
        In [-1, 1]; None with fewer than 3 answers, or where one side is the same for all.

    Raises:
        ValueError: shapes differ.
    """
    a, b, item_labels = (np.asarray(column) for column in (x, y, items))
    if not a.shape == b.shape == item_labels.shape or a.ndim != 1:
        raise ValueError("x, y and items must be one-dimensional and of one length")
    is_known = ~np.isnan(np.asarray(a, dtype=np.float64)) & ~np.isnan(np.asarray(b, dtype=np.float64))
    a, b, item_labels = a[is_known], b[is_known], item_labels[is_known]
    for values, side in ((a, "first"), (b, "second")):
        if len(a) < 3 or len(np.unique(values)) < 2:
            reason = "fewer than 3 answers" if len(a) < 3 else f"all values of the {side} measure are the same"
            return Tested(None, len(a), reason=reason if len(a) else "no answer")
    return _estimate_over_items(
        lambda included: _correlation(a[included], b[included], ranks=ranks), item_labels, len(a), FISHER_Z
    )


# --- private helpers --------------------------------------------------------------------------------------------


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


def _difference_of_shares(sums: Floats) -> Floats:
    """First share minus second, from sums of hits, counts, other hits and other counts, shape (k, 4); nan if empty."""
    with np.errstate(divide="ignore", invalid="ignore"):
        differences: Floats = sums[:, 0] / sums[:, 1] - sums[:, 2] / sums[:, 3]
    return differences


def _auc(support: Floats, is_correct: Bools) -> float:
    """The area under the ROC curve by ranks; nan where all answers are right, or all wrong."""
    n_right, n_wrong = int(is_correct.sum()), int((~is_correct).sum())
    if not n_right or not n_wrong:
        return float("nan")
    return float((average_ranks(support)[is_correct].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong))


def _correlation(x: NDArray[np.generic], y: NDArray[np.generic], *, ranks: bool) -> float:
    """Pearson's or Spearman's correlation; nan with fewer than 3 values or a constant side."""
    if len(x) < 3 or len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
        return float("nan")
    left, right = ((average_ranks(values) if ranks else values.astype(np.float64)) for values in (x, y))
    return float(np.corrcoef(left, right)[0, 1])


def _estimate_over_items(
    statistic: MaskStatistic, item_labels: NDArray[np.generic], n: int, transform: Transform
) -> Tested:
    """Estimate a statistic with an interval and a test that leave out items, or groups of items, in turn.

    Args:
        statistic: from the mask of the included answers to a number.
        item_labels: shape (answers,).
        n: sample size of the estimate.
        transform: the scale on which the statistic is nearly normal; the test is of 0 on it.
    """
    item_names, item_index = np.unique(item_labels, return_inverse=True)
    n_groups = min(len(item_names), MAX_JACKKNIFE_GROUPS)
    value = statistic(np.ones(len(item_labels), dtype=np.bool_))
    replicates = recompute_without_units(statistic, item_index % n_groups)
    interval = jackknife_interval(value, {"item": replicates}, transform)
    if interval.low is None or interval.high is None:
        return Tested(value, n, reason=interval.reason)
    return Tested(value, n, interval.low, interval.high, resampled=("item",), p_value=interval.p_value)


def within_model_difference(
    valid_shares: ArrayLike, is_right: ArrayLike, models: ArrayLike, items: ArrayLike
) -> Tested:
    """How much more often answers are called VALID if they are right than if they are wrong, within models.

    Both columns are centred on their model's means, so that a model whose answers are all called VALID, and are mostly
    right, adds nothing. The difference is the slope through the origin of the shares on being right.

    Args:
        valid_shares: shape (answers,), the share of VALID among the verdicts on each answer; answers with a nan are
            left out.
        is_right: shape (answers,), whether it is right.
        models, items: shape (answers,), whose answer to which item it is.

    Returns:
        The difference in [-1, 1], with an interval over items and models, which are crossed; over items alone with
        fewer than five models. None where no model has both right and wrong answers. `n` counts answers.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (shares, right), is_present = complete_cases(valid_shares, np.asarray(is_right, dtype=np.float64))
    model_index = np.unique(np.asarray(models)[is_present], return_inverse=True)[1]
    item_index = np.unique(np.asarray(items)[is_present], return_inverse=True)[1]
    n_models, n_items = int(model_index.max(initial=-1)) + 1, int(item_index.max(initial=-1)) + 1
    moments = np.stack([np.ones_like(shares), right, shares, right * shares], axis=1)
    by_cell = np.zeros((n_items, n_models, 4))
    np.add.at(by_cell, (item_index, model_index), moments)
    totals = by_cell.sum(axis=0)
    difference = float(_slope_within_models(totals[None])[0]) if n_models else float("nan")
    if not np.isfinite(difference):
        return Tested(None, len(shares), reason="no model has both right and wrong answers with verdicts")
    replicates = {"item": _slope_within_models(totals[None] - by_cell)}
    cells = None
    if n_models >= MIN_TWO_WAY_MODELS:
        is_other = ~np.eye(n_models, dtype=np.bool_)
        replicates["model"] = _slope_within_models(totals[None] * is_other[:, :, None])
        at_items, at_models = np.nonzero(by_cell[:, :, 0])
        without_cells = np.repeat(totals[None], len(at_items), axis=0)
        without_cells[np.arange(len(at_items)), at_models] -= by_cell[at_items, at_models]
        cells = _slope_within_models(without_cells)
    interval = jackknife_interval(difference, replicates, bounds=(-1.0, 1.0), cells=cells)
    if interval.low is None or interval.high is None:
        return Tested(difference, len(shares), reason=interval.reason)
    ends = interval.low, interval.high
    return Tested(difference, len(shares), *ends, resampled=tuple(replicates), p_value=interval.p_value)


def _slope_within_models(sums: Floats) -> Floats:
    """The slope of centred shares on centred correctness, from sums of shape (replicates, models, moments)."""
    n = np.maximum(sums[:, :, 0], 1.0)
    products = (sums[:, :, 3] - sums[:, :, 1] * sums[:, :, 2] / n).sum(axis=1)
    squares = (sums[:, :, 1] - sums[:, :, 1] ** 2 / n).sum(axis=1)
    return np.where(squares > 1e-12, products / np.maximum(squares, 1e-12), np.nan)


Averaging = Literal["instances", "pooled"]
AVERAGINGS: tuple[Averaging, ...] = ("instances", "pooled")

MIN_INSTANCES_OF_RARER = 3
"""Fewest instances with a hit, or with a miss where these are rarer, that show how instances differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedEstimate(Estimate):
    """An estimate over instances, such as item sets or questions, that says how they are averaged."""

    averaged: Averaging
    """`instances`: the mean over item sets or questions of each one's value, as in the papers; n counts them. `pooled`:
    all their cases together; n counts cases."""


def averaged_share(
    hits: ArrayLike,
    totals: ArrayLike,
    instances: Mapping[str, ArrayLike],
    averaged: Averaging,
    *,
    empty_reason: str = "nothing to count",
) -> AveragedEstimate:
    """Estimate a share of cases, with an interval over other instances.

    Args:
        hits, totals: shape (n,), the hits and the cases of each row; hits may be fractions. Rows without a case are
            left out.
        instances: the kind of instance, and the instance of each row, shape (n,). Rows of one instance, such as the
            wordings of one item set, are averaged first.
        averaged: see `Averaging`.
        empty_reason: the reason given where there is no case at all.

    Returns:
        `n` counts instances, or cases where they are pooled. No interval, with a reason, below 5 instances.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= totals.
    """
    [(unit, labels)] = instances.items()
    values, hit_counts, case_counts = _sum_by_instance(hits, totals, labels)
    n = len(values) if averaged == "instances" else round(case_counts.sum())
    if not len(values):
        return AveragedEstimate(value=None, n=0, reason=empty_reason, averaged=averaged)
    n_cases = float(case_counts.sum())
    if averaged == "instances":
        hit_counts, case_counts = values, np.ones_like(values)
    share = min(1.0, float(hit_counts.sum() / case_counts.sum()))
    reason = too_few_reason({unit: [len(values)]})
    if reason is not None:
        return AveragedEstimate(value=share, n=n, reason=reason, averaged=averaged)
    low, high = clopper_pearson(share, _effective_size(share, hit_counts, case_counts, n_cases))
    return AveragedEstimate(value=share, n=n, ci_low=low, ci_high=high, resampled=(unit,), averaged=averaged)


def mean_of_instances(
    values: ArrayLike,
    instances: Mapping[str, ArrayLike],
    bounds: tuple[float, float],
    *,
    empty_reason: str,
    confidence_level: float = CONFIDENCE_LEVEL,
) -> AveragedEstimate:
    """Estimate the mean of one value per instance, such as the consistency of the answers to a question.

    Args, Returns, Raises: as `auditor.metrics.intervals.unit_means.mean_over_units`.
    """
    mean = mean_over_units(values, instances, bounds, empty_reason=empty_reason, confidence_level=confidence_level)
    return AveragedEstimate(
        value=mean.value,
        n=mean.n,
        ci_low=mean.ci_low,
        ci_high=mean.ci_high,
        reason=mean.reason,
        resampled=mean.resampled,
        averaged="instances",
    )


def instance_values(hits: ArrayLike, totals: ArrayLike, labels: ArrayLike) -> Floats:
    """The share of each instance that has a case: the mean of its rows' shares, in the sorted order of the labels.

    Args:
        hits, totals, labels: shape (n,), as for `averaged_share`.
    """
    return _sum_by_instance(hits, totals, labels)[0]


def _sum_by_instance(hits: ArrayLike, totals: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """The mean share, the hits and the cases of each instance with a case; ValueError as for `averaged_share`."""
    hit_counts, case_counts, names = np.asarray(hits, dtype=float), np.asarray(totals, dtype=float), np.asarray(labels)
    if not hit_counts.shape == case_counts.shape == names.shape or hit_counts.ndim != 1:
        raise ValueError("hits, totals and the labels of the instances must have one shape (n,)")
    if (hit_counts < 0).any() or (hit_counts > case_counts * (1 + 1e-12)).any():
        raise ValueError("hits and totals must be counts, hits at most totals")
    has_cases = case_counts > 0
    hit_counts, case_counts = hit_counts[has_cases], case_counts[has_cases]
    index = np.unique(names[has_cases], return_inverse=True)[1]
    n_rows = np.bincount(index)
    return (
        np.bincount(index, hit_counts / case_counts) / n_rows,
        np.bincount(index, hit_counts).astype(np.float64),
        np.bincount(index, case_counts).astype(np.float64),
    )


def _effective_size(share: float, hits: Floats, cases: Floats, n_cases: float) -> float:
    """Number of independent cases whose interval is that of the share over other instances.

    Args:
        share: of all hits in all cases.
        hits, cases: shape (instances,), at least two.
        n_cases: number of cases of all instances; used where all have the same share, but not 0 or 1.
    """
    n_instances = len(cases)
    rarer = hits if share <= 0.5 else cases - hits
    replicates = (hits.sum() - hits) / (cases.sum() - cases)
    variance = float(jackknife_covariance(replicates[None])[0, 0])
    if variance < 1e-24:
        return float(n_instances) if share in (0.0, 1.0) else n_cases
    effective_size = share * (1 - share) / variance * few_units_factor(n_instances)
    if (rarer > 1e-9 * cases).sum() < MIN_INSTANCES_OF_RARER:
        return min(effective_size, float(n_instances))
    return effective_size


def share_over_items(counts: Sequence[CaseCounts], names: Sequence[str], averaged: Averaging) -> Estimate:
    """Estimate a share with an interval over other items of the same sets; `n` counts cases.

    Args:
        counts: one entry per set and wording, each with decided cases.
        names: the set of each entry; an item is left out of all wordings of its set at once.
        averaged: over the sets, or pooled.
    """
    tables = [entry.by_item for entry in counts if entry.by_item is not None]
    groups = [[i for i, name in enumerate(names) if name == group] for group in dict.fromkeys(names)]
    hits, totals = np.array([entry.hits for entry in counts]), np.array([float(entry.n) for entry in counts])
    value, n = _average(hits, totals, groups, averaged), sum(entry.n for entry in counts)
    if len(tables) < len(counts):
        return Estimate(value, n, reason="no interval over other items, since questions are repeated")
    n_items = [len(tables[group[0]]) for group in groups]
    reason = too_few_reason({"item": n_items})
    if reason is not None:
        return Estimate(value, n, reason=reason)
    # Independent cases of a share that is the same in all of them: no two with a common item.
    n_effective = float(sum(n // counts[0].case_size for n in n_items))
    if 0.0 < value < 1.0:
        replicates = [_leave_items_out(hits, totals, tables, groups, group, averaged) for group in groups]
        if not all(np.isfinite(stratum).all() for stratum in replicates):
            return Estimate(value, n, reason="all cases of a set have an item in common: no interval")
        variance = sum(float(jackknife_covariance(stratum[None])[0, 0]) for stratum in replicates)
        n_effective = float(totals.sum())
        if variance >= 1e-24:
            n_effective = value * (1 - value) / variance * few_units_factor(min(n_items))
    return Estimate(value, n, *clopper_pearson(value, n_effective), resampled=("item",))


def _average(hits: Floats, totals: Floats, groups: Sequence[Sequence[int]], averaged: Averaging) -> float:
    """The share over all sets: pooled, or the mean over sets of the mean over their wordings."""
    if averaged == "pooled":
        return float(hits.sum() / totals.sum())
    shares = hits / totals
    return float(np.mean([shares[list(group)].mean() for group in groups]))


def _leave_items_out(
    hits: Floats,
    totals: Floats,
    tables: Sequence[Floats],
    groups: Sequence[Sequence[int]],
    group: Sequence[int],
    averaged: Averaging,
) -> Floats:
    """The share over all sets without each item of one set, shape (items,); nan where no case is left."""
    without_hits = np.stack([hits[i] - tables[i][:, 0] for i in group])
    without_totals = np.stack([totals[i] - tables[i][:, 1] for i in group])
    with np.errstate(divide="ignore", invalid="ignore"):
        if averaged == "pooled":
            other_hits, other_totals = (np.delete(column, group).sum() for column in (hits, totals))
            pooled: Floats = (other_hits + without_hits.sum(axis=0)) / (other_totals + without_totals.sum(axis=0))
            return pooled
        other_sets = sum(float((hits[list(other)] / totals[list(other)]).mean()) for other in groups if other != group)
        means: Floats = (other_sets + (without_hits / without_totals).mean(axis=0)) / len(groups)
        return means
