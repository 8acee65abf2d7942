"""The survey as a configuration wants it: respondents without an answer left out, counted as neutral, or filled in."""

from __future__ import annotations

from pathlib import Path

from auditor.config import NonresponseTreatment
from auditor.domain import Survey
from auditor.errors import SurveyError
from auditor.surveys.survey_facts import SurveyFacts, Treatment, apply_treatment, load_survey_facts


def apply_nonresponse(survey: Survey, nonresponse: NonresponseTreatment, source: str | Path) -> Survey:
    """The scores that an audit is compared with.

    Args:
        choice: `drop` and `bounds` leave the scores as the survey gives them; for `bounds` the two ends are tried now,
            since the report will need them.
        source: where the survey is, for the facts beside it.

    Raises:
        SurveyError: the survey cannot give what is wanted.
    """
    if nonresponse == "drop":
        return survey
    facts = load_survey_facts(source)
    if nonresponse == "bounds":
        for end in ("low", "high"):
            apply_treatment_to_all_cells(survey, end, facts)
        return survey
    return apply_treatment_to_all_cells(survey, nonresponse, facts)


def apply_treatment_to_all_cells(survey: Survey, treatment: Treatment, facts: SurveyFacts | None) -> Survey:
    """As `treated`, but no cell may lose its score: it would silently leave the audit.

    Raises:
        SurveyError: a cell has no score under that treatment.
    """
    treated = apply_treatment(survey, treatment, facts)
    lost_cell = next((cell for cell in survey.scores if cell not in treated.scores), None)
    if lost_cell is not None:
        raise SurveyError(
            f"{lost_cell.country} × {lost_cell.topic}: the survey's facts have no score under '{treatment}'.",
            "Import the official file again with `auditor surveys import`.",
        )
    return treated
