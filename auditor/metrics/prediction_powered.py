"""Means of people's labels over all traces, of which people labelled a random sample and a judge all.

The judge's mean is corrected by its error in the labelled sample. Two targets differ in what is random:

- "finite", these traces: the stratified difference estimator (Särndal, Swensson & Wretman, Model Assisted Survey
  Sampling, 1992, section 6.3), mean(f) + Σ_h (N_h / N) mean_h(y - f). Only the choice of the sample is random.
- "super", other traces like these: prediction-powered inference with power tuning (Angelopoulos, Duchi & Zrnic, PPI++,
  arXiv 2311.01453, 2023). The judge counts by a factor λ in [0, 1] that minimizes the variance. With clusters, units
  such as countries and topics are left out in turn, of the contributions u_i whose mean is the estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, is_constant
from auditor.metrics._labelled_sample import EQUAL_REASON, LabelledSample, read_sample, student_estimate
from auditor.metrics._special import stdtrit
from auditor.metrics.confidence import NORMAL_QUANTILE, UPPER_QUANTILE
from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import Labels, mean_over_units

Target = Literal["finite", "super"]


def prediction_powered_mean(
    judge: ArrayLike,
    labels: ArrayLike,
    *,
    inclusion: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    clusters: Labels | None = None,
    target: Target = "finite",
) -> Estimate:
    """Estimate the mean of people's labels over all traces from a labelled sample and a judge's values.

    Args:
        judge: shape (traces,), the judge's verdicts or probabilities, on the scale of the labels.
        labels: shape (traces,); nan where a trace is not labelled. The labelled traces are a random sample.
        inclusion: shape (traces,), probability of each labelled trace to be in the sample, in (0, 1]; unlabelled
            traces may have nan. By default equal within a stratum.
        strata: shape (traces,), the stratum from which each trace was drawn.
        clusters: for each of one or two kinds of units, such as `country`, the unit of each trace, shape (traces,).
            Used by "super" only: how a sample was drawn does not depend on them.
        target: "finite" is the mean over these traces, "super" that over other traces, or over other units of
            `clusters`, like these.

    Returns:
        `n` counts labels. The interval is of 95%:

        - "finite": Student's with Σ(n_h - 1) degrees of freedom, with the design variance and the finite population
          correction. It is the value itself if every trace is labelled.
        - "super": without strata and with equal inclusion that of `ppi_py.ppi_mean_ci`, which is normal: labelled
          traces are left out of the mean of the unlabelled. Else Student's, with the design variance plus that of
          the mean of all traces.
        - "super" with clusters: as for `auditor.metrics.jackknife_interval`, with at least 5 units of each kind.

        No value, with a reason, without labels in a stratum. No interval with one label in a stratum, or if the labels
        show no variation.

    Raises:
        ValueError: shapes differ, a value of the judge is missing, a value is infinite, an inclusion probability is out
            of its range, or the target is unknown.
    """
    if target not in ("finite", "super"):
        raise ValueError(f"target must be 'finite' or 'super', but is {target!r}")
    if clusters is not None and not isinstance(clusters, Mapping):
        raise ValueError("clusters must map each kind of unit, such as 'country', to the unit of each trace")
    sample = read_sample(judge, labels, inclusion, strata)
    reason = sample.reason_against_value()
    if reason is not None:
        return Estimate(None, sample.n, reason=reason)
    if target == "finite":
        errors = sample.labels - sample.labelled_judge
        value = float(sample.judge.mean() + (sample.weights * errors).sum() / sample.size)
        return student_estimate(value, sample.total_variance(errors) / sample.size**2, sample)
    factor = _tune_factor(sample)
    if clusters:
        contributions = mean_over_units(_contributions(sample, factor), clusters, (-inf, inf))
        return replace(contributions, n=sample.n)
    return _estimate_other_traces(sample, factor)


def _is_simple(sample: LabelledSample) -> bool:
    """Whether the labelled traces are a simple random sample of some, not all, of the traces."""
    return len(sample.stratum_sizes) == 1 and is_constant(sample.weights) and not sample.is_census


def _tune_factor(sample: LabelledSample) -> float:
    """The factor λ of the judge's mean over all traces that minimizes the estimated variance.

    For a simple random sample of n of N traces it is λ of PPI++, in [0, 1], times N / (N - n), since the judge's mean
    is over all traces here, and there over the unlabelled ones: both give the same estimate.
    """
    judge = sample.labelled_judge
    if is_constant(sample.judge):
        return 0.0
    if _is_simple(sample):
        n, n_unlabelled = sample.n, sample.size - sample.n
        covariance = float(((sample.labels - sample.labels.mean()) * (judge - judge.mean())).mean())
        tuned = covariance / ((1 + n / n_unlabelled) * float(sample.judge.var(ddof=1)))
        return float(np.clip(tuned, 0, 1)) * sample.size / n_unlabelled
    variance = sample.total_variance(judge)
    return float(np.clip(sample.total_covariance(sample.labels, judge) / variance, 0, 1)) if variance > 0 else 0.0


def _contributions(sample: LabelledSample, factor: float) -> Floats:
    """What each trace adds to the estimate, shape (traces,); their mean is the estimate.

    u_i = λ f_i + r_h + w_i (r_i - r_h), with r_i = y_i - λ f_i, its mean r_h in the stratum, and w_i = 0 where a trace
    is not labelled: the linearized form, since the weights depend on the number of labels of a stratum.
    """
    residuals = sample.labels - factor * sample.labelled_judge
    contributions = factor * sample.judge + sample.stratum_means(residuals)[sample.strata]
    contributions[sample.is_labelled] += sample.weights * sample.deviations(residuals)
    return contributions


def _estimate_other_traces(sample: LabelledSample, factor: float) -> Estimate:
    """The mean over other traces like these, which are independent of each other."""
    value = float(_contributions(sample, factor).mean())
    residuals = sample.labels - factor * sample.labelled_judge
    if sample.n < 2 or sample.reason_against_interval() is not None:
        return Estimate(value, sample.n, reason=sample.reason_against_interval() or "an interval needs 2 labels")
    if _is_simple(sample):
        unlabelled = sample.judge[~sample.is_labelled]
        tuned = factor * len(unlabelled) / sample.size
        residuals = sample.labels - tuned * sample.labelled_judge
        variance = tuned**2 * unlabelled.var() / len(unlabelled) + residuals.var() / sample.n
        quantile = NORMAL_QUANTILE
    else:
        variance = sample.total_variance(residuals) / sample.size**2 + _label_variance(sample) / sample.size
        quantile = float(stdtrit(sample.df or sample.n - 1, UPPER_QUANTILE))
    if variance <= 0:
        return Estimate(value, sample.n, reason=EQUAL_REASON)
    half_width = quantile * float(variance) ** 0.5
    return Estimate(value, sample.n, value - half_width, value + half_width, resampled=("trace",))


def _label_variance(sample: LabelledSample) -> float:
    """Variance of people's labels over traces."""
    deviations = sample.labels - np.average(sample.labels, weights=sample.weights)
    return float(np.average(deviations**2, weights=sample.weights)) * sample.n / (sample.n - 1)
