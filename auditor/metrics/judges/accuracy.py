"""How often judges agree with people or with known labels, and differences that may show a bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import UPPER_QUANTILE, Estimate, Floats, Tested
from auditor.metrics.intervals.jackknife_interval import (
    CONSTANT_REASON,
    ROUNDING_ERROR,
    UnitReplicates,
    clopper_pearson,
    jackknife_interval,
    replicate_over_units,
)
from auditor.metrics.intervals.paired import constant_difference_interval
from auditor.metrics.intervals.special_functions import stdtrit
from auditor.metrics.labels.labelled_traces import (
    UNLABELLED_REASON,
    LabelledTraces,
    design_based_share,
    read_sample,
    student_estimate,
)

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


Evidence = Literal["experiment", "truth", "panel", "association"]
Labels = Mapping[str, ArrayLike]
"""For each kind of unit, such as `country`, the unit of each trace, shape (traces,)."""


@dataclass(frozen=True, slots=True)
class JudgeDifference(Tested):
    """A difference between shares of VALID, with the kind of evidence that it is.

    0.1 is ten percentage points.
    """

    evidence: Evidence = "association"
    """`experiment`: the same text was altered at random, so the difference is caused by the alteration. `truth`:
    compared with the known truth of the same answers. `panel`: compared with the median judge on the same traces; it
    is a bias if more than half of the judges have none. `association`: traces differ in other ways too, such as
    quality, so the difference is no evidence of a bias."""
    label_error_ci_low: float | None = None
    """Lower end of an interval that holds even if up to 10% of the truths are wrong; null unless compared with them."""
    label_error_ci_high: float | None = None


def difference_from_replicates(value: float, n: int, replicates: UnitReplicates, evidence: Evidence) -> JudgeDifference:
    """A difference with its interval and p-value, by the jackknife over the units of `replicates`.

    A difference that is the same whichever unit is left out, such as that of a judge that says INVALID where all others
    say VALID, has the interval of `constant_difference_interval`.
    """
    interval = jackknife_interval(value, replicates.units, bounds=(-1.0, 1.0), cells=replicates.cells)
    if interval.reason == CONSTANT_REASON and abs(value) > ROUNDING_ERROR:
        interval = constant_difference_interval(value, min(map(len, replicates.units.values())))
    if interval.low is None or interval.high is None:
        return JudgeDifference(value, n, reason=interval.reason, evidence=evidence)
    return JudgeDifference(
        value,
        n,
        interval.low,
        interval.high,
        resampled=tuple(replicates.units),
        evidence=evidence,
        p_value=interval.p_value,
    )


def missing_difference(reason: str, evidence: Evidence = "association", n: int = 0) -> JudgeDifference:
    """A difference that could not be computed."""
    return JudgeDifference(None, n, reason=reason, evidence=evidence)


def length_association(verdicts: ArrayLike, is_longer: ArrayLike, units: Labels) -> list[JudgeDifference]:
    """For each judge, its share of VALID on longer traces minus that on shorter ones.

    This is an association: an unbiased judge has one wherever longer traces are better or worse than shorter ones.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan no verdict.
        is_longer: shape (traces,): 1 for the longer half of an author's traces, 0 for the shorter, nan for neither.
        units: the units that are resampled.
    """
    longer = np.asarray(is_longer, dtype=np.float64)
    return [difference_of_means(row, longer, units, "association") for row in as_verdict_table(verdicts)]


def difference_of_means(values: Floats, exposed: Floats, units: Labels, evidence: Evidence) -> JudgeDifference:
    """Mean of the values where `exposed` is 1 minus that where it is 0, with an interval over units.

    Args:
        values: shape (traces,); nan is left out.
        exposed: shape (traces,): 1, 0, or nan for traces on neither side.
    """
    is_used = ~np.isnan(values) & ~np.isnan(exposed)
    first, second = exposed[is_used] == 1, exposed[is_used] == 0
    n = int(is_used.sum())
    if not first.any() or not second.any():
        return missing_difference("one side has no verdict", evidence, n)
    used_values = values[is_used]
    # Per trace: its value and whether it counts, on the first side, then on the second.
    moments = np.stack([used_values * first, first, used_values * second, second], axis=1).astype(np.float64)
    return _estimate(moments, _difference, n, _select(units, is_used), evidence)


def mean_value(values: Floats, units: Labels, evidence: Evidence) -> JudgeDifference:
    """Mean of differences by trace, with an interval over units.

    Args:
        values: shape (traces,); nan is left out.
    """
    is_used = ~np.isnan(values)
    n = int(is_used.sum())
    if not n:
        return missing_difference("no verdict is usable", evidence)
    moments = np.stack([values[is_used], np.ones(n)], axis=1)
    return _estimate(moments, _ratio, n, _select(units, is_used), evidence)


def _estimate(
    moments: Floats, statistic: Callable[[Floats], Floats], n: int, units: Labels, evidence: Evidence
) -> JudgeDifference:
    """A statistic of sums of the traces' moments, shape (traces, k), with an interval over units."""
    value = float(statistic(moments.sum(axis=0)[None])[0])
    return difference_from_replicates(value, n, replicate_over_units(moments, statistic, units), evidence)


