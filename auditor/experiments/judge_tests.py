"""Experiments that ask an audit's judges further questions: on a finished audit, with its own config and ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

from auditor import bootstrap
from auditor.agents import judge_experiments
from auditor.config import load_stored_config
from auditor.errors import UsageError
from auditor.run import resolve_storage_url, run_with_models
from auditor.storage import audits
from auditor.storage.database import open_database, run_lock

if TYPE_CHECKING:
    from auditor.agents.run_context import ProgressReporter, RunContext

JudgeExperiment = Literal["planted", "bias"]


def run_judge_experiment(
    audit_name: str,
    experiment: JudgeExperiment,
    sample_size: int,
    *,
    storage: str | None = None,
    progress: ProgressReporter | None = None,
    signals: bool = False,
) -> None:
    """Ask the judges of an audit the questions of an experiment; recorded calls are not repeated.

    Args:
        audit_name: of an audit that was run.
        experiment: `planted` injects known faults; `bias` shows two sides in both orders, pads traces, and has judges
            rate their own traces.
        sample_size: most traces per fault (`planted`), or most conflicts, padded traces, and own traces per judge
            (`bias`).
        storage: database URL.
        progress: receives every answer.
        signals: whether SIGINT, SIGTERM and SIGHUP stop the experiment with everything saved, as in `run_audit`.

    Raises:
        UsageError: the audit was imported, or has no judges.
        ConfigError, ModelSetupError, StorageError: with the problem and how to fix it.
    """
    bootstrap.prepare_environment()
    with open_database(resolve_storage_url(storage), create=False) as db:
        audit = audits.get_audit(db, audit_name)
        if audit.config is None:
            raise UsageError(
                f"the audit '{audit_name}' was imported, so it has no judges to ask.", "Run one from a config."
            )
        if audits.load_audit_survey(db, audit).task is not None:
            raise UsageError(
                f"the audit '{audit_name}' is of a task, and faults are planted in traces on a survey.",
                "Its report says already what judges make of right and of wrong answers.",
            )
        config = load_stored_config(audit.config)
        if not config.judge_models or not config.probes.direct:
            raise UsageError(f"the audit '{audit_name}' has no judges.", "Give its config some, and run it again.")
        survey = audits.load_audit_survey(db, audit)

        async def ask(context: RunContext) -> None:
            for run_step in _experiment_steps(experiment):
                await run_step(context, sample_size)

        with run_lock(db, audit_name):
            run_with_models(ask, config, survey, audit, db, progress=progress, signals=signals)


def _experiment_steps(experiment: JudgeExperiment) -> tuple[Callable[[RunContext, int], Awaitable[None]], ...]:
    """The functions that make up an experiment, in order; each takes the run's context and the sample size."""
    return (
        (judge_experiments.run_fault_injection,)
        if experiment == "planted"
        else (judge_experiments.run_contests, judge_experiments.run_padding, judge_experiments.run_self_judging)
    )
