"""Statements that answer questions of papers: how often they are made where they are false, and where they are true.

Named is what a report states, as judge 0 in studies of judges; judge 1 is the same statement about what has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from auditor.metrics.distributions.groups import group_mean_difference
from auditor.metrics.intervals.correlation import correlate_over_units
from auditor.metrics.intervals.items import within_model_difference
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.intervals.paired import paired_difference
from auditor.metrics.intervals.two_way import paired_jackknife
from auditor.metrics.people.alignment import MAE, TwoWayEstimate
from auditor.metrics.people.over_models import trend_within_families
from auditor.reports.data.sampling import build_subsample_row, find_enough_samples
from benchmarks.coverage import naive
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.culture_worlds import CultureSample, CultureWorld
from benchmarks.coverage.worlds.design import Design, Floats, Indices
from benchmarks.coverage.worlds.item_worlds import ItemDesign
from benchmarks.coverage.worlds.pair_worlds import PAIR_DESIGNS, PairDesign, PairSample, PairWorld
from benchmarks.coverage.worlds.validity_worlds import ValiditySample, ValidityWorld

N_RUNS = 400
MIN_NAMED = 0.9
DECADES = (8.0, 11.0)
"""Decimal logarithms of the smallest and the largest number of parameters."""
MARGIN = 0.05
PURE_NOISE = 1e3
"""Error of a measure that has nothing to do with the labels."""
SAMPLE_SIZES = (1, 2, 3, 5, 10)
REGION_DESIGNS = (Design(20, 10), Design(55, 19))


@dataclass(frozen=True, slots=True)
class FamilyDesign:
    """Number of models in each family."""

    families: tuple[int, ...]

    @property
    def label(self) -> str:
        """The design in words."""
        if len(self.families) == 1:
            return f"{self.families[0]} models"
        return f"families of {', '.join(map(str, self.families[:-1]))} and {self.families[-1]} models"

    @property
    def smaller_side(self) -> int:
        """Number of models."""
        return sum(self.families)


class SizedModels(NamedTuple):
    """Three figures of models, shape (figures, models), of which only the first may grow with size in a family."""

    figures: Floats
    sizes: Floats
    families: list[str]


class TwoSeries(NamedTuple):
    """Two series of scores in two regions: in two languages, or of two versions of a model."""

    country: Indices
    topic: Indices
    survey: Floats
    first: Floats
    second: Floats
    region: Indices


def draw_sized_models(
    slope: float, design: FamilyDesign, rng: np.random.Generator, *, by_family: float = 0.0
) -> SizedModels:
    """Models with a standard deviation of 1 between them, and a change of `slope` for ten times as many parameters.

    Args:
        by_family: by how much models of a family are better than those of the one before, which is ten times smaller.
    """
    family = np.repeat(np.arange(len(design.families)), design.families)
    first, last = DECADES
    log_size = np.concatenate([np.linspace(first, last, n) for n in design.families]) + family
    figures = rng.normal(size=(3, len(family)))
    figures[0] += slope * log_size
    figures += by_family * family
    return SizedModels(figures, np.asarray(10.0**log_size), [f"family {i}" for i in family])


def draw_two_series(change: float, design: Design, rng: np.random.Generator, *, other_change: float = 0.0) -> TwoSeries:
    """Two series; in region 0 the errors of the second are larger by `change`, in region 1 by `other_change`."""
    country, topic = design.draw_cells(rng)
    region = (country >= design.n_countries // 2).astype(np.intp)
    survey = rng.normal(0, 0.4, len(country))

    def draw_error() -> Floats:
        effects = rng.normal(0, 0.02, design.n_countries)[country] + rng.normal(0, 0.02, design.n_topics)[topic]
        return np.asarray(0.3 + effects + rng.normal(0, 0.05, len(country)))

    shared = rng.choice([-1.0, 1.0], len(country))
    second = survey + shared * (draw_error() + np.where(region == 0, change, other_change))
    return TwoSeries(country, topic, survey, survey + shared * draw_error(), second, region)


def state_trends(sample: SizedModels) -> set[int]:
    """Figures that are said to change with the number of parameters: 0 is the first, 1 any other."""
    return _find_trends(sample, sample.families)


def naively_state_trends(sample: SizedModels) -> set[int]:
    """The same, over models without regard to their families."""
    return _find_trends(sample, ["family"] * len(sample.sizes))


def _find_trends(sample: SizedModels, families: list[str]) -> set[int]:
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


def draw_cultures(gap: float, design: Design, rng: np.random.Generator) -> tuple[CultureSample, CultureSample]:
    """Consistency of two models in two regions; the first model's differs by `gap`."""
    return CultureWorld("planted", gap).draw(design, rng), CultureWorld("equal regions", 0.0).draw(design, rng)


