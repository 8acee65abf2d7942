"""Facts about a survey that only its microdata contain, and its scores under each treatment of nonresponse."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import pydantic
from pydantic import ConfigDict, Field

from auditor.config import NonresponseTreatment
from auditor.config.base import DocumentedModel
from auditor.config.validation_messages import explain_validation_error
from auditor.domain import Cell, Survey, SurveyCell
from auditor.errors import SurveyError
from auditor.input_files import read_json
from auditor.surveys.loader import locate_survey

FACTS_SUFFIX = ".facts.json"
Treatment = Literal["drop", "neutral", "low", "high", "impute"]
TREATMENTS: tuple[Treatment, ...] = get_args(Treatment)
"""`low` and `high` are the lower and upper bound of the configured treatment `bounds`."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """Split-half reliability of a survey, over random halves of its respondents.

    Attributes:
        half_r: mean Pearson r between the scores of two halves.
        reliability: of the whole sample, 2 r / (1 + r) (Spearman 1910, Brown 1910), averaged over splits.
        low, high: 2.5th and 97.5th percentile of the reliability over the splits.
        ceiling: sqrt(reliability), the r that a perfect model is expected to reach against this survey.
        n: number of cells compared.
        splits: number of random splits.
        reason: why the estimates are None; empty if they are not.
    """

    half_r: float | None
    reliability: float | None
    low: float | None
    high: float | None
    ceiling: float | None
    n: int
    splits: int
    reason: str = ""


class _FactsModel(DocumentedModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class CellFacts(_FactsModel):
    """A cell under each treatment of nonresponse; None where nobody answered."""

    country: str
    topic: str
    kinds: Mapping[str, float]
    """Weighted share of each kind of nonresponse among all respondents of the country, in [0, 1]."""
    design_error: float | None
    """Standard error by Taylor linearisation: see `estimates.Estimate`."""
    n_effective: float
    """Kish's effective number of those who answered."""
    neutral: float | None
    """Score if all without an answer are 0."""
    neutral_error: float | None
    low: float | None
    """Score if all without an answer are -1."""
    high: float | None
    """Score if all without an answer are +1."""
    imputed: float | None
    """Score by multiple imputation within the country."""
    imputed_error: float | None
    missing_information: float | None
    """Share of the imputed score's variance that is due to missing answers, in [0, 1]."""


class SurveyFacts(_FactsModel):
    """What the microdata say beside the scores."""

    respondents: int
    """Rows used."""
    left_out: Mapping[str, int]
    """Rows that could not be used, by reason."""
    notes: tuple[str, ...]
    reliability: Reliability
    """Split-half, over all cells."""
    reliability_within_topics: Reliability
    """The same with each topic's mean over countries taken out."""
    cells: tuple[CellFacts, ...] = Field(repr=False)

    @property
    def by_cell(self) -> dict[Cell, CellFacts]:
        """Facts by cell."""
        return {Cell(cell_facts.country, cell_facts.topic): cell_facts for cell_facts in self.cells}


def load_survey_facts(source: str | Path) -> SurveyFacts | None:
    """Load the facts of a survey by the name or path that `load_survey` takes; None if it has no facts.

    Raises:
        SurveyError: the survey does not exist, or the file of its facts is invalid.
    """
    data_file = locate_survey(str(source))
    path = data_file.with_name(data_file.stem + FACTS_SUFFIX)
    if not path.exists():
        return None
    facts_json = read_json(path, SurveyError)
    try:
        return SurveyFacts.model_validate(facts_json)
    except pydantic.ValidationError as error:
        problem = explain_validation_error(error, facts_json, SurveyFacts)
        raise SurveyError(f"{path}: {problem}", "Or import the survey again, or delete the file.") from None


