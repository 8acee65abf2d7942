"""Convert an official file of microdata to a survey: weighted means with their standard errors and nonresponse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from auditor.domain import SCORE_MAX, SCORE_MIN, Cell, Survey, SurveyCell
from auditor.errors import SurveyError
from auditor.surveys.answer_codes import ANSWERED
from auditor.surveys.description import find_topic_families, make_questions, topic_words
from auditor.surveys.distributions import SurveyDistributions
from auditor.surveys.estimates import (
    PooledEstimate,
    compute_imputed_means,
    compute_neutral_mean,
    compute_weighted_mean,
    nonresponse_bounds,
    weighted_share,
)
from auditor.surveys.histograms import compute_distributions
from auditor.surveys.mapping import SurveyMapping, load_mapping
from auditor.surveys.microdata import FileReading, Microdata, read_microdata
from auditor.surveys.reliability import DEFAULT_SPLITS, compute_half_scores, compute_reliability
from auditor.surveys.survey_facts import CellFacts, SurveyFacts

DEFAULT_IMPUTATIONS = 20
SHARE_CHOICES = ("acceptable", "not_a_moral_issue", "unacceptable")


@dataclass(frozen=True, slots=True)
class ImportedSurvey:
    """A survey made from an official file, and the facts that only its microdata contain."""

    survey: Survey
    facts: SurveyFacts
    distributions: SurveyDistributions | None
    """Shares of answers; None where all answers have one score."""
    reading: FileReading | None = None
    """How the columns of the file were read."""


def import_survey(
    path: str | Path,
    mapping: str | Path = "wvs7",
    name: str | None = None,
    seed: int = 0,
    n_imputations: int = DEFAULT_IMPUTATIONS,
    n_splits: int = DEFAULT_SPLITS,
) -> ImportedSurvey:
    """Convert an official file, as downloaded, to a survey.

    Scores are weighted means over the respondents who answered; the facts have the scores under each other treatment
    of nonresponse. Only the columns that the mapping names are read.

    Args:
        path: a `.csv` or SPSS `.sav` file.
        mapping: a built-in mapping's name (`builtin_mappings()`), or path of a mapping file.
        name: the survey's name; by default the file's name without its suffix.
        seed: seed of imputation and split halves.
        n_imputations: number of imputations for the treatment `impute`; 0 omits it.
        n_splits: number of random splits for the reliability.

    Raises:
        SurveyError: the mapping does not exist, is invalid, or a draft.
        ImportFileError: the file is invalid; the message names row and column.
    """
    path, survey_mapping = Path(path), load_mapping(mapping)
    if survey_mapping.draft:
        raise SurveyError(
            f"{mapping}: the mapping is a draft.", "Check every line, then remove the line 'draft = true'."
        )
    microdata = read_microdata(path, survey_mapping)
    cells_and_facts = list(
        _build_cells(microdata, _score_choices(survey_mapping), np.random.default_rng(seed), n_imputations)
    )
    halves = compute_half_scores(microdata, seed, n_splits)
    facts = SurveyFacts(
        respondents=microdata.weights.size,
        left_out=microdata.excluded_rows,
        notes=microdata.notes,
        reliability=compute_reliability(halves),
        reliability_within_topics=compute_reliability(halves, within_topics=True),
        cells=tuple(cell_facts for _, cell_facts in cells_and_facts),
    )
    return ImportedSurvey(
        _build_survey(name or path.stem, survey_mapping, tuple(cell for cell, _ in cells_and_facts)),
        facts,
        compute_distributions(microdata, survey_mapping, seed, n_splits),
        microdata.reading,
    )


def _build_survey(name: str, mapping: SurveyMapping, cells: tuple[SurveyCell, ...]) -> Survey:
    """Return the survey with the texts of the mapping, the given cells, and the words that reveal each topic."""
    return Survey(
        name=name,
        title=mapping.title,
        source=mapping.source,
        wording=mapping.wording,
        scale=mapping.scale,
        cells=cells,
        words={topic: topic_words(topic, mapping) for topic in mapping.topic_by_column.values()},
        topic_families=find_topic_families(mapping.topic_by_column.values(), mapping),
        topic_questions=make_questions(mapping, mapping.own_questions),
    )


def _score_choices(mapping: SurveyMapping) -> list[dict[str, float]]:
    """For each topic the score by name of the answers that give the survey's shares; empty for a numeric scale."""
    choices = [mapping.for_column(column).choices or {} for column in mapping.topics]
    return [{name: of_topic[name].score for name in SHARE_CHOICES if name in of_topic} for of_topic in choices]


