"""Load what a config asks about: the cells of a survey, or the items of a task."""

from __future__ import annotations

from dataclasses import replace

from auditor.config import AuditConfig
from auditor.config.installed_probes import load_probe
from auditor.config.sections import SurveySection
from auditor.domain import Survey
from auditor.errors import SurveyError
from auditor.probe_interface import ProbeAudit

EMPTY_SURVEY = Survey(name="", title="", source="", wording="", scale=("", ""), cells=())


def load_planned_survey(config: AuditConfig) -> Survey:
    """The survey that a config asks about: its countries and topics, and of these at most `limits.max_cells` cells.

    Regions, native languages, the treatment of nonresponse, and rephrased questions are set as configured.

    A task is returned as a survey of its items. Without either, the survey is empty.

    Raises:
        ConfigError, SurveyError, ImportFileError: the survey or task cannot be used as configured.
    """
    from auditor.surveys import limit_cells
    from auditor.surveys.selection import add_donors

    survey, whole_survey = _load_configured_survey(config)
    max_cells = config.limits.max_cells
    planned_survey = survey if max_cells is None else limit_cells(survey, max_cells, config.seed)
    return planned_survey if whole_survey is None else add_donors(planned_survey, whole_survey)


def describe_survey_problems(config: AuditConfig, survey: Survey) -> str:
    """Say which countries of a config's survey file are unknown; empty if there are none, or it is no survey."""
    from auditor.surveys.checks import describe_unknown_countries  # loads difflib

    return "" if config.survey is None else describe_unknown_countries(survey)


def _load_configured_survey(config: AuditConfig) -> tuple[Survey, Survey | None]:
    """The survey with all cells of its countries and topics, the task with all its items, or an empty survey.

    The second survey is the whole file, in which similar countries are looked for; None without a survey.
    """
    from auditor.agents.localization import check_languages, used_languages  # these modules need 0.2 s in all
    from auditor.agents.rephrasing import add_wordings, apply_rephrasing
    from auditor.surveys import apply_nonresponse, group_countries, load_survey, select_cells
    from auditor.surveys.languages import native_languages
    from auditor.tasks import load_task, survey_from_task

    if config.task is not None:
        return survey_from_task(load_task(config.task)), None
    section = config.survey
    if section is None:
        return EMPTY_SURVEY, None
    survey = group_countries(load_survey(section.source), section.regions)
    selected_survey = select_cells(survey, section.countries, section.topics)
    selected_survey = replace(
        selected_survey, native={country: native_languages(country) for country in selected_survey.countries}
    )
    selected_survey = apply_nonresponse(selected_survey, section.nonresponse, section.source)
    planned_survey = apply_rephrasing(selected_survey, section.rephrase, used_languages(config, selected_survey))
    planned_survey = add_wordings(
        planned_survey, section, config.probes.direct, used_languages(config, selected_survey)
    )
    check_languages(config, planned_survey)
    return planned_survey, _treat_like(survey, section)


def _treat_like(survey: Survey, section: SurveySection) -> Survey:
    """The whole survey under the configured treatment of nonresponse; without the cells that lack the data for it."""
    from auditor.surveys import apply_nonresponse

    try:
        return apply_nonresponse(
            replace(survey, cells=tuple(cell for cell in survey.cells if cell.score is not None)),
            section.nonresponse,
            section.source,
        )
    except SurveyError:  # of cells that the audit does not use
        return replace(survey, cells=())


def check_probe_input(config: AuditConfig, survey: Survey) -> list[str]:
    """Check the files of all probes before the first call; returns what they plan, in words.

    Raises:
        ConfigError, ImportFileError: something is missing or invalid; the message names it.
    """
    plans = [
        load_probe(name).call_optional("check_input", ProbeAudit(settings, config, survey), returns=str)
        for name, settings in config.probes.with_stage.items()
    ]
    return [plan for plan in plans if plan is not None]


def list_unmeasurable(config: AuditConfig, survey: Survey) -> list[str]:
    """List what probes cannot measure in an audit, in sentences."""
    return [
        sentence
        for name, settings in config.probes.with_stage.items()
        for sentence in load_probe(name).call_each("unmeasurable", ProbeAudit(settings, config, survey), item=str)
    ]
