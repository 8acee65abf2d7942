"""Figures of the probe `memory`, and its statement that a model recites published figures."""

from __future__ import annotations

from collections.abc import Callable

from auditor.probes.memory.figures import (
    SIGNIFICANCE_LEVEL,
    Answers,
    compare_releases,
    estimate_correlation,
    estimate_excess,
    find_hits,
)
from auditor.probes.memory.published import ORDINARY, RECALL, FigureKey, PublishedFigure
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.memory_worlds import (
    MEMORY_DESIGN,
    MEMORY_WORLDS,
    PLANTED_RECALL,
    RELEASED,
    WAVES,
    WITHOUT_RECALL,
    MemorySample,
)

N_RUNS = 400
MIN_FOUND = 0.9


def to_answers(sample: MemorySample) -> Answers:
    """The sample as the probe's figures take it."""
    places = [(f"c{country}", f"t{topic}") for country, topic in zip(sample.country, sample.topic, strict=True)]
    keys, siblings = (
        [FigureKey(*place, WAVES[wave], "s") for place, wave in zip(places, waves, strict=True)]
        for waves in (sample.wave, sample.other_wave)
    )
    published = zip([*keys, *siblings], [*sample.published, *sample.sibling], strict=True)
    figures = {key: PublishedFigure(float(value), 0) for key, value in published}
    values = {
        (key, question): float(value)
        for question, answers in ((RECALL, sample.recalled), (ORDINARY, sample.ordinary))
        for key, value in zip(keys, answers, strict=True)
    }
    return Answers(keys, figures, values)


def _excess(tolerance: int) -> Callable[[MemorySample], Interval]:
    def compute(sample: MemorySample) -> Interval:
        answers = to_answers(sample)
        return to_interval(estimate_excess(answers, answers.published, answers.is_answered, tolerance)[2])

    return compute


def _agreement(sample: MemorySample) -> Interval:
    return to_interval(estimate_correlation(sample.scores, sample.oriented, to_answers(sample)))


def _release_difference(sample: MemorySample) -> Interval:
    return to_interval(compare_releases(to_answers(sample), RELEASED)[2])


def find_recital(sample: MemorySample) -> set[int]:
    """0 if recall is shown, as the statement says it of an audit with one model."""
    rows, _ = find_hits(to_answers(sample), seed=7, n_models=1)
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