def state_regional_gaps(samples: tuple[CultureSample, CultureSample]) -> set[int]:
    """Models that are said to be less or more consistent about one region."""
    tests = [
        group_mean_difference(s.scores, s.is_second, {"country": s.country, "question": s.question}, bounds=(-2.0, 2.0))
        for s in samples
    ]
    return {i for i, test in enumerate(adjust_tests(tests, "gaps")) if test.is_significant}


def naively_state_regional_gaps(samples: tuple[CultureSample, CultureSample]) -> set[int]:
    """The same by Welch's interval, as if all questions about countries were independent."""
    groups = [(s.scores[s.is_second], s.scores[~s.is_second]) for s in samples]
    return {i for i, (second, first) in enumerate(groups) if _excludes_zero(naive.welch_interval(second, first))}


def draw_languages(shift: float, design: ItemDesign, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Similarities across two languages of translations and of two models' answers, shapes (q,) and (models, q).

    The answers of the first model are less alike than translations by `shift`, those of the second as alike.
    """
    floor = rng.normal(0.85, 0.04, design.n_items)
    across = floor + rng.normal(0, 0.06, (2, design.n_items))
    across[0] -= shift
    return np.clip(floor, -1, 1), np.clip(across, -1, 1)


def state_inconsistent_languages(sample: tuple[Floats, Floats]) -> set[int]:
    """Models that are said to be less alike across languages than translations."""
    floor, across = sample
    units = {"question": np.arange(len(floor))}
    tests = [paired_difference(floor, row, units, bounds=(-2.0, 2.0)) for row in across]
    return {i for i, test in enumerate(adjust_tests(tests, "languages")) if test.is_significant}


def draw_measures(noise: float, design: PairDesign, rng: np.random.Generator) -> tuple[PairSample, PairSample]:
    """People's labels with a measure whose error has a standard deviation of `noise`, and with one of noise alone."""
    return PairWorld("planted", noise).draw(design, rng), PairWorld("noise", PURE_NOISE).draw(design, rng)


def state_measures_of_people(samples: tuple[PairSample, PairSample]) -> set[int]:
    """Measures that are said to agree or disagree with people."""
    tests = [correlate_over_units(s.alike, s.measure, {"question": s.question}, weights=s.weights) for s in samples]
    return {i for i, test in enumerate(adjust_tests(tests, "measures")) if test.is_significant}


def naively_state_measures_of_people(samples: tuple[PairSample, PairSample]) -> set[int]:
    """The same by Fisher's interval, as if all answers were independent."""
    return {i for i, s in enumerate(samples) if _excludes_zero(naive.fisher_interval(s.alike, s.measure))}


def state_that_verdicts_follow_accuracy(sample: ValiditySample) -> set[int]:
    """Verdicts that are said to follow whether an answer is right: 0, or none."""
    test = within_model_difference(sample.shares, sample.is_right, sample.model, sample.item)
    return {0} if _excludes_zero((test.value or 0.0, test.ci_low, test.ci_high)) else set()


def naively_state_that_verdicts_follow_accuracy(sample: ValiditySample) -> set[int]:
    """The same by Welch's interval over the answers of all models."""
    interval = naive.welch_interval(sample.shares[sample.is_right], sample.shares[~sample.is_right])
    return {0} if _excludes_zero(interval) else set()


class SampledAnswers(NamedTuple):
    """Scores of samples, shape (cells, samples), people's scores, and the fewest samples that are enough, if any."""

    scores: Floats
    survey: Floats
    fewest: int | None


def draw_samples(noise: float, fewest: int | None, design: Design, rng: np.random.Generator) -> SampledAnswers:
    """Ten samples a cell with a standard deviation of `noise`.

    Args:
        fewest: smallest of `SAMPLE_SIZES` with which MAE and r are, as expected values, within 0.01 of those with ten.
    """
    survey = rng.normal(0, 0.4, design.n_countries * design.n_topics)
    means = 0.8 * survey + rng.normal(0, 0.25, len(survey))
    scores = means[:, None] + noise * rng.normal(size=(len(survey), SAMPLE_SIZES[-1]))
    return SampledAnswers(scores, survey, fewest)


def state_enough_samples(sample: SampledAnswers) -> set[int]:
    """0 if a number of samples that is enough is said to be, 1 if one that is not."""
    rows = [build_subsample_row(0, "model", sample.scores, sample.survey, k, None) for k in SAMPLE_SIZES]
    stated = find_enough_samples(rows)[0].samples
    if stated is None:
        return set()
    return {0} if sample.fewest is not None and stated >= sample.fewest else {1}


def _excludes_zero(interval: Interval) -> bool:
    return (interval[1] or 0.0) > 0 or (interval[2] or 0.0) < 0


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
        designs=(FamilyDesign((8,)),),
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
    PlantedStudy(
        "consistency grows with size in unequal families",
        __name__,
        {
            "larger families are better, their larger models are not": Scenario(
                partial(draw_sized_models, 0.0, by_family=3.0), frozenset()
            ),
            "two standard deviations between models per decade": Scenario(
                partial(draw_sized_models, 2.0, by_family=-3.0), frozenset({0})
            ),
        },
        state_trends,
        naively_state_trends,
        designs=(FamilyDesign((6, 3, 2)), FamilyDesign((8, 4, 3))),
        n_runs=5 * N_RUNS,
        min_named=MIN_NAMED,
    ),
    PlantedStudy(
        "consistency grows with size, five models",
        __name__,
        {"ten standard deviations per decade": Scenario(partial(draw_sized_models, 10.0), frozenset())},
        state_trends,
        designs=(FamilyDesign((5,)),),
        n_runs=N_RUNS,
    ),
    PlantedStudy(
        "less consistent about one region",
        __name__,
        {
            "equal regions": Scenario(partial(draw_cultures, 0.0), frozenset()),
            "consistency lower by 0.15 in one region": Scenario(partial(draw_cultures, -0.15), frozenset({0})),
        },
        state_regional_gaps,
        naively_state_regional_gaps,
        designs=(Design(6, 30), Design(20, 10), Design(20, 40, missing=0.3)),
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
    PlantedStudy(
        "says something else in one language",
        __name__,
        {
            "as alike as translations": Scenario(partial(draw_languages, 0.0), frozenset()),
            "cosine lower by 0.1": Scenario(partial(draw_languages, 0.1), frozenset({0})),
        },
        state_inconsistent_languages,
        designs=(ItemDesign(10), ItemDesign(20)),
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
    PlantedStudy(
        "a measure of consistency follows people",
        __name__,
        {
            "two measures of noise": Scenario(partial(draw_measures, PURE_NOISE), frozenset()),
            "error of 0.1": Scenario(partial(draw_measures, 0.1), frozenset({0})),
        },
        state_measures_of_people,
        naively_state_measures_of_people,
        designs=PAIR_DESIGNS,
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
    PlantedStudy(
        "verdicts follow accuracy",
        __name__,
        {
            "verdicts do not follow accuracy": Scenario(ValidityWorld("none", 0.0).draw, frozenset()),
            "verdicts follow the model": Scenario(ValidityWorld("halo", 0.0, halo=0.2).draw, frozenset()),
            "VALID more often by 0.25 if right": Scenario(ValidityWorld("planted", 0.25).draw, frozenset({0})),
        },
        state_that_verdicts_follow_accuracy,
        naively_state_that_verdicts_follow_accuracy,
        designs=(Design(6, 40), Design(12, 60, missing=0.3)),
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
    PlantedStudy(
        "more samples stop helping",
        __name__,
        {
            "noise of 0.4, ten samples are too few": Scenario(partial(draw_samples, 0.4, None), frozenset()),
            "noise of 0.17, five are enough": Scenario(partial(draw_samples, 0.17, 5), frozenset({0})),
            "noise of 0.05, one is enough": Scenario(partial(draw_samples, 0.05, 1), frozenset({0})),
        },
        state_enough_samples,
        designs=(Design(10, 10), Design(20, 10)),
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
        {
            "both regions at the margin": Scenario(partial(draw_two_series, MARGIN, other_change=MARGIN), frozenset()),
            "no change, beside a region at the margin": Scenario(partial(draw_two_series, MARGIN), frozenset({0})),
        },
        state_passing_regions,
        designs=REGION_DESIGNS,
        n_runs=N_RUNS,
        min_named=MIN_NAMED,
    ),
)
"""Statements on sizes of models, regions, languages, people, tasks, samples and margins."""
