"""Shares of cases that come in instances, such as item sets or questions: averaged over the instances, or pooled.

Papers report the mean over instances, in which each instance counts the same. In a pooled share each case counts the
same, so an instance with more cases counts for more. The cases of one instance are correlated, so the interval of both
is over instances: each is left out in turn, and Clopper & Pearson's interval is taken at the number of independent
cases that would have the jackknife's variance (Korn & Graubard, Survey Methodology 24, 1998), reduced for the few
instances that the variance is estimated from. Student's interval is too short for shares near 1 (docs/coverage.md).
Where fewer than three instances have a case of the rarer kind, how instances differ cannot be seen: then an instance
counts as at most one independent case, the largest variance that a mean of numbers in [0, 1] can have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._unit_counts import clopper_pearson, few_units_factor
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife_interval import jackknife_covariance, too_few_reason
from auditor.metrics.unit_means import mean_over_units

Averaging = Literal["instances", "pooled"]
AVERAGINGS: tuple[Averaging, ...] = ("instances", "pooled")

MIN_INSTANCES_OF_RARER = 3
"""Fewest instances with a hit, or with a miss where these are rarer, that show how instances differ."""
Floats = NDArray[np.float64]


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
    values: ArrayLike, instances: Mapping[str, ArrayLike], bounds: tuple[float, float], *, empty_reason: str
) -> AveragedEstimate:
    """Estimate the mean of one value per instance, such as the consistency of the answers to a question.

    Args, Returns, Raises: as `auditor.metrics.unit_means.mean_over_units`.
    """
    mean = mean_over_units(values, instances, bounds, empty_reason=empty_reason)
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
