"""Check that a stored audit has what an experiment needs, read it, and ask its models further questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from auditor import bootstrap
from auditor.config import AuditConfig, load_stored_config
from auditor.errors import UsageError
from auditor.experiments.declaration import ExperimentContext
from auditor.reports.data.report_source import ReportSource, require_survey_audit
from auditor.reports.data.source_loading import load_source
from auditor.run import open_audit, run_with_models
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database, run_lock

if TYPE_CHECKING:
    from auditor.agents.run_context import RunContext
    from auditor.reports.data.panel.schema import PanelReport

T = TypeVar("T")


class Requirement(NamedTuple):
    """What an experiment needs of an audit: a test of its records and config, and the error if it fails."""

    is_met: Callable[[Database, Audit, AuditConfig], object]
    problem: str
    how_to_fix: str


DIRECT_SAMPLES = Requirement(
    lambda _db, _audit, config: config.probes.direct, "has no direct samples", "Name one that asked for direct scores."
)
EQUAL_SAMPLES = Requirement(
    lambda _db, _audit, config: not config.direct.is_open_ended,
    "stopped asking early",
    "Name one without tolerance and target_width.",
)
SURVEY = Requirement(
    lambda _db, _audit, config: config.task is None,
    "has a task instead of a survey",
    "Name one of a survey.",
)
ONE_LANGUAGE = Requirement(
    lambda _db, _audit, config: len(config.languages) == 1,
    "was asked in several languages",
    "Name one in one language.",
)
JUDGES = Requirement(
    lambda _db, _audit, config: config.judge_models and config.probes.direct,
    "has no judges to ask",
    "Name one that was run with `judges` in its config.",
)


def require_config(db: Database, audit: Audit, *requirements: Requirement) -> AuditConfig:
    """The config of an audit; UsageError for the first requirement that it fails. An imported audit fails all."""
    config = load_stored_config(audit.config)
    for requirement in requirements:
        if config is None or not requirement.is_met(db, audit, config):
            raise UsageError(f"audit '{audit.name}' {requirement.problem}.", requirement.how_to_fix)
    assert config is not None
    return config


def load_survey_source(db: Database, audit_name: str, experiment: str) -> ReportSource:
    """Read all records of an audit of a survey; UsageError, which names the experiment, if it is of a task."""
    source = load_source(db, audit_name)
    require_survey_audit(audit_name, source.survey, f"the experiment `{experiment}`")
    return source


def ask_models(
    context: ExperimentContext,
    audit_name: str,
    requirements: tuple[Requirement, ...],
    ask: Callable[[RunContext], Awaitable[T]],
    *,
    prints_cost: bool = False,
) -> T:
    """Ask the models of a stored audit, while no other process runs it; recorded calls are not repeated.

    Args:
        ask: awaits the answers it needs, given the context of the run; what it returns is returned.
        prints_cost: whether the number of calls and their cost are printed.

    Raises:
        ConfigError, ModelSetupError, StorageError, UsageError: with the problem and how to fix it.
        RunInterrupted: stopped by a signal, if the context handles them.
    """
    bootstrap.prepare_environment()
    with context.open_database() as db:
        audit = audits.get_audit(db, audit_name)
        config, survey = require_config(db, audit, *requirements), audits.load_audit_survey(db, audit)
        with run_lock(db, audit_name), context.open_progress(prints_cost=prints_cost) as progress:
            return run_with_models(ask, config, survey, audit, db, progress=progress, signals=context.handles_signals)


def ask_judges(
    context: ExperimentContext,
    audit_name: str,
    sample_size: int,
    *steps: Callable[[RunContext, int], Awaitable[None]],
) -> PanelReport:
    """Ask the judges of an audit further questions, and return the report's part on the panel.

    Args:
        sample_size: largest number of traces, or of conflicts, in each step.
        steps: each sends questions and saves the answers, given the context of the run and the sample size.
    """

    async def ask(run_context: RunContext) -> None:
        for run_step in steps:
            await run_step(run_context, sample_size)

    ask_models(context, audit_name, (JUDGES,), ask, prints_cost=True)
    return open_audit(audit_name, storage=context.storage).report().panel
