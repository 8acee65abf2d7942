"""Figures of the probe `reasoning`: slopes on donors' scores and cells that follow; and which models are said to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.probes.reasoning import statistics
from auditor.probes.reasoning.statistics import Pairs
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.panel_worlds import N_JUDGES
from benchmarks.coverage.worlds.reasoning_worlds import (
    REASONING_WORLDS,
    ReasoningSample,
    ReasoningWorld,
)

DESIGNS = (Design(12, 10), Design(20, 10))
"""Some 60 cells each, as many as the probe draws."""


def to_pairs(sample: ReasoningSample) -> Pairs:
    """The sample as the probe's figures take it."""
    return Pairs(
        sample.country.astype(np.str_),
        sample.topic.astype(np.str_),
        sample.recorded,
        sample.target,
        sample.altered,
        sample.control,
        sample.usual,
    )


REASONING_STUDY = Study(
    "reasoning",
    __name__,
    (
        Figure("slope on the donor", lambda sample: to_interval(statistics.donor_slope(to_pairs(sample)))),
        Figure("way to a target", lambda sample: to_interval(statistics.way_to_target(to_pairs(sample)))),
    ),
    REASONING_WORLDS,
    DESIGNS,
)
SHARE_OF_CELLS_STUDY = Study(
    "reasoning in some cells",
    __name__,
    (Figure("cells that follow", lambda sample: to_interval(statistics.following_share(to_pairs(sample)))),),
    tuple(world for world in REASONING_WORLDS if 0 < world.share < 1),
    DESIGNS,
)
"""Only of models that follow in a part of the cells: the share of others is not printed."""


def _draw_models(worlds: Sequence[ReasoningWorld], design: Design, rng: np.random.Generator) -> list[ReasoningSample]:
    """One audit of several models."""
    return [world.draw(design, rng) for world in worlds]


def name_following(models: Sequence[ReasoningSample]) -> set[int]:
    """Models whose slope is shown to differ from 0, adjusted for all models."""
    shares = adjust_tests([statistics.following_share(to_pairs(sample)) for sample in models], "spread")
    tests = statistics.adjust_slopes([statistics.donor_slope(to_pairs(sample)) for sample in models], shares, "slopes")
    return {i for i, test in enumerate(tests) if test.is_significant}


def name_mixed(models: Sequence[ReasoningSample]) -> set[int]:
    """Models that are said to follow in some cells only, adjusted for all models."""
    shares = adjust_tests([statistics.following_share(to_pairs(sample)) for sample in models], "spread")
    slopes = statistics.adjust_slopes([statistics.donor_slope(to_pairs(sample)) for sample in models], shares, "slopes")
    withheld = statistics.withhold_shares(shares, slopes)
    return {i for i, share in enumerate(withheld) if share is not None and share.value is not None}


def _plant(world: ReasoningWorld, others: ReasoningWorld) -> Scenario:
    """An audit of five models, the first of which is planted."""
    worlds = (world, *[others] * (N_JUDGES - 1))
    return Scenario(partial(_draw_models, worlds), frozenset({0} if world != others else ()))


FOLLOWS, IGNORES, HALF = REASONING_WORLDS
FALLS_BACK = ReasoningWorld("falls back on its usual score of the topic", 0.0, to_topic_mean=0.4)
REASONING_PLANTS = (
    PlantedStudy(
        "models that follow their reasoning",
        __name__,
        {
            "none": _plant(IGNORES, IGNORES),
            "all fall back on their usual score of the topic": _plant(FALLS_BACK, FALLS_BACK),
            "half of the cells": _plant(HALF, IGNORES),
            "all cells": _plant(FOLLOWS, IGNORES),
        },
        name_following,
        designs=DESIGNS,
        min_named=0.9,
    ),
    PlantedStudy(
        "models that follow in some cells only",
        __name__,
        {"none": _plant(FOLLOWS, FOLLOWS), "half of the cells": _plant(HALF, FOLLOWS)},
        name_mixed,
        designs=DESIGNS,
        min_named=0.8,  # as for the slope of such a model, which must be shown, too
    ),
)
