"""Errors in one country over topics, or on one topic over countries: few cells, of which one kind of unit differs."""

from __future__ import annotations

import numpy as np

from auditor.metrics.intervals.estimate import Estimate, bonferroni_level
from auditor.metrics.intervals.jackknife_interval import IDENTITY, estimate_from_replicates
from auditor.metrics.intervals.paired import paired_error
from auditor.metrics.intervals.two_way import STATISTIC_TRANSFORMS
from auditor.metrics.intervals.unit_means import widen_by_common_variance
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic, compare_place_errors
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Floats
from benchmarks.coverage.worlds.place_worlds import N_PLACES, PLACE_DESIGNS, PLACE_WORLDS, PlaceSample


def _over_cells(statistic: Statistic, scores: Floats, truth: Floats, n_comparisons: int = 1) -> Interval:
    """A statistic over cells that each have a unit of their own, as reports compute it for one country or topic."""
    return to_interval(_estimate(statistic, scores, truth, bonferroni_level(n_comparisons)))


def _estimate(statistic: Statistic, scores: Floats, truth: Floats, level: float) -> Estimate:
    """The same with an interval of this level."""
    moments = statistic.moments(scores, truth)
    total = moments.sum(axis=0)
    value, without_each = float(statistic.value(total[None])[0]), statistic.value(total - moments)
    if not np.isfinite(value):
        return Estimate(None, len(scores), reason="undefined")
    transform = STATISTIC_TRANSFORMS.get(statistic, IDENTITY)
    return estimate_from_replicates(value, len(scores), {"topic": without_each}, transform, confidence_level=level)


def _mae(sample: PlaceSample) -> Interval:
    return _over_cells(MAE, sample.first, sample.survey)


def _bias(sample: PlaceSample) -> Interval:
    return _over_cells(BIAS, sample.first, sample.survey)


def _r(sample: PlaceSample) -> Interval:
    return _over_cells(PEARSON, sample.first, sample.survey)


def _mae_difference(sample: PlaceSample) -> Interval:
    difference = paired_error(sample.first, sample.second, sample.survey, "topic")
    return difference.value or 0.0, difference.ci_low, difference.ci_high


def _mae_of_all_places(sample: PlaceSample) -> Interval:
    """0 where the simultaneous intervals of all places cover, else 1, as an interval without width."""
    intervals = [_over_cells(MAE, errors, np.zeros_like(errors), N_PLACES) for errors in sample.all_places]
    is_missed = any(
        low is not None and high is not None and not low <= mae <= high
        for (_, low, high), mae in zip(intervals, sample.all_maes, strict=True)
    )
    return float(is_missed), float(is_missed), float(is_missed)


def _bias_of_all_places(sample: PlaceSample) -> Interval:
    """The same for the signed differences."""
    level = bonferroni_level(N_PLACES)
    biases = [_estimate(BIAS, errors, np.zeros_like(errors), level) for errors in sample.all_places]
    intervals = widen_by_common_variance(biases, list(sample.all_places), level, (-np.inf, np.inf))
    is_missed = any(
        interval.ci_low is not None and interval.ci_high is not None and not interval.ci_low <= bias <= interval.ci_high
        for interval, bias in zip(intervals, sample.all_biases, strict=True)
    )
    return float(is_missed), float(is_missed), float(is_missed)


def _naive_bias_of_all_places(sample: PlaceSample) -> Interval:
    """The same for Student's intervals of each place alone."""
    intervals = [naive.student_interval(errors) for errors in sample.all_places]
    is_missed = any(
        not (low or 0.0) <= bias <= (high or 0.0)
        for (_, low, high), bias in zip(intervals, sample.all_biases, strict=True)
    )
    return float(is_missed), float(is_missed), float(is_missed)


def _naive_all_places(sample: PlaceSample) -> Interval:
    """The same for Student's intervals of each place alone."""
    intervals = [naive.student_interval(np.abs(errors)) for errors in sample.all_places]
    is_missed = any(
        not (low or 0.0) <= mae <= (high or 0.0) for (_, low, high), mae in zip(intervals, sample.all_maes, strict=True)
    )
    return float(is_missed), float(is_missed), float(is_missed)


def _mae_ratio(sample: PlaceSample) -> Interval:
    """0 where the interval of the first place's error relative to the others covers, else 1."""
    n_places, n_topics = sample.all_places.shape
    places, topics = np.repeat(np.arange(n_places), n_topics), np.tile(np.arange(n_topics), n_places)
    errors = sample.all_places.ravel()
    ratio = compare_place_errors(errors, np.zeros_like(errors), places, topics, "topic")[0]
    if ratio.ci_low is None or ratio.ci_high is None:
        return np.nan, None, None
    logs = np.log(sample.all_maes)
    is_missed = float(not ratio.ci_low <= np.exp(logs[0] - logs[1:].mean()) <= ratio.ci_high)
    return is_missed, is_missed, is_missed


PLACE_FIGURES = (
    Figure(
        "mae of a place",
        _mae,
        lambda s: naive.student_interval(np.abs(s.first - s.survey)),
        "Student's on the scale of the MAE",
    ),
    Figure("mae of all places", _mae_of_all_places, _naive_all_places, "each place at 95%", has_width_rule=False),
    Figure("mae of a place relative to the others", _mae_ratio, has_width_rule=False),
    Figure("bias of a place", _bias),
    Figure("r of a place", _r, lambda s: naive.fisher_interval(s.first, s.survey), "Fisher's"),
    Figure(
        "bias of all places",
        _bias_of_all_places,
        _naive_bias_of_all_places,
        "each place at 95%",
        has_width_rule=False,
    ),
    Figure("mae difference of a place", _mae_difference),
)

PLACE_STUDY = Study("places", __name__, PLACE_FIGURES, PLACE_WORLDS, PLACE_DESIGNS, n_unit_kinds=1)
