"""Figures of opinions: distance, skill and variance of a model's answers, and the slope of its gaps between groups."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from auditor.metrics import (
    ROOT_MEAN_DISTANCE,
    SKILL,
    VARIANCE_RATIO,
    crossed_jackknife,
    cut_variance,
    gap_slope,
    mean_of_orders,
    order_effect,
    share_variance,
    squared_distance,
    variance_of_orders,
    wasserstein,
)
from auditor.metrics.intervals.unit_means import mean_over_units
from auditor.metrics.people.alignment import Statistic
from auditor.probes.distribution.figures.rows import NEAR_W1
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Floats
from benchmarks.coverage.worlds.opinion_worlds import (
    GAP_WORLDS,
    N_PEOPLE,
    OPINION_WORLDS,
    POINTS,
    GapSample,
    OpinionSample,
)


@lru_cache(maxsize=1)
def _distances(sample: OpinionSample) -> tuple[Floats, Floats]:
    """Squared distances from people of the model and of uniform shares."""
    people_variance = cut_variance(sample.people, N_PEOPLE)
    model, model_variance = mean_of_orders(sample.up, sample.down)
    return (
        squared_distance(sample.people, model, POINTS, people_variance, model_variance),
        squared_distance(sample.people, np.full_like(sample.people, 0.1), POINTS, people_variance),
    )


def _two_way(statistic: Statistic, first: Floats, second: Floats, sample: OpinionSample) -> Interval:
    return to_interval(crossed_jackknife(statistic, first, second, sample.country, sample.topic))


def _distance(sample: OpinionSample) -> Interval:
    squared, _ = _distances(sample)
    return _two_way(ROOT_MEAN_DISTANCE, squared, np.zeros_like(squared), sample)


def _variance_ratio(sample: OpinionSample) -> Interval:
    model = variance_of_orders(sample.up, sample.down, POINTS)
    return _two_way(VARIANCE_RATIO, model, share_variance(sample.people, POINTS, N_PEOPLE), sample)


def _order_shift(sample: OpinionSample) -> Interval:
    shift = order_effect(sample.up, sample.down, POINTS, 5, 5).shift
    return to_interval(mean_over_units(shift, {"country": sample.country, "topic": sample.topic}))


def _near_cells(sample: OpinionSample) -> Interval:
    """The share of cells near people, as reports compute it."""
    model, _ = mean_of_orders(sample.up, sample.down)
    is_near = wasserstein(sample.people, model, POINTS) < NEAR_W1
    return to_interval(mean_over_units(is_near, {"country": sample.country, "topic": sample.topic}))


def _slope(sample: GapSample, *, intercept: bool = False) -> Interval:
    units = {"country": sample.country, "topic": sample.topic}
    return to_interval(gap_slope(sample.people, sample.model, sample.people_variance, units, intercept=intercept))


OPINION_STUDY = Study(
    "opinions",
    __name__,
    (
        Figure(
            "distribution distance",
            _distance,
            lambda s: naive.root_mean_square_interval(np.sqrt(np.maximum(_distances(s)[0], 0.0))),
            "Student's of the mean square, over cells",
        ),
        Figure("distribution skill", lambda s: _two_way(SKILL, *_distances(s), s)),
        Figure("variance ratio", _variance_ratio),
        Figure("order shift", _order_shift),
        Figure("cells near people", _near_cells),
    ),
    OPINION_WORLDS,
)
GAP_STUDY = Study(
    "gaps between groups",
    __name__,
    (
        # The mean width of Fieller's intervals is infinite: those near an undetermined slope have no limit.
        Figure("gap slope", _slope, has_width_rule=False),
        Figure("gap slope with intercept", lambda s: _slope(s, intercept=True), has_width_rule=False),
    ),
    GAP_WORLDS,
)
