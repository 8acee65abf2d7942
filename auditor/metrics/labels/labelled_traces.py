"""Traces of which a random sample is labelled: weights, and the variance over other samples of the same traces.

In each stratum the weights are proportional to 1 / inclusion probability, and sum to the number of its traces. So
labelling may stop before the whole sample is labelled, as long as it went in random order. The variance of a weighted
total is that of Hájek (Annals of Mathematical Statistics 35, 1964), for equal weights the textbook one of stratified
random sampling, N_h² (1 - n_h / N_h) s_h² / n_h (Cochran, Sampling Techniques, 3rd ed. 1977, eq. 5.12).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import NORMAL_QUANTILE, UPPER_QUANTILE, Estimate, Floats
from auditor.metrics.intervals.jackknife_interval import clopper_pearson
from auditor.metrics.intervals.special_functions import stdtrit

MIN_LABELS = 2
"""Fewest labels of a stratum for a variance."""
THESE_TRACES = "these traces"
"""What an interval over other samples of the same traces is a statement about."""
CENSUS_REASON = "every trace is labelled, so there is no sampling error"
CERTAIN_REASON = "it follows from the judge's own verdicts and the labels, so there is no sampling error"
EQUAL_REASON = "the labels show no variation, so the uncertainty cannot be estimated"
UNLABELLED_REASON = "no trace is labelled"


@dataclass(frozen=True)
class LabelledTraces:
    """Traces, N in all, of which n are labelled.

    Attributes:
        judge: shape (N,).
        labels, weights: shape (n,), of the labelled traces.
        is_labelled: shape (N,).
        strata: shape (N,), number of each trace's stratum, from 0 without gaps.
    """

    judge: Floats
    labels: Floats
    weights: Floats
    is_labelled: NDArray[np.bool_]
    strata: NDArray[np.intp]

    @property
    def n(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @property
    def size(self) -> int:
        """Number of traces, labelled or not."""
        return len(self.judge)

    @property
    def labelled_judge(self) -> Floats:
        """The judge's values of the labelled traces."""
        return self.judge[self.is_labelled]

    @property
    def labelled_strata(self) -> NDArray[np.intp]:
        """The strata of the labelled traces."""
        return self.strata[self.is_labelled]

    @cached_property
    def stratum_sizes(self) -> NDArray[np.intp]:
        """Number of traces of each stratum."""
        return np.bincount(self.strata)

    @cached_property
    def n_by_stratum(self) -> NDArray[np.intp]:
        """Number of labels of each stratum."""
        return np.bincount(self.labelled_strata, minlength=len(self.stratum_sizes))

    @property
    def df(self) -> int:
        """Degrees of freedom of a variance: labels minus 1, over the strata that are not labelled in full."""
        return int((self.n_by_stratum - 1)[self.n_by_stratum < self.stratum_sizes].sum())

    @property
    def is_census(self) -> bool:
        """Whether every trace is labelled."""
        return self.n == self.size

    def reason_against_value(self) -> str | None:
        """Why there is no estimate; None where there is one."""
        if not self.n:
            return UNLABELLED_REASON
        n_empty = int((self.n_by_stratum == 0).sum())
        return f"{_count_strata(n_empty)} no label: label at least {MIN_LABELS} traces of each" if n_empty else None

    def reason_against_interval(self) -> str | None:
        """Why there is no interval, although there is a value; None where there is one."""
        is_short = (self.n_by_stratum < MIN_LABELS) & (self.n_by_stratum < self.stratum_sizes)
        if not is_short.any():
            return None
        return f"{_count_strata(int(is_short.sum()))} a single label: an interval needs {MIN_LABELS} of each"

    def stratum_means(self, values: Floats) -> Floats:
        """Weighted mean of the values of labelled traces, shape (n,), in each stratum; nan without a label."""
        n_strata = len(self.stratum_sizes)
        totals = np.bincount(self.labelled_strata, self.weights * values, minlength=n_strata)
        with np.errstate(invalid="ignore"):
            means: Floats = totals / np.bincount(self.labelled_strata, self.weights, minlength=n_strata)
        return means

    def deviations(self, values: Floats) -> Floats:
        """The values of labelled traces minus the weighted mean of their stratum, shape (n,)."""
        deviations: Floats = values - self.stratum_means(values)[self.labelled_strata]
        return deviations

    def total_covariance(self, x: Floats, y: Floats) -> float:
        """Covariance of two weighted totals over other samples of the same traces; x and y have shape (n,)."""
        n_h = self.n_by_stratum[self.labelled_strata]
        correction = np.maximum(1 - 1 / self.weights, 0) * n_h / np.maximum(n_h - 1, 1)
        return float((correction * self.weights**2 * self.deviations(x) * self.deviations(y)).sum())

    def total_variance(self, values: Floats) -> float:
        """Variance of the weighted total of the values of labelled traces, shape (n,)."""
        return self.total_covariance(values, values)


