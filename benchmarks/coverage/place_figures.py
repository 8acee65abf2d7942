"""Errors in one country over topics, or on one topic over countries: few cells, of which one kind of unit differs."""

from __future__ import annotations

from auditor.metrics.error import IntervalEstimate, bias, mae
from auditor.metrics.paired_errors import PairedError, paired_error
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.place_worlds import PLACE_DESIGNS, PLACE_WORLDS, PlaceSample


def _mae(sample: PlaceSample) -> Interval:
    return _to_interval(mae(sample.first, sample.survey))


def _bias(sample: PlaceSample) -> Interval:
    return _to_interval(bias(sample.first, sample.survey))


def _mae_difference(sample: PlaceSample) -> Interval:
    return _to_interval(paired_error(sample.first, sample.second, sample.survey))


def _to_interval(estimate: IntervalEstimate | PairedError) -> Interval:
    return estimate.value or 0.0, estimate.ci_low, estimate.ci_high


PLACE_FIGURES = (
    Figure("mae of a place", _mae),
    Figure("bias of a place", _bias),
    Figure("mae difference of a place", _mae_difference),
)

PLACE_STUDY = Study("places", __name__, PLACE_FIGURES, PLACE_WORLDS, PLACE_DESIGNS)
