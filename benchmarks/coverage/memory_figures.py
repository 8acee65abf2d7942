"""Figures of the probe `memory`, and its statement that a model recites published figures."""

from __future__ import annotations

from collections.abc import Callable

from auditor.probes.memory.figures import (
    SIGNIFICANCE_LEVEL,
    compare_releases,
    estimate_correlation,
    estimate_excess,
    find_hits,
)
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.memory_worlds import (
    MEMORY_DESIGN,
    MEMORY_WORLDS,
    PLANTED_RECALL,
    RELEASED,
    WITHOUT_RECALL,
    MemorySample,
)

N_RUNS = 400
MIN_FOUND = 0.9


def _excess(tolerance: int) -> Callable[[MemorySample], Interval]:
    def compute(sample: MemorySample) -> Interval:
        answers = sample.answers
        return to_interval(estimate_excess(answers, answers.published, answers.is_answered, tolerance)[2])

    return compute


def _agreement(sample: MemorySample) -> Interval:
    return to_interval(estimate_correlation(sample.scores, sample.oriented, sample.answers))


def _release_difference(sample: MemorySample) -> Interval:
    return to_interval(compare_releases(sample.answers, RELEASED)[2])


def find_recital(sample: MemorySample) -> set[int]:
    """0 if recall is shown, as the statement says it of an audit with one model."""
    rows, _ = find_hits(sample.answers, seed=7, n_models=1)
    return {0} if min(row.excess.adjusted_p_value or 1.0 for row in rows) <= SIGNIFICANCE_LEVEL else set()


MEMORY_STUDY = Study(
    "memory",
    __name__,
    (
        Figure("hits beyond chance", _excess(0)),
        Figure("hits within 5 points beyond chance", _excess(1)),
        Figure("r without recall", _agreement),
        Figure("difference by release", _release_difference),
    ),
    MEMORY_WORLDS,
    (MEMORY_DESIGN,),
    checkpoints=(N_RUNS,),
)
RECITAL_STUDIES = tuple(
    PlantedStudy(
        world.name,
        __name__,
        {
            **{null.name: Scenario(null.draw, frozenset()) for null in (WITHOUT_RECALL if not number else ())},
            world.name: Scenario(world.draw, frozenset({0})),
        },
        find_recital,
        designs=(MEMORY_DESIGN,),
        n_runs=N_RUNS,
        min_named=MIN_FOUND,
    )
    for number, world in enumerate(PLANTED_RECALL)
)
