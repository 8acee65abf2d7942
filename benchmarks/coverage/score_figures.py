"""Figures that compare scores with a survey's: r, Spearman's rho, MAE, RMSE, bias, and their differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from auditor.metrics.intervals.correlation import within_topic_correlation
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.multiple_testing import widest_gap
from auditor.metrics.intervals.two_way import crossed_jackknife, gap_jackknife, paired_jackknife, spearman_jackknife
from auditor.metrics.people.alignment import BIAS, CONCORDANCE, MAE, PEARSON, RMSE, Statistic
from auditor.metrics.people.conflict import third_quartile
from auditor.metrics.people.survey_error import crossed_corrected
from benchmarks.coverage import naive
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Floats
from benchmarks.coverage.worlds.real_tables import REAL_WORLDS
from benchmarks.coverage.worlds.score_worlds import N_SAMPLES, SIMULATED_SCORE_WORLDS, ScoreSample

Compute = Callable[[Any], Interval]


def _to_interval(estimate: Estimate) -> Interval:
    """The value and the ends of a two-way estimate."""
    return float("nan") if estimate.value is None else estimate.value, estimate.ci_low, estimate.ci_high


def _one_model(statistic: Statistic) -> Compute:
    """A statistic of one model, as in `alignment[]`."""
    return lambda s: _to_interval(crossed_jackknife(statistic, s.first, s.survey, s.country, s.topic))


def _gap(statistic: Statistic) -> Compute:
    """A statistic in one group of countries minus that in the other."""
    return lambda s: _to_interval(gap_jackknife(statistic, s.uneven, s.survey, s.country, s.topic, s.in_group))


def _difference(statistic: Statistic, other: str) -> Compute:
    """A statistic of the first model minus that of the model `other`."""
    return lambda s: _to_interval(paired_jackknife(statistic, s.first, getattr(s, other), s.survey, s.country, s.topic))


def _spearman(sample: ScoreSample) -> Interval:
    return _to_interval(spearman_jackknife(sample.first, sample.survey, sample.country, sample.topic))


def _within_topics(sample: ScoreSample) -> Interval:
    return _to_interval(within_topic_correlation(sample.first, sample.survey, sample.country, sample.topic))


def _corrected_r(sample: ScoreSample) -> Interval:
    n_samples = np.full(len(sample.sampled), N_SAMPLES)
    places = (sample.country, sample.topic)
    return _to_interval(crossed_corrected(sample.sampled, sample.survey, sample.sample_variance, n_samples, *places))


def _third_quartile(sample: ScoreSample) -> Interval:
    """The third quartile of the absolute differences between three models."""
    differences = [sample.first - sample.second, sample.first - sample.worse, sample.second - sample.worse]
    estimate = third_quartile(differences, {"country": sample.country, "topic": sample.topic})
    return float("nan") if estimate.value is None else estimate.value, estimate.ci_low, estimate.ci_high


def _largest_gap(sample: ScoreSample) -> Interval:
    """The largest gap in MAE between regions, minus the true gap between the two that were selected."""
    regions = np.char.add("region ", sample.region.astype(np.str_))
    gap = widest_gap(MAE, sample.uneven, sample.survey, sample.country, sample.topic, regions)
    value, low, high = _to_interval(gap)
    if low is None or high is None:
        return value, None, None
    is_in_group = [bool(sample.in_group[regions == name].all()) for name in (gap.low_group, gap.high_group)]
    true_gap = (is_in_group[1] - is_in_group[0]) * sample.truths["mae gap"]
    return value - true_gap, low - true_gap, high - true_gap


def _max_gap_error(sample: ScoreSample) -> float:
    """The largest error among the gaps in MAE of all pairs of regions."""
    absolute_errors = np.abs(sample.uneven - sample.survey)
    regions = np.unique(sample.region)
    maes = np.array([absolute_errors[sample.region == region].mean() for region in regions])
    is_in_group = np.array([sample.in_group[sample.region == region].all() for region in regions])
    deviations = maes - np.where(is_in_group, 0.5, 1.0) * sample.truths["mae"]
    return float(np.ptp(deviations))


def _naive_r_difference(sample: ScoreSample) -> Interval:
    """The difference of two correlations by the jackknife with V_country + V_topic - V_cell, on the scale of r."""
    moments = [naive.product_moments(scores, sample.survey) for scores in (sample.first, sample.worse)]
    replicates = []
    for labels in (sample.country, sample.topic, np.arange(len(sample.country))):
        first, second = (naive.correlation(naive.sums_without(m, labels)) for m in moments)
        replicates.append(first - second)
    value = float(naive.correlation(moments[0].sum(axis=0)) - naive.correlation(moments[1].sum(axis=0)))
    smaller_side = min(len(replicates[0]), len(replicates[1]))
    return naive.subtracted_difference_interval(replicates, value, smaller_side)


def _naive_within_topics(sample: ScoreSample) -> Interval:
    deviations = [values - naive.means_by(sample.topic, values) for values in (sample.first, sample.survey)]
    return naive.fisher_interval(deviations[0], deviations[1])


def _naive_corrected_r(sample: ScoreSample) -> Interval:
    noise = float(sample.sample_variance.mean()) / N_SAMPLES
    reliability = 1 - noise / float(sample.sampled.var(ddof=1))
    value, low, high = naive.fisher_interval(sample.sampled, sample.survey)
    assert low is not None
    assert high is not None
    if reliability <= 0:  # more noise than variance: nothing to correct
        return value, None, None
    return value / reliability**0.5, low / reliability**0.5, high / reliability**0.5


def _errors(sample: ScoreSample) -> Floats:
    return sample.first - sample.survey


def _absolute(scores: Floats, sample: ScoreSample) -> Floats:
    return np.abs(scores - sample.survey)


SCORE_FIGURES = (
    Figure("r", _one_model(PEARSON), lambda s: naive.fisher_interval(s.first, s.survey), "Fisher's, over cells"),
    Figure("concordance", _one_model(CONCORDANCE)),
    Figure(
        "spearman",
        _spearman,
        lambda s: naive.bonett_wright_interval(s.first, s.survey),
        "Bonett and Wright's, over cells",
    ),
    Figure("within-topic r", _within_topics, _naive_within_topics, "Fisher's, over cells"),
    Figure("corrected r", _corrected_r, _naive_corrected_r, "Fisher's, over cells, divided by the reliability's root"),
    Figure("mae", _one_model(MAE), lambda s: naive.student_interval(np.abs(_errors(s))), "Student's, over cells"),
    Figure("rmse", _one_model(RMSE), lambda s: naive.root_mean_square_interval(_errors(s)), "Student's, over cells"),
    Figure("bias", _one_model(BIAS), lambda s: naive.student_interval(_errors(s)), "Student's, over cells"),
    Figure("r difference", _difference(PEARSON, "worse"), _naive_r_difference, "variance of cells subtracted"),
    Figure("r difference of equal models", _difference(PEARSON, "second")),
    Figure("concordance difference", _difference(CONCORDANCE, "worse")),
    Figure(
        "mae difference",
        _difference(MAE, "worse"),
        lambda s: naive.student_interval(_absolute(s.first, s) - _absolute(s.worse, s)),
        "Student's, over cells",
    ),
    Figure(
        "bias difference",
        _difference(BIAS, "worse"),
        lambda s: naive.student_interval(s.first - s.worse),
        "Student's, over cells",
    ),
    Figure("third quartile", _third_quartile),
    Figure(
        "mae gap",
        _gap(MAE),
        lambda s: naive.welch_interval(
            _absolute(s.uneven, s)[s.in_group],
            _absolute(s.uneven, s)[~s.in_group],
        ),
        "Welch's, over cells",
    ),
    Figure("bias gap", _gap(BIAS)),
    Figure("largest mae gap", _largest_gap, max_error=_max_gap_error),
    Figure(
        "r gap",
        _gap(PEARSON),
        lambda s: naive.fisher_difference_interval(
            s.uneven[s.in_group], s.uneven[~s.in_group], s.survey[s.in_group], s.survey[~s.in_group]
        ),
        "Fisher's, over cells",
    ),
)

SCORE_STUDY = Study("scores", __name__, SCORE_FIGURES, (*SIMULATED_SCORE_WORLDS, *REAL_WORLDS))
