"""What a config asks about: the cells of a survey, or the items of a task."""

from __future__ import annotations

from dataclasses import replace

from auditor.config import AuditConfig
from auditor.domain import Cell, Survey

EMPTY_SURVEY = Survey(name="", title="", source="", wording="", scale=("", ""), cells=())


def load_planned_survey(config: AuditConfig) -> Survey:
    """The part of the survey that a config asks about, in its groups and words, or its task; else without cells.

    Raises:
        ConfigError, SurveyError, ImportFileError: it cannot be asked about so; the message names what is missing.
    """
    from auditor.agents.localization import check_languages, used_languages
    from auditor.agents.rephrasing import apply_rephrasing
    from auditor.surveys import apply_nonresponse, group_countries, load_survey, select_cells
    from auditor.surveys.languages import native_languages
    from auditor.tasks import load_task, survey_from_task

    if config.task is not None:
        return survey_from_task(load_task(config.task))
    section = config.survey
    if section is None:
        return EMPTY_SURVEY
    survey = group_countries(load_survey(section.source), section.regions)
    chosen = select_cells(survey, section.countries, section.topics)
    chosen = replace(chosen, native={country: native_languages(country) for country in chosen.countries})
    chosen = apply_nonresponse(chosen, section.nonresponse, section.source)
    asked = apply_rephrasing(chosen, section.rephrase, used_languages(config, chosen))
    check_languages(config, asked)
    return asked


def planned_cells(survey: Survey) -> list[Cell]:
    """The cells that models are asked about: those that people were asked about, or a task's items."""
    return list(survey.asked_cells)
