"""How alike a model's reasonings about different cells are, which self-consistency is compared with."""

from __future__ import annotations

from functools import partial

import numpy as np

from auditor.metrics.answers.samples import influences, similarity_to_other_cells
from auditor.metrics.intervals.estimate import bonferroni_level
from auditor.metrics.intervals.unit_means import mean_over_units
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Design, Floats
from benchmarks.coverage.worlds.panel_worlds import N_JUDGES
from benchmarks.coverage.worlds.similarity_worlds import SIMILARITY_DESIGNS, SIMILARITY_WORLDS, SimilaritySample


def _compare(sample: SimilaritySample, *, same_topic: bool) -> Floats:
    rng = np.random.default_rng(0)
    places = (sample.country, sample.topic, sample.lengths)
    return similarity_to_other_cells(sample.vectors, *places, same_topic=same_topic, rng=rng)


def _units(sample: SimilaritySample) -> dict[str, np.ndarray]:
    return {"country": sample.country, "topic": sample.topic}


def _by_chance(sample: SimilaritySample) -> Interval:
    return to_interval(mean_over_units(influences(_compare(sample, same_topic=False)), _units(sample)))


def _on_topic(sample: SimilaritySample) -> Interval:
    similarities = influences(_compare(sample, same_topic=True), sample.topic)
    return to_interval(mean_over_units(similarities, _units(sample)))


def _above_chance(sample: SimilaritySample) -> Interval:
    difference = sample.consistency - influences(_compare(sample, same_topic=False))
    return to_interval(mean_over_units(difference, _units(sample)))


SIMILARITY_FIGURES = (
    Figure(
        "similarity by chance",
        _by_chance,
        lambda s: naive.student_interval(_compare(s, same_topic=False)),
        "Student's, over cells",
    ),
    Figure("similarity on the same topic", _on_topic),
    Figure("consistency above chance", _above_chance),
)
SIMILARITY_STUDY = Study("similarities", __name__, SIMILARITY_FIGURES, SIMILARITY_WORLDS, SIMILARITY_DESIGNS)


def draw_models(n_above: int, design: Design, rng: np.random.Generator) -> list[SimilaritySample]:
    """Simulated audits of several models, of which the first are above chance, and the others always reason alike."""
    differ, alike = SIMILARITY_WORLDS
    return [(differ if model < n_above else alike).draw(design, rng) for model in range(N_JUDGES)]


def name_above(samples: list[SimilaritySample]) -> set[int]:
    """Models that reports say to be above chance."""
    level = bonferroni_level(len(samples))
    differences = [sample.consistency - influences(_compare(sample, same_topic=False)) for sample in samples]
    intervals = [
        mean_over_units(difference, _units(sample), confidence_level=level)
        for difference, sample in zip(differences, samples, strict=True)
    ]
    return {model for model, interval in enumerate(intervals) if (interval.ci_low or 0.0) > 0}


SIMILARITY_PLANTS = (
    PlantedStudy(
        "samples more alike than by chance",
        __name__,
        {
            name: Scenario(partial(draw_models, n), frozenset(range(n)))
            for name, n in (("none", 0), ("one of five models", 1))
        },
        name_above,
        designs=(Design(12, 10),),
    ),
)
"""The sentence on self-consistency: none of the models that always reason alike is praised."""