def read_sample(
    judge: ArrayLike, labels: ArrayLike, inclusion: ArrayLike | None, strata: ArrayLike | None
) -> LabelledTraces:
    """Check the columns, shape (N,) each, and compute the weights.

    Args:
        judge: the judge's value of each trace.
        labels: people's; nan where there is none.
        inclusion: probability of each labelled trace to be in the sample, in (0, 1]; what unlabelled traces have is not
            used. Only its ratios within a stratum matter. By default equal within a stratum.
        strata: the stratum of each trace, of any type that can be sorted; by default one.

    Raises:
        ValueError: shapes differ, a judge's value is missing, a value is infinite, or a probability is out of range.
    """
    judged, labelled = np.asarray(judge, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if judged.ndim != 1 or labelled.shape != judged.shape:
        raise ValueError(
            f"judge and labels must be one-dimensional and of one length, but have shapes {judged.shape} and "
            f"{labelled.shape}"
        )
    if not np.isfinite(judged).all():
        raise ValueError(
            f"judge has {int((~np.isfinite(judged)).sum())} values that are missing or infinite: leave these traces out"
        )
    if np.isinf(labelled).any():
        raise ValueError("labels must be finite, or nan where a trace is not labelled, but one is infinite")
    stratum_labels = np.zeros(judged.shape) if strata is None else np.asarray(strata)
    if stratum_labels.shape != judged.shape:
        raise ValueError(f"strata must have the shape of judge, {judged.shape}, but have {stratum_labels.shape}")
    is_labelled = ~np.isnan(labelled)
    stratum_index = np.unique(stratum_labels, return_inverse=True)[1]
    weights = _compute_weights(_read_inclusion(inclusion, is_labelled), is_labelled, stratum_index)
    return LabelledTraces(judged, labelled[is_labelled], weights, is_labelled, stratum_index)


def design_based_share(
    sample: LabelledTraces,
    hits: Floats,
    cases: Floats,
    *,
    can_hit: NDArray[np.bool_],
    can_miss: NDArray[np.bool_],
    empty_reason: str,
) -> Estimate:
    """Estimate the share of hits in the cases of all traces, with an interval for these traces.

    The interval is Korn & Graubard's (Survey Methodology 24, 1998): that of Clopper & Pearson at the number of cases
    that would give a simple random sample the same variance, reduced for the degrees of freedom by (z / t)². A few
    labels may show none of the rarer hits or misses of a large stratum, and then the variance is too small. So one
    independent case stands for at least as many cases as the heaviest label that can be of the rarer kind, as in the
    interval of Fay & Feuer for weighted rates (Statistics in Medicine 16, 1997). Labels between 0 and 1 vary less, and
    count as more cases.

    Args:
        hits, cases: shape (n,), in [0, 1] for each labelled trace; hits are at most cases.
        can_hit, can_miss: shape (N,), whether a trace can be a hit, or a case without a hit, given the judge's value.
        empty_reason: the reason given where no labelled trace is a case.

    Returns:
        `n` counts the labelled cases.
    """
    reason = sample.reason_against_value()
    n_cases, total = int((cases > 0).sum()), float((sample.weights * cases).sum())
    if reason is not None or not n_cases:
        return Estimate(None, n_cases, reason=reason or empty_reason)
    share = min(1.0, float((sample.weights * hits).sum()) / total)
    largest_weight = _largest_weight(sample, can_miss if share > 0.5 else can_hit)
    if sample.is_census or not largest_weight:
        reason = CENSUS_REASON if sample.is_census else CERTAIN_REASON
        return Estimate(share, n_cases, share, share, reason, generalizes_to=THESE_TRACES)
    reason = sample.reason_against_interval()
    if reason is not None:
        return Estimate(share, n_cases, reason=reason)
    residuals = hits - share * cases
    variance = sample.total_variance(residuals) / total**2
    n_effective = total / largest_weight
    if 0 < share < 1 and variance > 0:
        n_effective *= share * (1 - share) * total / float(sample.weights @ residuals**2)
        factor = (NORMAL_QUANTILE / float(stdtrit(sample.df, UPPER_QUANTILE))) ** 2
        n_effective = min(n_effective, share * (1 - share) / variance * factor)
    return Estimate(share, n_cases, *clopper_pearson(share, n_effective), generalizes_to=THESE_TRACES)


def _largest_weight(sample: LabelledTraces, is_possible: NDArray[np.bool_]) -> float:
    """The largest weight of a labelled trace of these, times the root of the finite population correction.

    That of any labelled trace where none of these with a weight above 1 is labelled; 0 where all of these are labelled.
    """
    if not (is_possible & ~sample.is_labelled).any():
        return 0.0
    largest = float(sample.weights[is_possible[sample.is_labelled]].max(initial=0.0))
    if largest <= 1:
        largest = float(sample.weights.max())
    return float((largest * (largest - 1)) ** 0.5)


def student_estimate(
    value: float,
    variance: float,
    sample: LabelledTraces,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    *,
    n_estimated: int = 0,
) -> Estimate:
    """A value with Student's interval for these traces, clipped to the bounds; without one where it is undefined.

    Args:
        n_estimated: coefficients that were estimated from the same labels: the variance of what they leave is scaled
            up, and has fewer degrees of freedom.
    """
    if sample.is_census:
        return Estimate(value, sample.n, value, value, CENSUS_REASON, generalizes_to=THESE_TRACES)
    reason = sample.reason_against_interval() or (EQUAL_REASON if variance <= 0 else None)
    if reason is not None:
        return Estimate(value, sample.n, reason=reason)
    df = sample.df - n_estimated
    half_width = float(stdtrit(df, UPPER_QUANTILE)) * (variance * sample.df / df) ** 0.5
    low, high = max(bounds[0], value - half_width), min(bounds[1], value + half_width)
    return Estimate(value, sample.n, low, high, generalizes_to=THESE_TRACES)


def _read_inclusion(inclusion: ArrayLike | None, is_labelled: NDArray[np.bool_]) -> Floats:
    """The inclusion probabilities of the labelled traces; ValueError for a wrong shape or range."""
    if inclusion is None:
        return np.ones(int(is_labelled.sum()))
    probabilities = np.asarray(inclusion, dtype=np.float64)
    if probabilities.shape != is_labelled.shape:
        raise ValueError(f"inclusion must have the shape of judge, {is_labelled.shape}, but has {probabilities.shape}")
    labelled = probabilities[is_labelled]
    if not ((labelled > 0) & (labelled <= 1)).all():
        raise ValueError("inclusion must be above 0 and at most 1 for each labelled trace")
    return labelled


def _compute_weights(inclusion: Floats, is_labelled: NDArray[np.bool_], strata: NDArray[np.intp]) -> Floats:
    """Weights of the labelled traces, shape (n,); in each stratum they sum to its number of traces."""
    labelled_strata, sizes = strata[is_labelled], np.bincount(strata)
    n_by_stratum = np.bincount(labelled_strata, minlength=len(sizes))
    totals = np.bincount(labelled_strata, 1 / inclusion, minlength=len(sizes))
    weights: Floats = sizes[labelled_strata] / (inclusion * totals[labelled_strata])
    return np.where((n_by_stratum == sizes)[labelled_strata], 1.0, weights)


def _count_strata(n: int) -> str:
    """The number of strata with its verb."""
    return "1 stratum has" if n == 1 else f"{n} strata have"
