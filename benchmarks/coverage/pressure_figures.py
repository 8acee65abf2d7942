"""Figures of the probe `pressure`: slopes on users' views, what returns, regions, and flips; and which models yield."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from auditor.metrics.intervals.estimate import Tested
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.probes.pressure import statistics
from auditor.probes.pressure.statistics import Dialogues
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.panel_worlds import N_JUDGES
from benchmarks.coverage.worlds.pressure_worlds import PRESSURE_WORLDS, PressureSample, PressureWorld

DESIGNS = (Design(12, 10, missing=0.5), Design(20, 10, missing=0.7))
"""About 60 cells each, as many as the probe draws."""


def to_dialogues(sample: PressureSample) -> Dialogues:
    """The sample as the probe's figures take it."""
    return Dialogues(
        sample.country.astype(np.str_),
        sample.topic.astype(np.str_),
        sample.first,
        sample.views,
        sample.scores,
        sample.released,
        sample.names_country,
    )


def compare_region(sample: PressureSample) -> Tested:
    """The first region's slope minus that of the others."""
    return statistics.region_difference(to_dialogues(sample), sample.region == 0)


def compare_flips(sample: PressureSample) -> Tested:
    """Flips under an opposing view beyond those of the neutral arm."""
    dialogues = to_dialogues(sample)
    return statistics.excess_flips(statistics.find_flips(dialogues), dialogues)


PRESSURE_STUDY = Study(
    "pressure",
    __name__,
    (
        Figure("slope on views", lambda s: to_interval(statistics.slope_after(to_dialogues(s)))),
        Figure(
            "slope on views after the pressure", lambda s: to_interval(statistics.slope_after_release(to_dialogues(s)))
        ),
        Figure("slope that returns", lambda s: to_interval(statistics.returned_slope(to_dialogues(s)))),
        Figure("difference of slopes by region", lambda s: to_interval(compare_region(s))),
        Figure(
            "difference of slopes by stated country",
            lambda s: to_interval(statistics.stated_country_difference(to_dialogues(s))),
        ),
        Figure("flips beyond the neutral arm", lambda s: to_interval(compare_flips(s))),
    ),
    PRESSURE_WORLDS,
    DESIGNS,
)


def _draw_models(worlds: Sequence[PressureWorld], design: Design, rng: np.random.Generator) -> list[PressureSample]:
    """One audit of several models, which have the same cells."""
    country, topic = design.draw_cells(rng)
    return [world.draw_cells(country, topic, design.n_countries, design.n_topics, rng, {}) for world in worlds]


def name_yielding(models: Sequence[PressureSample]) -> set[int]:
    """Models that are shown to follow users or to oppose them, adjusted for all models."""
    tests = [statistics.slope_after(to_dialogues(sample)) for sample in models]
    return _significant(tests)


def name_regional(models: Sequence[PressureSample]) -> set[int]:
    """Models that are shown to follow users more in one region, adjusted for all models."""
    return _significant([compare_region(sample) for sample in models])


def name_flipping(models: Sequence[PressureSample]) -> set[int]:
    """Models that are shown to flip beyond the neutral arm, adjusted for all models."""
    return _significant([compare_flips(sample) for sample in models])


def _significant(tests: Sequence[Tested]) -> set[int]:
    """Numbers of the tests that are significant."""
    return {number for number, test in enumerate(adjust_tests(tests, "models")) if test.is_significant}


HONEST = PressureWorld(0.0)


def _plant(world: PressureWorld, others: PressureWorld = HONEST) -> Scenario:
    """An audit of five models, the first of which is planted."""
    worlds = (world, *[others] * (N_JUDGES - 1))
    return Scenario(partial(_draw_models, worlds), frozenset({0} if world != others else ()))


PRESSURE_PLANTS = (
    PlantedStudy(
        "models that follow users",
        __name__,
        {f"slope {slope:g}": _plant(PressureWorld(slope)) for slope in (0.0, 1.0, 0.3)},
        name_yielding,
        designs=DESIGNS,
    ),
    PlantedStudy(
        "models that follow users in one region only",
        __name__,
        {
            "none": _plant(PressureWorld(0.3), PressureWorld(0.3)),
            "slope 1 in one region": _plant(PressureWorld(1.0, in_one_region=True)),
            "slope 0.3 in one region": _plant(PressureWorld(0.3, in_one_region=True)),
        },
        name_regional,
        designs=DESIGNS,
    ),
    PlantedStudy(
        "models that flip under pressure",
        __name__,
        {"none": _plant(HONEST), "slope 1": _plant(PressureWorld(1.0))},
        name_flipping,
        designs=DESIGNS,
    ),
)
