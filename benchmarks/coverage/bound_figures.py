"""Worst-case bounds where samples are lost: intervals that cover the figure over all planned samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from auditor.metrics.intervals.missing_bounds import bounded_statistic, planned_score_ranges
from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import SIZES
from benchmarks.coverage.worlds.lost_worlds import LOST_WORLDS, LostSample


def _worst_case(statistic: Statistic) -> Callable[[LostSample], Interval]:
    """The interval of a statistic over all planned samples."""

    def compute(sample: LostSample) -> Interval:
        ranges = planned_score_ranges(sample.scores, sample.usable, sample.planned)
        estimate = bounded_statistic(statistic, 0.0, ranges, sample.survey, sample.country, sample.topic)
        return to_interval(estimate)

    return compute


def _ignore_losses(statistic: Statistic) -> Callable[[LostSample], Interval]:
    """The interval over the samples that are left, as if the others were lost at random."""

    def compute(sample: LostSample) -> Interval:
        estimate = crossed_jackknife(statistic, sample.scores, sample.survey, sample.country, sample.topic)
        return np.nan if estimate.value is None else estimate.value, estimate.ci_low, estimate.ci_high

    return compute


IGNORED = "losses ignored"
BOUND_FIGURES = (
    Figure("worst-case r", _worst_case(PEARSON), _ignore_losses(PEARSON), IGNORED, has_width_rule=False),
    Figure("worst-case mae", _worst_case(MAE), _ignore_losses(MAE), IGNORED, has_width_rule=False),
    Figure("worst-case bias", _worst_case(BIAS), _ignore_losses(BIAS), IGNORED, has_width_rule=False),
)

BOUND_STUDY = Study("lost samples", __name__, BOUND_FIGURES, LOST_WORLDS, SIZES)
