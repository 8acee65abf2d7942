"""Agreement where countries are related, topics unlike, scores at one end of the scale, or whole cells are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from auditor.metrics.intervals.missing_bounds import bounded_statistic, planned_score_ranges
from auditor.metrics.intervals.two_way import UnitLabels, bias_of_these_countries, crossed_jackknife
from auditor.metrics.people.alignment import BIAS, CONCORDANCE, MAE, PEARSON, Statistic
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.harder_worlds import (
    HARDER_DESIGNS,
    HARDER_WORLDS,
    N_ZONES,
    REFUSED_CELLS,
    RELATED_WORLDS,
    HarderSample,
)

MIN_ZONES = 6
"""As in `auditor.reports.data.report_source`, which a test compares."""


def cluster(sample: HarderSample) -> UnitLabels:
    """Zones if there are at least six, else countries, as reports cluster them."""
    has_zones = len(np.unique(sample.zone)) >= MIN_ZONES
    return UnitLabels(sample.zone, "zone") if has_zones else UnitLabels(sample.country)


def _agree(statistic: Statistic) -> Callable[[HarderSample], Interval]:
    return lambda s: to_interval(crossed_jackknife(statistic, s.first, s.survey, cluster(s), s.topic))


def _by_country(statistic: Statistic) -> Callable[[HarderSample], Interval]:
    return lambda s: to_interval(crossed_jackknife(statistic, s.first, s.survey, s.country, s.topic))


def _bias_of_these_countries(sample: HarderSample) -> Interval:
    return to_interval(bias_of_these_countries(sample.first, sample.survey, sample.topic))


def _worst_case(statistic: Statistic) -> Callable[[HarderSample], Interval]:
    def compute(sample: HarderSample) -> Interval:
        is_usable = ~np.isnan(sample.first)
        ranges = planned_score_ranges(np.clip(sample.first, -1, 1), is_usable, np.ones(len(is_usable)))
        return to_interval(bounded_statistic(statistic, 0.0, ranges, sample.survey, cluster(sample), sample.topic))

    return compute


def _count_units(design: Design) -> int:
    """The number of zones, or of topics if there are fewer."""
    return min(N_ZONES, design.n_topics)


_CONTROL = "by country"
HARDER_FIGURES = (
    *(
        Figure(f"{name} over zones", _agree(statistic), _by_country(statistic), _CONTROL, count_units=_count_units)
        for name, statistic in (("r", PEARSON), ("concordance", CONCORDANCE), ("mae", MAE), ("bias", BIAS))
    ),
    *(
        Figure(f"worst-case {name} over zones", _worst_case(statistic), has_width_rule=False)
        for name, statistic in (("r", PEARSON), ("mae", MAE), ("bias", BIAS))
    ),
)
HARDER_STUDY = Study("harder worlds", __name__, HARDER_FIGURES, (*HARDER_WORLDS, REFUSED_CELLS), HARDER_DESIGNS)
THESE_COUNTRIES_STUDY = Study(
    "these countries",
    __name__,
    (Figure("bias of these countries", _bias_of_these_countries, count_units=lambda design: int(design.n_topics)),),
    RELATED_WORLDS,
    HARDER_DESIGNS,
    n_unit_kinds=1,
)
