"""Agreement with the population that was surveyed, over equal ranges, and among topics; rules of sentences about it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from auditor.metrics.intervals.estimate import SHARED_LEVEL
from auditor.metrics.intervals.two_way import crossed_jackknife, gap_jackknife
from auditor.metrics.people.alignment import MAE, PEARSON, RMSE, Statistic
from auditor.metrics.people.structure import Structure, compare_structure
from auditor.metrics.people.survey_error import (
    CorrectedAgreement,
    RangeCorrection,
    correct_for_survey_error,
    range_corrected_gap,
    sampling_floor_of_mae,
)
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.agreement_worlds import (
    AGREEMENT_DESIGNS,
    AGREEMENT_WORLDS,
    AgreementSample,
    RelatedTopics,
    SampledPeople,
)
from benchmarks.coverage.worlds.design import Design

Compute = Callable[[AgreementSample], Interval]


def _correct(sample: AgreementSample) -> CorrectedAgreement:
    return correct_for_survey_error(sample.first, sample.survey, sample.standard_errors, sample.country, sample.topic)


def _compare_ranges(sample: AgreementSample) -> RangeCorrection:
    return range_corrected_gap(sample.first, sample.survey, sample.country, sample.topic, sample.in_second)


def _relate(sample: AgreementSample) -> Structure:
    return compare_structure(sample.first, sample.survey, sample.country, sample.topic, n_permutations=0)


def _raw(statistic: Statistic) -> Compute:
    return lambda s: to_interval(crossed_jackknife(statistic, s.first, s.survey, s.country, s.topic))


def _raw_gap(sample: AgreementSample) -> Interval:
    gap = gap_jackknife(PEARSON, sample.first, sample.survey, sample.country, sample.topic, sample.in_second)
    return to_interval(gap)


AGREEMENT_FIGURES = (
    Figure(
        "mae without sampling error", lambda s: to_interval(_correct(s).mae), _raw(MAE), "with people’s sampling error"
    ),
    Figure(
        "rmse without sampling error",
        lambda s: to_interval(_correct(s).rmse),
        _raw(RMSE),
        "with people’s sampling error",
    ),
    Figure(
        "r without sampling error",
        lambda s: to_interval(_correct(s).pearson_r),
        _raw(PEARSON),
        "with people’s sampling error",
    ),
    Figure("concordance without sampling error", lambda s: to_interval(_correct(s).concordance)),
    Figure("r corrected for range", lambda s: to_interval(_compare_ranges(s).first.corrected_r)),
    Figure(
        "gap in r corrected for range",
        lambda s: to_interval(_compare_ranges(s).gap),
        _raw_gap,
        "the gap in r itself",
    ),
    Figure("slope on people's scores", lambda s: to_interval(_compare_ranges(s).second.slope)),
    Figure("residual sd", lambda s: to_interval(_compare_ranges(s).second.residual_sd)),
    Figure(
        "distance of topic correlations",
        lambda s: to_interval(_relate(s).raw),
        count_units=lambda design: int(design.n_countries),
    ),
    Figure(
        "distance of topic correlations without country means",
        lambda s: to_interval(_relate(s).without_country_means),
        count_units=lambda design: int(design.n_countries),
    ),
)
AGREEMENT_STUDY = Study("agreement", __name__, AGREEMENT_FIGURES, AGREEMENT_WORLDS, AGREEMENT_DESIGNS)


# --- sentences: named is what a report states, as judge 0 in studies of judges ----------------------------------


@lru_cache(maxsize=1)
def _test_structure(sample: AgreementSample) -> Structure:
    return compare_structure(sample.first, sample.survey, sample.country, sample.topic)


def state_structure(sample: AgreementSample) -> set[int]:
    """Whether the report says that the model relates topics as people do."""
    return {0} if _test_structure(sample).p_value <= SHARED_LEVEL else set()


def state_raw_structure(sample: AgreementSample) -> set[int]:
    """The same by the raw form alone."""
    return {0} if (_test_structure(sample).raw.p_value or 1.0) <= SHARED_LEVEL else set()


def state_recall(sample: AgreementSample) -> set[int]:
    """Whether the report cautions that the model is closer to people than knowing the population allows."""
    mae = crossed_jackknife(MAE, sample.first, sample.survey, sample.country, sample.topic)
    return {0} if mae.ci_high is not None and mae.ci_high < sampling_floor_of_mae(sample.standard_errors) else set()


def _draw_knowing(recited_share: float, design: Design, rng: np.random.Generator) -> AgreementSample:
    """A model that knows the population (0), or that recites the survey's table to two digits (1)."""
    sample = SampledPeople("knows the population", 1e-9).draw(design, rng)
    scores = sample.first + recited_share * (sample.survey - sample.first)
    return AgreementSample(
        sample.country,
        sample.topic,
        sample.survey,
        np.round(scores, 2) if recited_share else scores,
        sample.standard_errors,
        sample.in_second,
        sample.truths,
    )


def _related(kind: str, *, is_true: bool) -> Scenario:
    return Scenario(RelatedTopics(kind, kind).draw, frozenset({0} if is_true else ()))


SENTENCE_STUDIES = (
    PlantedStudy(
        "topics are related as people relate them",
        __name__,
        {
            "shuffled": _related("shuffled", is_true=False),
            "country effect": _related("country effect", is_true=False),
            "people and noise": _related("noisy", is_true=True),
        },
        state_structure,
        state_raw_structure,
        designs=AGREEMENT_DESIGNS[:2],
        min_named=0.85,
    ),
    PlantedStudy(
        "closer than knowing the population allows",
        __name__,
        {
            "knows the population": Scenario(partial(_draw_knowing, 0.0), frozenset()),
            "recites the table": Scenario(partial(_draw_knowing, 1.0), frozenset({0})),
        },
        state_recall,
        designs=AGREEMENT_DESIGNS,
    ),
)
"""How often a sentence is stated where it is false, and where it is true."""
