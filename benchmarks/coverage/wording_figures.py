"""Agreement of the mean over several wordings of each question, with the wording as a source of uncertainty."""

from __future__ import annotations

from collections.abc import Callable

from auditor.metrics.designs.run_effects import error_of_one_wording, widen_for_wordings
from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.wording_worlds import N_WORDINGS, WORDING_DESIGNS, WORDING_WORLDS, WordingSample


def _over_wordings(statistic: Statistic) -> Callable[[WordingSample], Interval]:
    def compute(sample: WordingSample) -> Interval:
        mean = sample.scores.mean(axis=0)
        estimate = crossed_jackknife(statistic, mean, sample.survey, sample.country, sample.topic)
        return to_interval(widen_for_wordings(estimate, statistic, sample.scores, sample.survey))

    return compute


def _ignore_wordings(statistic: Statistic) -> Callable[[WordingSample], Interval]:
    def compute(sample: WordingSample) -> Interval:
        mean = sample.scores.mean(axis=0)
        return to_interval(crossed_jackknife(statistic, mean, sample.survey, sample.country, sample.topic))

    return compute


def _one_wording(sample: WordingSample) -> Interval:
    return to_interval(error_of_one_wording(sample.scores, sample.survey, sample.country, sample.topic))


def _count_units(design: Design) -> int:
    return min(N_WORDINGS, design.smaller_side)


WORDING_FIGURES = (
    *(
        Figure(
            f"{name} over wordings",
            _over_wordings(statistic),
            _ignore_wordings(statistic),
            "the wording ignored",
            count_units=_count_units,
        )
        for name, statistic in (("r", PEARSON), ("mae", MAE), ("bias", BIAS))
    ),
    Figure("mae of one wording", _one_wording, count_units=_count_units),
)
WORDING_STUDY = Study("wordings", __name__, WORDING_FIGURES, WORDING_WORLDS, WORDING_DESIGNS, n_unit_kinds=3)