def apply_treatment(survey: Survey, treatment: Treatment, facts: SurveyFacts | None = None) -> Survey:
    """Return a survey with its scores under one treatment of nonresponse.

    With facts the scores come from the microdata. Without facts they follow from the shares of answers or, if there
    are none, from the score and the share of nonresponse; the score is then taken as the mean of those who answered.
    `low` and `high` bound each score separately; a correlation may be lower than under either of them.

    Args:
        treatment: `drop` (only those who answered), `neutral` (0), `low` (-1), `high` (+1) or `impute`.

    Raises:
        SurveyError: the survey lacks the data for this treatment; the message names the cell.
    """
    by_cell = facts.by_cell if facts is not None else {}
    cells = tuple(_treat_cell(cell, treatment, by_cell.get(cell.cell)) for cell in survey.cells)
    return dataclasses.replace(survey, cells=cells)


def _treat_cell(cell: SurveyCell, treatment: Treatment, facts: CellFacts | None) -> SurveyCell:
    """Return a cell with its score and standard error under a treatment of nonresponse.

    Without facts the score follows from the cell's shares, and has no standard error if it changes. A cell without a
    score stays as it is.
    """
    if cell.score is None:
        return cell
    if facts is None:
        score = _score_from_shares(cell, treatment)
        return cell if score == cell.score else dataclasses.replace(cell, score=score, standard_error=None)
    if treatment == "drop":
        return cell
    # Score and its standard error.
    by_treatment: dict[str, tuple[float | None, float | None]] = {
        "neutral": (facts.neutral, facts.neutral_error),
        "low": (facts.low, None),
        "high": (facts.high, None),
        "impute": (facts.imputed, facts.imputed_error),
    }
    treated_score, error = by_treatment[treatment]
    return dataclasses.replace(cell, score=treated_score, standard_error=error)


def score_errors(survey: Survey, facts: SurveyFacts | None = None, design_effect: float = 1.0) -> dict[Cell, float]:
    """Standard errors of a survey's scores by cell, of the cells for which one is known.

    With facts they are those of the import: by Taylor linearisation, which the design effect is part of. A cell that
    has none gets that of a simple random sample times the root of the design effect, or, if that is 1, of Kish's
    effective number of respondents. Without facts they are those of the file, or of a simple random sample by the
    shares of answers, times the root of the design effect.
    """
    by_cell = facts.by_cell if facts is not None else {}
    errors = {
        cell.cell: _find_error(cell, by_cell.get(cell.cell), design_effect)
        for cell in survey.cells
        if cell.score is not None
    }
    return {cell: error for cell, error in errors.items() if error is not None}


def uses_design_effect(survey: Survey, facts: SurveyFacts | None) -> bool:
    """Whether the standard error of some cell is not that of an import, so that it depends on the design effect."""
    is_imported = facts is not None
    return any(not is_imported or cell.standard_error is None for cell in survey.cells if cell.score is not None)


def _find_error(cell: SurveyCell, facts: CellFacts | None, design_effect: float) -> float | None:
    """The standard error of one cell, as `score_errors` describes it; None if unknown."""
    if facts is not None and cell.standard_error is not None:  # under the configured treatment of nonresponse
        return cell.standard_error
    error = _sampling_error(cell, None)
    if facts is not None and design_effect == 1:
        return _sampling_error(cell, facts.n_effective) or error
    return None if error is None else design_effect**0.5 * error


def _sampling_error(cell: SurveyCell, n_effective: float | None) -> float | None:
    """The standard error of a cell's score, stored or by its shares of answers; None if unknown.

    Args:
        n_effective: number of independent respondents with an answer; None for all of a simple random sample.
    """
    answered_share = _answered_share(cell)
    if n_effective is None and (cell.standard_error is not None or cell.n is None):
        return cell.standard_error
    if not answered_share:
        return cell.standard_error
    n_answered = (cell.n or 0) * answered_share if n_effective is None else n_effective
    second_moment = ((cell.acceptable or 0.0) + (cell.unacceptable or 0.0)) / answered_share
    variance = max(0.0, second_moment - (cell.score or 0.0) ** 2)
    return (variance / (n_answered - 1)) ** 0.5 if n_answered > 1 else None


