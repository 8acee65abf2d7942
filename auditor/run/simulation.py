"""Simulated models of an audit: bind them to its survey and its seed, and create their dispatcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.config import SIMULATED, AuditConfig, ModelSection
from auditor.config.installed_probes import load_built_in
from auditor.domain import Survey
from auditor.probe_interface import ProbeAudit
from auditor.surveys import region_of

if TYPE_CHECKING:
    from auditor.models.simulated.dispatcher import SimulatedDispatcher
    from auditor.models.simulated.world import PeopleOpinions, World

WESTERN_REGION = "Western"


def bind_simulated_models(config: AuditConfig, survey: Survey) -> AuditConfig:
    """Copy a configuration with the survey and the seed among its simulated models' parameters, as part of each call.

    Their answers depend on both. Without this, answers for one survey would be taken from the ledger for another.
    A configuration without simulated models is returned unchanged.
    """
    if not config.is_simulated:
        return config
    from auditor.models.simulated.world import WORLD_PARAM

    world_id = _create_world(config, survey).id

    def bind(model: ModelSection) -> ModelSection:
        """Copy a simulated model's section with the parameter; one with recorded answers stays as it is."""
        if model.provider is not SIMULATED:
            return model
        return model.model_copy(update={"params": {**model.params, WORLD_PARAM: world_id}})

    judges = config.judges if config.judges == "peers" else [bind(judge) for judge in config.judges]
    return config.model_copy(update={"models": [bind(model) for model in config.models], "judges": judges})


def create_simulated_dispatcher(config: AuditConfig, survey: Survey) -> SimulatedDispatcher:
    """Create the dispatcher of an audit whose models are all simulated."""
    from auditor.models.simulated.dispatcher import SimulatedDispatcher

    return SimulatedDispatcher(_create_world(config, survey))


def _create_world(config: AuditConfig, survey: Survey) -> World:
    """What the simulated models of an audit know."""
    from auditor.models.simulated.world import World

    western_countries = {country for country in survey.countries if region_of(country) == WESTERN_REGION}
    return World(survey, western_countries, config.seed, _load_opinions(config, survey))


def _load_opinions(config: AuditConfig, survey: Survey) -> PeopleOpinions | None:
    """The shares of people's answers; None without a probe that asks about them."""
    audits = {name: ProbeAudit(settings, config, survey) for name, settings in config.probes.stages.items()}
    opinions = (load_built_in(name).load_people_opinions(audit) for name, audit in audits.items())
    return next((shares for shares in opinions if shares is not None), None)
