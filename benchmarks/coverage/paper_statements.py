"""Statements that answer questions of papers: how often they are made where they are false, and where they are true.

Named is what a report states, as judge 0 in studies of judges; judge 1 is the same statement about what has no effect.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from auditor.metrics.cell_statistics import MAE, TwoWayEstimate
from auditor.metrics.jackknife import paired_jackknife
from auditor.metrics.model_trend import trend_within_families
from auditor.metrics.multiple_testing import adjust_tests
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.worlds.design import Design, Floats, Indices
from benchmarks.coverage.worlds.model_worlds import ModelDesign

N_RUNS = 400
MIN_NAMED = 0.9
DECADES = (8.0, 11.0)
"""Decimal logarithms of the smallest and the largest number of parameters."""
MARGIN = 0.05
REGION_DESIGNS = (Design(20, 10), Design(55, 19))


class SizedModels(NamedTuple):
    """Three figures of models of one family, shape (figures, models), of which only the first may grow with size."""

    figures: Floats
    sizes: Floats


class TwoSeries(NamedTuple):
    """Two series of scores in two regions: in two languages, or of two versions of a model."""

    country: Indices
    topic: Indices
    survey: Floats
    first: Floats
    second: Floats
    region: Indices


def draw_sized_models(slope: float, design: ModelDesign, rng: np.random.Generator) -> SizedModels:
    """Models with a standard deviation of 1 between them, and a change of `slope` for ten times as many parameters."""
    log_size = np.linspace(*DECADES, design.n_models)
    figures = rng.normal(size=(3, design.n_models))
    figures[0] += slope * log_size
    return SizedModels(figures, 10**log_size)


def draw_two_series(change: float, design: Design, rng: np.random.Generator) -> TwoSeries:
    """Two series; in region 0 the errors of the second are larger by `change`, in region 1 as large."""
    country, topic = design.draw_cells(rng)
    region = (country >= design.n_countries // 2).astype(np.intp)
    survey = rng.normal(0, 0.4, len(country))

    def draw_error() -> Floats:
        effects = rng.normal(0, 0.02, design.n_countries)[country] + rng.normal(0, 0.02, design.n_topics)[topic]
        return np.asarray(0.3 + effects + rng.normal(0, 0.05, len(country)))

    shared = rng.choice([-1.0, 1.0], len(country))
    second = survey + shared * (draw_error() + change * (region == 0))
    return TwoSeries(country, topic, survey, survey + shared * draw_error(), second, region)


def state_trends(sample: SizedModels) -> set[int]:
    """Figures that are said to change with the number of parameters: 0 is the first, 1 any other."""
    families = ["family"] * len(sample.sizes)
    tests = [trend_within_families(figure, sample.sizes, families) for figure in sample.figures]
    return {min(i, 1) for i, test in enumerate(adjust_tests(tests, "trends")) if test.is_significant}


def state_worse_regions(sample: TwoSeries) -> set[int]:
    """Regions in which the second language is said to be farther from people."""
    tests = [_compare(sample, region) for region in (0, 1)]
    return {
        region
        for region, test in enumerate(adjust_tests(tests, "regions"))
        if test.is_significant and (test.value or 0.0) > 0
    }


def state_passing_regions(sample: TwoSeries) -> set[int]:
    """Regions that pass a test of non-inferiority: 0 is the one without a change, 1 the one at the margin."""
    tests = [_compare(sample, region).against_margin(MARGIN) for region in (1, 0)]
    return {i for i, test in enumerate(adjust_tests(tests, "regions")) if test.is_significant}


def _compare(sample: TwoSeries, region: int) -> TwoWayEstimate:
    """The change in MAE in a region."""
    members = sample.region == region
    columns = (sample.second, sample.first, sample.survey, sample.country, sample.topic)
    return paired_jackknife(MAE, *(column[members] for column in columns))


PAPER_STUDIES = (
    PlantedStudy(
        "consistency grows with size",
        __name__,
        {
            "no change": Scenario(partial(draw_sized_models, 0.0), frozenset()),
            "two standard deviations between models per decade": Scenario(
                partial(draw_sized_models, 2.0), frozenset({0})
            ),
        },
        state_trends,
        designs=(ModelDesign(8),),
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
    PlantedStudy(
        "farther from people in one language, by region",
        __name__,
        {
            "no change": Scenario(partial(draw_two_series, 0.0), frozenset()),
            "MAE larger by 0.08 in one region": Scenario(partial(draw_two_series, 0.08), frozenset({0})),
        },
        state_worse_regions,
        designs=REGION_DESIGNS,
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
    PlantedStudy(
        "non-inferiority",
        __name__,
        {"no change, beside a region at the margin": Scenario(partial(draw_two_series, MARGIN), frozenset({0}))},
        state_passing_regions,
        designs=REGION_DESIGNS[1:],
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
)
"""Statements on sizes of models, languages and margins."""
