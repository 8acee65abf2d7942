"""Apply the configured treatment of nonresponse to a survey: drop, neutral, zero, impute, or bounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from auditor.config import NonresponseTreatment
from auditor.domain import Survey
from auditor.errors import SurveyError
from auditor.surveys.survey_facts import (
    SurveyFacts,
    Treatment,
    apply_treatment,
    load_survey_facts,
    nonresponse_share,
)


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
        return _fill_with_zero(survey, facts)
    return apply_treatment_to_all_cells(survey, nonresponse, facts)


def _fill_with_zero(survey: Survey, facts: SurveyFacts | None) -> Survey:
    """Return the survey with 0 for every missing answer that it says something about."""
    shares = {cell.cell: nonresponse_share(cell) for cell in survey.cells}
    known = tuple(cell for cell in survey.cells if facts is not None or shares[cell.cell] is not None)
    neutral = apply_treatment_to_all_cells(replace(survey, cells=known), "neutral", facts)
    by_cell = {cell.cell: replace(cell, nonresponse=shares[cell.cell]) for cell in neutral.cells}
    treated = (by_cell.get(cell.cell, cell) for cell in survey.cells)
    cells = (replace(cell, score=0.0) if cell.score is None else cell for cell in treated)
    return replace(survey, cells=tuple(cells))


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
