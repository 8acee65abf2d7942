"""How far a measure of consistency agrees with people's labels on a random sample of pairs of answers."""

from __future__ import annotations

from auditor.metrics.intervals.correlation import correlate_over_units
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.pair_worlds import PAIR_DESIGNS, PAIR_WORLDS, PairSample


def _correlation(sample: PairSample) -> Interval:
    questions = {"question": sample.question}
    return to_interval(correlate_over_units(sample.alike, sample.measure, questions, weights=sample.weights))


PAIR_FIGURES = (
    Figure(
        "r with people of a sample",
        _correlation,
        lambda s: naive.fisher_interval(s.alike, s.measure),
        "Fisher's, unweighted",
    ),
)

PAIR_STUDY = Study("pairs", __name__, PAIR_FIGURES, PAIR_WORLDS, PAIR_DESIGNS, n_unit_kinds=1)
