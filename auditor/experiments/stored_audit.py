"""What every experiment receives and returns, and the stored audit that it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, TypeVar

import typer

from auditor import bootstrap
from auditor.config import AuditConfig, load_stored_config
from auditor.errors import UsageError
from auditor.reports.data.report_source import ReportSource, load_source, require_survey_audit
from auditor.run import open_audit, open_stored_database, resolve_storage_url, run_with_models
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database, run_lock

if TYPE_CHECKING:
    from auditor.agents.run_context import ProgressReporter, RunContext
    from auditor.reports.data.panel.schema import PanelReport
    from auditor.reports.document import Document


AuditArgument: TypeAlias = Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name, or its config file.")]
AskOption: TypeAlias = Annotated[
    bool, typer.Option("--ask", help="Ask models for the answers that are not recorded yet; this may cost money.")
]


def _open_no_progress(**_: bool) -> AbstractContextManager[None]:
    """Open nothing: no one watches the calls."""
    return nullcontext()


def _show_nothing(_message: str) -> None:
    """Drop the message: no one waits for it."""


@dataclass(frozen=True)
class ExperimentContext:
    """Where an experiment reads, and what follows its calls to models.

    Attributes:
        storage: database URL; AUDITOR_STORAGE or `sqlite:///auditor.db` if None.
        open_progress: opens what receives every answer. With `prints_cost=True`, it prints the number of calls and
            their cost at the end.
        print_message: shows a message to the person who waits, such as the expected cost before anything is asked.
        handles_signals: whether SIGINT, SIGTERM and SIGHUP stop calls with everything saved, as in `run_audit`.
    """

    storage: str | None = None
    open_progress: Callable[..., AbstractContextManager[ProgressReporter | None]] = _open_no_progress
    print_message: Callable[[str], None] = _show_nothing
    handles_signals: bool = False

    @property
    def url(self) -> str:
        """URL of the database."""
        return resolve_storage_url(self.storage)

    def open_database(self) -> Database:
        """Open the database, which must exist; UsageError or StorageError if it cannot be opened."""
        return open_stored_database(self.storage)


@dataclass(frozen=True)
class ExperimentResult:
    """The result of an experiment.

    Attributes:
        data: what `--json` prints: a `ReportModel`, or a list or dict of them.
        document: what a page and the terminal show.
    """

    data: Any
    document: Document


Experiment: TypeAlias = Callable[..., ExperimentResult]
"""A function of an `ExperimentContext`, and of arguments and options with their typer annotations."""


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
