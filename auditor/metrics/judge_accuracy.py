"""How often a judge agrees with people, over all traces, from a random sample that people labelled.

The apparent share of VALID by a judge, corrected for its sensitivity and specificity, is Rogan & Gladen's estimate
(American J. of Epidemiology 107, 1978).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._labelled_traces import (
    UNLABELLED_REASON,
    LabelledTraces,
    design_based_share,
    read_sample,
    student_estimate,
)
from auditor.metrics._special import stdtrit
from auditor.metrics._unit_counts import Labels, clopper_pearson
from auditor.metrics.confidence import UPPER_QUANTILE
from auditor.metrics.estimate import Estimate, Tested
from auditor.metrics.jackknife_interval import jackknife_interval
from auditor.metrics.unit_replicates import replicate_over_units

Bools = NDArray[np.bool_]

NO_POSITIVE_REASON = "people gave no labelled trace a 1, so the sensitivity is unknown"
NO_NEGATIVE_REASON = "people gave no labelled trace a 0, so the specificity is unknown"
NO_BETTER_REASON = (
    "the judge is no better than chance on the labelled traces (sensitivity + specificity is at most 1), so its "
    "verdicts cannot be corrected"
)
ONE_LABEL_REASON = "the judge and people give all labelled traces the same label: no agreement beyond chance"
UNCERTAIN_REASON = (
    "the labels do not show that the judge is better than chance (sensitivity + specificity above 1), so the divisor "
    "may be 0"
)


@dataclass(frozen=True, slots=True)
class JudgeQuality:
    """How well a judge agrees with people, with intervals for these traces; the first three in [0, 1].

    Attributes:
        sensitivity: of the traces that people label 1 (VALID), those that the judge does too.
        specificity: of the traces that people label 0 (INVALID), those that the judge does too.
        accuracy: of all traces, those on which both agree.
        kappa: agreement beyond chance (Cohen, Educational and Psychological Measurement 20, 1960), in [-1, 1].
    """

    sensitivity: Estimate
    specificity: Estimate
    accuracy: Estimate
    kappa: Estimate


def judge_quality(
    judge: ArrayLike, labels: ArrayLike, *, inclusion: ArrayLike | None = None, strata: ArrayLike | None = None
) -> JudgeQuality:
    """Estimate sensitivity, specificity, accuracy and kappa of a judge over all traces from a labelled random sample.

    Shares are ratios of weighted totals. The intervals are Korn & Graubard's (Survey Methodology 24, 1998), with
    the design variance, the finite population correction and Σ(n_h - 1) degrees of freedom, widened where a large
    stratum may hide errors that its few labels do not show. That of kappa is Student's by the delta method, or wider
    where the interval of the accuracy is.

    Args:
        judge: shape (traces,), 1 for VALID and 0 for INVALID.
        labels: shape (traces,), people's, in [0, 1]; nan where a trace is not labelled. A share of raters that say
            VALID is the label of a random one of them, whom the figures then compare the judge with.
        inclusion, strata: as for `prediction_powered_mean`.

    Returns:
        `n` counts the labelled traces of the denominator. No value, with a reason, without labels in a stratum, or
        without a labelled trace of the denominator. No kappa if the judge and people give all traces one label. No
        interval with one label in a stratum.

    Raises:
        ValueError: as for `prediction_powered_mean`, a verdict is neither 0 nor 1, or a label is not in [0, 1].
    """
    sample = _read_verdicts(judge, labels, inclusion, strata)
    positive, agrees = sample.labels, 1 - np.abs(sample.labels - sample.labelled_judge)
    is_valid, either = sample.judge == 1, np.ones(sample.size, dtype=np.bool_)

    def estimate(hits: Floats, cases: Floats, can_hit: Bools, can_miss: Bools, empty_reason: str) -> Estimate:
        return design_based_share(sample, hits, cases, can_hit=can_hit, can_miss=can_miss, empty_reason=empty_reason)

    verdicts = sample.labelled_judge
    accuracy = estimate(agrees, np.ones_like(agrees), either, either, UNLABELLED_REASON)
    return JudgeQuality(
        estimate(positive * verdicts, positive, is_valid, ~is_valid, NO_POSITIVE_REASON),
        estimate((1 - positive) * (1 - verdicts), 1 - positive, ~is_valid, is_valid, NO_NEGATIVE_REASON),
        accuracy,
        _estimate_kappa(sample, accuracy),
    )


def _estimate_kappa(sample: LabelledTraces, accuracy: Estimate) -> Estimate:
    """Cohen's kappa, 1 - D / E: D is the share of disagreements, E the one expected by chance from both shares of 1.

    The judge's share of 1 is known, so only D and people's share vary over samples. Few labels may show no
    disagreement, and then their variance is too small: the interval is at least that of the accuracy, divided by E.
    """
    if accuracy.value is None:
        return accuracy
    judge_share, people_share = float(sample.judge.mean()), float(sample.weights @ sample.labels) / sample.size
    expected = judge_share + people_share - 2 * judge_share * people_share
    if expected < 1e-12:
        return Estimate(None, sample.n, reason=ONE_LABEL_REASON)
    disagreement = np.abs(sample.labels - sample.labelled_judge)
    share = float(sample.weights @ disagreement) / sample.size
    value = 1 - share / expected
    influence: Floats = -disagreement / expected + share / expected**2 * (1 - 2 * judge_share) * sample.labels
    estimate = student_estimate(value, sample.total_variance(influence) / sample.size**2, sample, (-1.0, 1.0))
    if accuracy.ci_low is None or accuracy.ci_high is None:
        return estimate
    low, high = (1 - (1 - end) / expected for end in (accuracy.ci_low, accuracy.ci_high))
    if estimate.ci_low is not None and estimate.ci_high is not None:
        low, high = min(low, estimate.ci_low), max(high, estimate.ci_high)
    return Estimate(
        value, sample.n, max(-1.0, low), min(1.0, high), accuracy.reason, generalizes_to=accuracy.generalizes_to
    )


def rogan_gladen(
    judge: ArrayLike, labels: ArrayLike, *, inclusion: ArrayLike | None = None, strata: ArrayLike | None = None
) -> Estimate:
    """Estimate the share of 1 by people over all traces: (p + specificity - 1) / (sensitivity + specificity - 1).

    p is the share of 1 by the judge. The interval is Student's, by the delta method with the design variance of both
    rates, with Σ(n_h - 1) degrees of freedom, clipped to [0, 1]. `prediction_powered_mean` is mostly more precise:
    it does not divide.

    Args, Raises: as for `judge_quality`.

    Returns:
        In [0, 1]; `n` counts labels. No value, with a reason, if sensitivity or specificity is unknown, or if the
        labels do not show that their sum is above 1.
    """
    sample = _read_verdicts(judge, labels, inclusion, strata)
    positive, verdicts = sample.labels, sample.labelled_judge
    n_positive, n_negative = (float((sample.weights * side).sum()) for side in (positive, 1 - positive))
    reason = sample.reason_against_value() or _missing_side_reason(n_positive, n_negative)
    if reason is not None:
        return Estimate(None, sample.n, reason=reason)
    sensitivity = float((sample.weights * positive * verdicts).sum()) / n_positive
    specificity = float((sample.weights * (1 - positive) * (1 - verdicts)).sum()) / n_negative
    gain = sensitivity + specificity - 1
    if gain <= 0:
        return Estimate(None, sample.n, reason=NO_BETTER_REASON)
    share = (float(sample.judge.mean()) + specificity - 1) / gain
    of_sensitivity: Floats = positive * (verdicts - sensitivity) / n_positive
    of_specificity: Floats = (1 - positive) * (1 - verdicts - specificity) / n_negative
    value = min(1.0, max(0.0, share))
    if not _is_surely_positive(gain, of_sensitivity + of_specificity, sample):
        return Estimate(None, sample.n, reason=sample.reason_against_interval() or UNCERTAIN_REASON)
    variance = sample.total_variance((-share * of_sensitivity + (1 - share) * of_specificity) / gain)
    estimate = student_estimate(share, variance, sample, (0.0, 1.0))
    return Estimate(value, sample.n, estimate.ci_low, estimate.ci_high, estimate.reason, (), estimate.generalizes_to)


def _read_verdicts(
    judge: ArrayLike, labels: ArrayLike, inclusion: ArrayLike | None, strata: ArrayLike | None
) -> LabelledTraces:
    """The sample; ValueError for a verdict that is neither 0 nor 1, or a label that is not between them."""
    sample = read_sample(judge, labels, inclusion, strata)
    if not np.isin(sample.judge, (0.0, 1.0)).all():
        raise ValueError("judge must be 1 for VALID or 0 for INVALID")
    if ((sample.labels < 0) | (sample.labels > 1)).any():
        raise ValueError("labels must be from 0, INVALID, to 1, VALID")
    return sample


def _missing_side_reason(n_positive: float, n_negative: float) -> str | None:
    """Why a rate is unknown; None where both are known."""
    if not n_positive:
        return NO_POSITIVE_REASON
    return None if n_negative else NO_NEGATIVE_REASON


def _is_surely_positive(gain: float, influence: Floats, sample: LabelledTraces) -> bool:
    """Whether the 95% interval of sensitivity + specificity - 1 is above 0; false where there is no interval."""
    if sample.is_census:
        return True
    if sample.reason_against_interval() is not None:
        return False
    half_width = float(stdtrit(sample.df, UPPER_QUANTILE)) * sample.total_variance(influence) ** 0.5
    return bool(gain > half_width)


def balanced_accuracy(
    judge: ArrayLike,
    labels: ArrayLike,
    units: Labels,
    *,
    inclusion: ArrayLike | None = None,
    strata: ArrayLike | None = None,
) -> Tested:
    """Estimate the mean of a judge's sensitivity and specificity, which is 1/2 for verdicts no better than chance.

    It is about other traces of these cells, not these traces: also with all traces labelled, a judge that tosses coins
    may be right more often than not by chance. The interval is the jackknife's over cells, such as countries × topics.
    Where the labels show no error, or only errors, it is that of Clopper & Pearson for both rates, combined.

    Args:
        units: for each of one or two kinds of units, such as `country`, the unit of each trace, shape (traces,).
        judge, labels, inclusion, strata: as for `judge_quality`.

    Returns:
        In [0, 1]; `n` counts labels. The p-value is of 1/2, two-sided. No value, with a reason, without a labelled
        trace of either kind.

    Raises:
        ValueError: as for `judge_quality`.
    """
    sample = _read_verdicts(judge, labels, inclusion, strata)
    positive, verdicts, weights = sample.labels, sample.labelled_judge, sample.weights
    moments = np.stack([positive, positive * verdicts, 1 - positive, (1 - positive) * (1 - verdicts)], axis=1)
    moments *= weights[:, None]
    totals = moments.sum(axis=0)
    reason = sample.reason_against_value() or _missing_side_reason(float(totals[0]), float(totals[2]))
    if reason is not None:
        return Tested(None, sample.n, reason=reason)

    def beyond_chance(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            excess: Floats = (sums[:, 1] / sums[:, 0] + sums[:, 3] / sums[:, 2]) / 2 - 0.5
        return excess

    codes = [np.unique(np.asarray(names)[sample.is_labelled], return_inverse=True)[1] for names in units.values()]
    cells = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()
    unit = "cell" if len(units) > 1 else next(iter(units))
    [excess] = beyond_chance(totals[None]).tolist()
    if abs(excess) == 0.5:
        n_cells = [len(np.unique(cells[side > 0])) for side in (positive, 1 - positive)]
        return _without_variation(excess, sample.n, n_cells, unit)
    replicates = replicate_over_units(moments, beyond_chance, {unit: cells})
    interval = jackknife_interval(excess, replicates.units, bounds=(-0.5, 0.5))
    if interval.low is None or interval.high is None:
        return Tested(excess + 0.5, sample.n, reason=interval.reason)
    return Tested(
        excess + 0.5,
        sample.n,
        interval.low + 0.5,
        interval.high + 0.5,
        resampled=(unit,),
        p_value=interval.p_value,
    )


def _without_variation(excess: float, n: int, n_cells: Sequence[int], unit: str) -> Tested:
    """The balanced accuracy of a judge without an error, or always in error, on labels of so many cells of each kind.

    The p-value is the probability that coins agree with labels of so many cells throughout, or never.
    """
    distance = hypot(*(1 - clopper_pearson(1.0, float(count))[0] for count in n_cells)) / 2
    p_value = min(1.0, 2 * 0.5 ** sum(n_cells))
    ends = (1 - distance, 1.0) if excess > 0 else (0.0, distance)
    return Tested(excess + 0.5, n, max(0.0, ends[0]), min(1.0, ends[1]), resampled=(unit,), p_value=p_value)
