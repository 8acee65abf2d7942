"""What a config asks about and needs: cells or items, text encoders, and simulated models."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from auditor.config import SIMULATED, AuditConfig, ModelSection
from auditor.config.installed_probes import load_built_in, load_probe
from auditor.config.sections import SurveySection
from auditor.domain import Answer, Call, Survey
from auditor.errors import AuditorError, SurveyError
from auditor.lazy_imports import import_when_used
from auditor.probe_interface import ProbeAudit
from auditor.surveys import apply_nonresponse, group_countries, limit_cells, load_survey, region_of, select_cells

if TYPE_CHECKING:
    from auditor.agents.run_context import ModelClient, TextEncoder
    from auditor.models.simulated import SimulatedDispatcher, World

if not TYPE_CHECKING:
    localization = import_when_used("auditor.agents.localization")
    embeddings = import_when_used("auditor.models.embeddings")
    simulated = import_when_used("auditor.models.simulated")
    checks = import_when_used("auditor.surveys.checks")
    countries = import_when_used("auditor.surveys.countries")
    selection = import_when_used("auditor.surveys.selection")
    tasks = import_when_used("auditor.tasks")
else:
    from auditor import tasks
    from auditor.agents import localization
    from auditor.models import embeddings, simulated
    from auditor.surveys import checks, countries, selection


EMPTY_SURVEY = Survey(name="", title="", source="", wording="", scale=("", ""), cells=())


def load_planned_survey(config: AuditConfig) -> Survey:
    """The survey that a config asks about: its countries and topics, and of these at most `limits.max_cells` cells.

    Regions, native languages, the treatment of nonresponse, and rephrased questions are set as configured.

    A task is returned as a survey of its items. Without either, the survey is empty.

    Raises:
        ConfigError, SurveyError, ImportFileError: the survey or task cannot be used as configured.
    """
    survey, whole_survey = _load_configured_survey(config)
    max_cells = config.limits.max_cells
    planned_survey = survey if max_cells is None else limit_cells(survey, max_cells, config.seed)
    return planned_survey if whole_survey is None else selection.add_donors(planned_survey, whole_survey)


def describe_survey_problems(config: AuditConfig, survey: Survey) -> str:
    """Say which countries of a config's survey file are unknown; empty if there are none, or it is no survey."""
    return "" if config.survey is None else checks.describe_unknown_countries(survey)


def _load_configured_survey(config: AuditConfig) -> tuple[Survey, Survey | None]:
    """The survey with all cells of its countries and topics, the task with all its items, or an empty survey.

    The second survey is the whole file, in which similar countries are looked for; None without a survey.
    """
    if config.task is not None:
        return tasks.survey_from_task(tasks.load_task(config.task)), None
    section = config.survey
    if section is None:
        return EMPTY_SURVEY, None
    survey = group_countries(load_survey(section.source), section.regions)
    selected_survey = select_cells(survey, section.countries, section.topics)
    selected_survey = replace(
        selected_survey, native={country: countries.native_languages(country) for country in selected_survey.countries}
    )
    selected_survey = apply_nonresponse(selected_survey, section.nonresponse, section.source)
    planned_survey = localization.apply_rephrasing(
        selected_survey, section.rephrase, localization.used_languages(config, selected_survey)
    )
    planned_survey = localization.add_wordings(
        planned_survey, section, config.probes.direct, localization.used_languages(config, selected_survey)
    )
    localization.check_languages(config, planned_survey)
    return planned_survey, _treat_like(survey, section)


def _treat_like(survey: Survey, section: SurveySection) -> Survey:
    """The whole survey under the configured treatment of nonresponse; without the cells that lack the data for it."""
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


NO_ENCODER = "none"
"""Name in the config that stands for no encoder."""