def _select(units: Labels, is_used: NDArray[np.bool_]) -> dict[str, NDArray[np.generic]]:
    """The units of some traces."""
    return {unit: np.asarray(labels)[is_used] for unit, labels in units.items()}


def _ratio(sums: Floats) -> Floats:
    """Mean from sums of the values and numbers of traces, shape (replicates, 2); nan without a trace."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: Floats = sums[:, 0] / sums[:, 1]
    return mean


def _difference(sums: Floats) -> Floats:
    """Difference of two means from sums of the moments, shape (replicates, 4); nan where one side is empty."""
    return _ratio(sums[:, :2]) - _ratio(sums[:, 2:])


def as_verdict_table(verdicts: ArrayLike) -> NDArray[np.float64]:
    """Verdicts as a float array, shape (judges, traces); ValueError for another shape or an infinite value."""
    table = np.asarray(verdicts, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("verdicts must be a table (judges, traces) of 1, 0 and nan")
    return table


LABEL_ERROR_RATES = (0.0, 0.05, 0.1)
"""Shares of wrong labels for which the intervals are computed. Published answer keys have errors too: on average at
least 3.3% in ten test sets (Northcutt, Athalye & Mueller, NeurIPS Datasets and Benchmarks 2021)."""


def leniency_against_labels(verdicts: ArrayLike, labels: ArrayLike, units: Labels) -> list[JudgeDifference]:
    """For each judge, its share of VALID minus the share of labels that say so, on the same traces.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan no verdict.
        labels: shape (traces,): 1, 0, or nan where there is none.
        units: the units that are resampled.

    Returns:
        The interval takes the labels as right; `label_error_ci_low` and `label_error_ci_high` allow for up to 10%
        wrong ones. A judge that errs at random has a share between the labels' and one half. So the p-value is the
        largest over the rates of label errors and over a difference from one half.
    """
    truth = np.asarray(labels, dtype=np.float64)
    differences = []
    for row in as_verdict_table(verdicts):
        by_rate = [mean_value(row - _correct(truth, rate), units, "truth") for rate in LABEL_ERROR_RATES]
        differences.append(_combine(by_rate, mean_value(row + 0 * truth - 0.5, units, "truth")))
    return differences


def length_bias_against_labels(
    verdicts: ArrayLike, labels: ArrayLike, is_longer: ArrayLike, units: Labels
) -> list[JudgeDifference]:
    """For each judge, its share of VALID on longer minus shorter traces, minus the same difference of the labels.

    Args:
        is_longer: shape (traces,): 1 for the longer half of an author's traces, 0 for the shorter, nan for neither.
            The others as for `leniency_against_labels`.

    Returns:
        As for `leniency_against_labels`. A judge that errs at random has a difference between the labels' and 0. So
        the p-value is small only where the judge's difference is larger than the labels', or of the opposite sign.
    """
    truth, longer = np.asarray(labels, dtype=np.float64), np.asarray(is_longer, dtype=np.float64)
    differences = []
    for row in as_verdict_table(verdicts):
        by_rate = [
            difference_of_means(row - _correct(truth, rate), longer, units, "truth") for rate in LABEL_ERROR_RATES
        ]
        differences.append(_combine(by_rate, difference_of_means(row + 0 * truth, longer, units, "truth")))
    return differences


def _correct(labels: Floats, error_rate: float) -> Floats:
    """Labels whose mean is the truth's, if a share of them is wrong (Rogan & Gladen, Am. J. of Epidemiology 107, 1978).

    Args:
        labels: shape (traces,), 1 or 0; right and wrong answers are mislabelled equally often.
    """
    return (labels - error_rate) / (1 - 2 * error_rate)


def _combine(by_rate: Sequence[JudgeDifference], random_errors: JudgeDifference) -> JudgeDifference:
    """The figure for labels without errors, with an interval for all rates of errors, and the largest p-value.

    Args:
        by_rate: one for each of `LABEL_ERROR_RATES`.
        random_errors: compared with a judge whose verdicts are independent of the traces.
    """
    as_labelled = by_rate[0]
    if as_labelled.value is None:
        return missing_difference("no trace has a verdict of this judge and a known truth", "truth")
    lows = [difference.ci_low for difference in by_rate if difference.ci_low is not None]
    highs = [difference.ci_high for difference in by_rate if difference.ci_high is not None]
    if len(lows) < len(by_rate):
        return as_labelled
    return replace(
        as_labelled,
        label_error_ci_low=min(lows),
        label_error_ci_high=max(highs),
        p_value=_largest_p_value([*by_rate, random_errors]),
    )


def _largest_p_value(differences: Sequence[JudgeDifference]) -> float:
    """The largest p-value, or 1 if the differences do not all have one sign, or one cannot be tested.

    All null hypotheses are rejected only if each is (intersection-union test: Berger, Technometrics 24, 1982).
    """
    signs = {np.sign(difference.value or 0.0) for difference in differences}
    p_values = [1.0 if difference.p_value is None else difference.p_value for difference in differences]
    return max(p_values) if len(signs) == 1 else 1.0