def _build_cells(
    microdata: Microdata, choice_scores: Sequence[Mapping[str, float]], rng: np.random.Generator, n_imputations: int
) -> Iterator[tuple[SurveyCell, CellFacts]]:
    """Yield each country x topic cell with its facts."""
    # By kind of nonresponse, whether the question was asked. The last element is for ANSWERED, which is -1 as an index.
    was_asked = np.array([*microdata.kind_was_asked, True])
    for country, start, end in zip(
        microdata.countries, microdata.country_offsets[:-1], microdata.country_offsets[1:], strict=True
    ):
        country_rows = slice(start, end)
        asked = was_asked[microdata.kind_index[country_rows]]
        design = microdata.designs.get(country)
        imputed = compute_imputed_means(
            microdata.answers[country_rows], asked, microdata.weights[country_rows], rng, n_imputations, design
        )
        for topic_index, topic in enumerate(microdata.topics):
            yield _build_cell(
                microdata, choice_scores[topic_index], country_rows, topic_index, Cell(country, topic),
                asked[:, topic_index], imputed[topic_index],
            )  # fmt: skip


def _build_cell(
    microdata: Microdata,
    choice_scores: Mapping[str, float],
    country_rows: slice,
    topic_index: int,
    cell: Cell,
    asked: np.ndarray[tuple[int], np.dtype[np.bool_]],
    imputed_mean: PooledEstimate,
) -> tuple[SurveyCell, CellFacts]:
    """Estimate one cell of a country and topic; return its published figures and its facts.

    Args:
        choice_scores: score of each answer whose share the survey has.
        country_rows: the country's rows of `microdata`.
        asked: shape (respondents of the country,), whether each was asked the question.
        imputed_mean: the score of this cell by imputation.
    """
    all_weights, kind_index, answers = (
        microdata.weights[country_rows],
        microdata.kind_index[country_rows, topic_index],
        microdata.answers[country_rows, topic_index],
    )
    asked_answers, asked_weights = answers[asked], all_weights[asked]
    design = microdata.designs.get(cell.country)
    asked_design = design.select(asked) if design else None
    score, neutral, bounds = (
        compute_weighted_mean(asked_answers, asked_weights, asked_design),
        compute_neutral_mean(asked_answers, asked_weights, asked_design),
        nonresponse_bounds(asked_answers, asked_weights),
    )
    shares = {
        choice: weighted_share(asked_answers == choice_score, asked_weights)
        for choice, choice_score in choice_scores.items()
    }
    kind_shares = {
        name: weighted_share(kind_index == kind_position, all_weights) or 0.0
        for kind_position, name in enumerate(microdata.kinds)
    }
    has_score = score.mean is not None
    return (
        SurveyCell(
            cell=cell,
            score=_clip_to_scale(score.mean),
            n=score.n,
            standard_error=score.standard_error,
            nonresponse=weighted_share(kind_index[asked] != ANSWERED, asked_weights),
            **(shares if has_score else {}),
        ),
        CellFacts(
            country=cell.country,
            topic=cell.topic,
            kinds=kind_shares,
            design_error=score.standard_error,
            n_effective=score.n_effective,
            neutral=_clip_to_scale(neutral.mean),
            neutral_error=neutral.standard_error,
            low=_clip_to_scale(bounds[0]) if bounds else None,  # all missing answers at -1
            high=_clip_to_scale(bounds[1]) if bounds else None,  # all missing answers at +1
            imputed=_clip_to_scale(imputed_mean.mean),
            imputed_error=imputed_mean.standard_error,
            missing_information=imputed_mean.missing_information,
        ),
    )


def _clip_to_scale(score: float | None) -> float | None:
    """Clip a score to the scale: rounding errors may push a mean of equal answers slightly beyond its end."""
    return None if score is None else min(SCORE_MAX, max(SCORE_MIN, score))