def probe_encoder_loaders(config: AuditConfig) -> dict[str, Callable[[], TextEncoder]]:
    """Functions that load the text encoders of probes once, by the probe's name, of probes that encode texts.

    Raises:
        AuditorError: an encoder cannot be used.
    """
    loaders = {}
    for name in config.probes.stages:
        if (encoder := load_built_in(name).find_encoder(config)) is not None:
            encoder.check()
            loaders[name] = encoder.load
    return loaders


ENCODER_ADVICE = 'Only self-consistency needs this encoder. To leave it out: embedding = { model = "none" }'


def compares_answers(config: AuditConfig) -> bool:
    """Whether an encoder compares an audit's direct answers."""
    return config.embedding.model != NO_ENCODER and config.probes.direct is not None and config.direct.samples > 1


def direct_encoder_loader(config: AuditConfig) -> Callable[[], TextEncoder] | None:
    """A function that loads the text encoder that compares direct answers; None if no answers are compared.

    None is needed without the direct probe, with fewer than two samples per cell, or with the model "none". Whether
    the encoder can be used is checked at once.

    Raises:
        AuditorError: it cannot be used; the message says how to do without.
    """
    if not compares_answers(config):
        return None

    try:
        embeddings.check_encoder(config.embedding.model)
    except AuditorError as error:
        raise type(error)(error.message, f"{error.how_to_fix} {ENCODER_ADVICE}".strip()) from None
    return functools.cache(lambda: embeddings.load_encoder(config.embedding.model))


class EncoderFirstClient:
    """Passes calls on once the encoders are loaded that will compare the answers: none is paid for in vain.

    They are loaded when the first call comes, so that a run without calls loads none.
    """

    def __init__(self, client: ModelClient, loaders: Sequence[Callable[[], TextEncoder]]) -> None:
        """Wrap a client.

        Args:
            client: sends the calls.
            loaders: each loads an encoder, and returns the same one when it is called again.
        """
        self._client, self._loaders = client, loaders
        self._loading: asyncio.Task[None] | None = None

    async def complete(self, call: Call) -> Answer:
        """Load the encoders before the first call, and pass the call on.

        Raises:
            ModelSetupError: an encoder cannot be loaded; nothing is sent.
        """
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._load))
        await asyncio.shield(self._loading)
        return await self._client.complete(call)

    def _load(self) -> None:
        """Load all encoders."""
        for load in self._loaders:
            load()


WESTERN_REGION = "Western"


def bind_simulated_models(config: AuditConfig, survey: Survey) -> AuditConfig:
    """Copy a configuration with the survey and the seed among its simulated models' parameters, as part of each call.

    Their answers depend on both. Without this, answers for one survey would be taken from the ledger for another.
    A configuration without simulated models is returned unchanged.
    """
    if not config.is_simulated:
        return config

    world_id = _create_world(config, survey).id

    def bind(model: ModelSection) -> ModelSection:
        """Copy a simulated model's section with the parameter; one with recorded answers stays as it is."""
        if model.provider is not SIMULATED:
            return model
        return model.model_copy(update={"params": {**model.params, simulated.WORLD_PARAM: world_id}})

    judges = config.judges if config.judges == "peers" else [bind(judge) for judge in config.judges]
    return config.model_copy(update={"models": [bind(model) for model in config.models], "judges": judges})


def create_simulated_dispatcher(config: AuditConfig, survey: Survey) -> SimulatedDispatcher:
    """Create the dispatcher of an audit whose models are all simulated."""
    return simulated.SimulatedDispatcher(_create_world(config, survey))


def _create_world(config: AuditConfig, survey: Survey) -> World:
    """What the simulated models of an audit know."""
    western_countries = {country for country in survey.countries if region_of(country) == WESTERN_REGION}
    audits = {name: ProbeAudit(settings, config, survey) for name, settings in config.probes.stages.items()}
    opinions = (load_built_in(name).load_people_opinions(audit) for name, audit in audits.items())
    return simulated.World(
        survey, western_countries, config.seed, next((shares for shares in opinions if shares is not None), None)
    )
