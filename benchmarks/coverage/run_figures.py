"""Figures of audits that are asked in several designs, and statements on levels and rankings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from auditor.metrics.designs.robustness import (
    DesignRun,
    DesignTable,
    ErrorKind,
    LevelPair,
    RegionGap,
    average_designs,
    compare_all_levels,
    compare_levels,
    compare_rankings,
    estimate_designs,
)
from auditor.metrics.intervals.two_way import UnitLabels
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.run_worlds import (
    FACTOR_PAIRS,
    MAIN_EFFECTS,
    N_MODELS,
    NAMED_FACTOR,
    NO_EFFECT,
    RUN_DESIGNS,
    RUN_WORLDS,
    RunSample,
    RunWorld,
)

RANDOM_FACTORS = ("wording",)
NAMED_PAIR = LevelPair(NAMED_FACTOR, "0", "1")
N_RUNS = 400
MIN_NAMED = 0.9


@lru_cache(maxsize=1)
def to_table(sample: RunSample) -> DesignTable:
    """The table of a sample, as the experiment makes it of recorded scores."""
    runs = tuple(DesignRun(i, levels) for i, levels in enumerate(sample.runs))
    countries = np.array([f"country {i}" for i in sample.country])
    topics = np.array([f"topic {i}" for i in sample.topic])
    models = tuple(f"model {i}" for i in range(N_MODELS))
    return DesignTable(runs, models, countries, topics, UnitLabels(countries), sample.scores, sample.survey)


def _regions(sample: RunSample) -> Mapping[str, str]:
    pairs = zip(sample.country, sample.is_second_region, strict=True)
    return {f"country {country}": f"region {int(is_second)}" for country, is_second in pairs}


def _by_level(kind: ErrorKind) -> Callable[[RunSample], Interval]:
    return lambda sample: to_interval(compare_levels(to_table(sample), 0, kind, NAMED_PAIR))


def _gap_by_level(kind: ErrorKind) -> Callable[[RunSample], Interval]:
    return lambda sample: to_interval(RegionGap(to_table(sample), 0, kind, _regions(sample)).compare_levels(NAMED_PAIR))


def _over_designs(kind: ErrorKind) -> Callable[[RunSample], Interval]:
    return lambda sample: to_interval(average_designs(to_table(sample), 0, kind, RANDOM_FACTORS))


def _over_fixed_designs(sample: RunSample) -> Interval:
    return to_interval(average_designs(to_table(sample), 0, "mae"))


def _over_answers(sample: RunSample) -> Interval:
    """Student's interval of the bias, as if all answers were independent."""
    errors = sample.scores[0] - sample.survey[:, None]
    return naive.student_interval(errors[~np.isnan(errors)])


def _of_a_design(kind: ErrorKind) -> Callable[[RunSample], Interval]:
    return lambda sample: to_interval(next(estimate_designs(to_table(sample), 0, kind))[1])


def _of_all_levels(sample: RunSample) -> Interval:
    """0 where the simultaneous intervals of all levels and models cover, else 1, as an interval without width."""
    is_missed = any(
        low is not None and high is not None and not low <= sample.level_truths[row.pair.factor] <= high
        for row in compare_all_levels(to_table(sample), "mae", RANDOM_FACTORS)
        for low, high in [(row.estimate.ci_low, row.estimate.ci_high)]
    )
    return float(is_missed), float(is_missed), float(is_missed)


def state_levels(sample: RunSample) -> set[int]:
    """Factors whose levels are said to change the MAE of the first model: 0 is the named one, 1 any other."""
    rows = compare_all_levels(to_table(sample), "mae", RANDOM_FACTORS)
    return {
        int(row.pair.factor != NAMED_FACTOR)
        for row in rows
        if row.model == rows[0].model and row.estimate.is_significant
    }


def state_changed_rankings(sample: RunSample) -> set[int]:
    """Rankings that are said to change: 0 is that of the first two models with the named factor, 1 any without it."""
    changes = [test for test in compare_rankings(to_table(sample)) if test.is_change]
    named = {
        0 for test in changes if (test.first, test.second, test.pair.factor) == ("model 0", "model 1", NAMED_FACTOR)
    }
    return named | {1 for test in changes if test.pair.factor != NAMED_FACTOR or test.first != "model 0"}


def _scenarios(worlds: Mapping[str, RunWorld], planted: str) -> dict[str, Scenario]:
    return {
        name: Scenario(world.draw, frozenset({0}) if name == planted else frozenset()) for name, world in worlds.items()
    }


LARGER_MAE = "MAE larger by 0.10 with one level"
CHANGED_RANKING = "a level moves one model by 0.50"
RUN_FIGURES = (
    *(Figure(f"{kind} by level", _by_level(kind)) for kind in ("mae", "bias")),
    *(
        Figure(f"{kind} gap by level", _gap_by_level(kind), count_units=lambda design: design.n_countries // 2)
        for kind in ("mae", "bias")
    ),
    Figure("mae over designs", _over_designs("mae"), _over_fixed_designs, "the wording ignored", lambda _: 5),
    Figure("bias over designs", _over_designs("bias"), _over_answers, "Student's, over answers", lambda _: 5),
    *(Figure(f"{kind} of a design", _of_a_design(kind)) for kind in ("mae", "bias")),
    Figure("mae of all levels", _of_all_levels, has_width_rule=False),
)
RUN_STUDY = Study("designs", __name__, RUN_FIGURES, RUN_WORLDS, RUN_DESIGNS, checkpoints=(N_RUNS, 1000, 2000))
RUN_STUDIES = (
    PlantedStudy(
        "a level of the design changes the error",
        __name__,
        _scenarios(
            {
                "no effect": NO_EFFECT,
                "only pairs of factors": FACTOR_PAIRS,
                LARGER_MAE: RunWorld("", {NAMED_FACTOR: 0.1075}),
            },
            LARGER_MAE,
        ),
        state_levels,
        designs=(Design(12, 10),),
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
    PlantedStudy(
        "a ranking changes with the design",
        __name__,
        _scenarios(
            {
                "no effect": NO_EFFECT,
                "levels shift all models": MAIN_EFFECTS,
                "only pairs of factors": FACTOR_PAIRS,
                "a level moves one model, which is equal to others at the other level": RunWorld(
                    "", model_shift=0.24, model_base=0.12
                ),
                CHANGED_RANKING: RunWorld("", model_shift=0.5),
            },
            CHANGED_RANKING,
        ),
        state_changed_rankings,
        designs=(Design(12, 10),),
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
)
"""Statements on levels and rankings."""
