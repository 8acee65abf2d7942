"""Experiments that ask an audit's judges more: run on a finished audit, with its own config and ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

from auditor import bootstrap
from auditor.errors import UsageError
from auditor.run import ask_models, storage_url
from auditor.storage import audits
from auditor.storage.database import open_database, run_lock

if TYPE_CHECKING:
    from auditor.agents.run_context import Context, Progress

Experiment = Literal["planted", "bias"]


def run_experiment(
    name: str,
    experiment: Experiment,
    sample: int,
    *,
    storage: str | None = None,
    progress: Progress | None = None,
    signals: bool = False,
) -> None:
    """Ask the judges of an audit what an experiment asks; what is recorded is never asked again.

    Args:
        name: of an audit that was run.
        experiment: `planted` plants known faults; `bias` shows two sides in both orders, and judges their own traces.
        sample: traces for each fault, of each judge, or conflicts, at most.
        storage: database URL.
        progress: is told of every answer.
        signals: as of `run_audit`.
        storage: database URL.

    Raises:
        UsageError: the audit was imported, or has no judges.
        ConfigError, ModelSetupError, StorageError: what is wrong, and how to mend it.
    """
    bootstrap.prepare()
    from auditor.config import AuditConfig

    with open_database(storage_url(storage), create=False) as db:
        audit = audits.get(db, name)
        if audit.config is None:
            raise UsageError(f"the audit '{name}' was imported, so it has no judges to ask.", "Run one from a config.")
        if audits.survey_of(db, audit).task is not None:
            raise UsageError(
                f"the audit '{name}' is of a task, and faults are planted in traces on a survey.",
                "Its report says already what judges make of right and of wrong answers.",
            )
        config = AuditConfig.model_validate_json(audit.config)
        if not config.judge_models or not config.probes.direct:
            raise UsageError(f"the audit '{name}' has no judges.", "Give its config some, and run it again.")
        survey = audits.survey_of(db, audit)

        async def ask(context: Context) -> None:
            for part in _parts(experiment):
                await part(context, sample)

        with run_lock(db, name):
            ask_models(ask, config, survey, audit, db, progress=progress, signals=signals)


def _parts(experiment: Experiment) -> tuple[Callable[[Context, int], Awaitable[None]], ...]:
    from auditor.agents import judge_experiments

    return (
        (judge_experiments.planted,)
        if experiment == "planted"
        else (judge_experiments.contests, judge_experiments.own_traces)
    )