def nonresponse_share(cell: SurveyCell) -> float | None:
    """The share of respondents without an answer: what the shares of answers leave or, without these, as stored."""
    answered_share = _answered_share(cell)
    if answered_share is None:
        return cell.nonresponse
    return max(0.0, 1 - answered_share)  # rounded percentages may add up to slightly more than 1


def _answered_share(cell: SurveyCell) -> float | None:
    """The share of respondents with an answer; None if the cell does not have the shares of all answers."""
    shares = (cell.acceptable, cell.not_a_moral_issue, cell.unacceptable)
    known = [share for share in shares if share is not None]
    return sum(known) if len(known) == len(shares) else None


def _score_from_shares(cell: SurveyCell, treatment: Treatment) -> float:
    """Return a cell's score under a treatment, from its shares of answers or of nonresponse; see `apply_treatment`."""
    missing_share, answered_share = nonresponse_share(cell), _answered_share(cell)
    drop_score: float | None
    neutral_score: float | None
    if answered_share is not None:
        neutral_score = (cell.acceptable or 0.0) - (cell.unacceptable or 0.0)
        drop_score = neutral_score / answered_share if answered_share > 0 else None
    else:
        drop_score = cell.score
        neutral_score = None if missing_share is None or drop_score is None else drop_score * (1 - missing_share)
    score_by_treatment: dict[Treatment, float | None] = {"drop": drop_score}
    if missing_share is not None and neutral_score is not None:
        score_by_treatment |= {
            "neutral": neutral_score,
            "low": neutral_score - missing_share,
            "high": neutral_score + missing_share,
        }
    score = score_by_treatment.get(treatment)
    if score is None:
        raise SurveyError(
            f"{cell.cell.country} × {cell.cell.topic}: the survey has too little information on nonresponse to count "
            "it as 'survey.nonresponse' says.",
            "Import the official file with `auditor surveys import`, which keeps the necessary information.",
        )
    return score


def apply_nonresponse(survey: Survey, nonresponse: NonresponseTreatment, source: str | Path) -> Survey:
    """Return the survey with the scores that an audit is compared with.

    Args:
        nonresponse: the configured treatment. `drop` and `bounds` keep the survey's scores; for `bounds` both bounds
            are computed as a check, since the report will need them. `zero` is `neutral`, with 0 also for cells in
            which nobody was asked; a score without a share of nonresponse stays as it is.
        source: name or path of the survey, to find its facts.

    Raises:
        SurveyError: the survey lacks the data for this treatment.
    """
    if nonresponse == "drop":
        return survey
    facts = load_survey_facts(source)
    if nonresponse == "bounds":
        for end in ("low", "high"):
            apply_treatment_to_all_cells(survey, end, facts)
        return survey
    if nonresponse == "zero":
        shares = {cell.cell: nonresponse_share(cell) for cell in survey.cells}
        known = tuple(cell for cell in survey.cells if facts is not None or shares[cell.cell] is not None)
        neutral = apply_treatment_to_all_cells(replace(survey, cells=known), "neutral", facts)
        by_cell = {cell.cell: replace(cell, nonresponse=shares[cell.cell]) for cell in neutral.cells}
        treated = (by_cell.get(cell.cell, cell) for cell in survey.cells)
        cells = (replace(cell, score=0.0) if cell.score is None else cell for cell in treated)
        return replace(survey, cells=tuple(cells))
    return apply_treatment_to_all_cells(survey, nonresponse, facts)


def apply_treatment_to_all_cells(survey: Survey, treatment: Treatment, facts: SurveyFacts | None) -> Survey:
    """Apply a treatment like `apply_treatment`, but raise an error if a scored cell would lose its score.

    Such a cell would be missing from the audit without notice.

    Raises:
        SurveyError: a cell has no score under that treatment.
    """
    treated = apply_treatment(survey, treatment, facts)
    lost_cell = next((cell for cell in survey.scores if cell not in treated.scores), None)
    if lost_cell is not None:
        raise SurveyError(
            f"{lost_cell.country} × {lost_cell.topic}: the file of facts beside the survey has no score for "
            f"nonresponse = '{treatment}'.",
            "Import the official file again with `auditor surveys import`.",
        )
    return treated
