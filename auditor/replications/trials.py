"""Experiments on the audits of a replication, for the tables that need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.errors import UsageError
from auditor.experiments.declaration import ExperimentContext
from auditor.experiments.registry import EXPERIMENTS
from auditor.replications.experiment import Experiment, Trial
from auditor.replications.people_comparisons import measure_repair
from auditor.replications.presets import PublishedTable

ASKING_EXPERIMENTS = ("accuracy", "rules", "temperature")
"""Experiments that ask models for all that they need, so that their audit need not ask its own questions."""
REPAIR = "repair"
"""The trial that is no experiment of `auditor experiment`: `auditor logic repair`."""


def select_trials(
    experiment: Experiment, tables: Sequence[PublishedTable], files: Mapping[str, str], audit_name: str
) -> list[str]:
    """Names of the trials on an audit that the tables need, as far as their data files are at hand."""
    needed = dict.fromkeys(source.trial for table in tables for source in table.list_sources() if source.trial)
    return [
        name
        for name in needed
        if experiment.trials[name].audit == audit_name and set(experiment.trials[name].files.values()) <= set(files)
    ]


def is_asked(
    experiment: Experiment, tables: Sequence[PublishedTable], files: Mapping[str, str], audit_name: str
) -> bool:
    """Whether figures of the tables are of an audit's own answers: those of its report, or of trials that read them."""
    sources = [source for table in tables for source in table.list_sources()]
    trials = select_trials(experiment, tables, files, audit_name)
    return any(not source.trial and source.audit in ("", audit_name) for source in sources) or any(
        _reads_answers(experiment.trials[name]) for name in trials
    )


def _reads_answers(trial: Trial) -> bool:
    """Whether a trial reads answers that its audit has asked for; without a file, rules to follow are such answers."""
    return trial.experiment not in ASKING_EXPERIMENTS or (trial.experiment == "rules" and not trial.files)


def run_trials(
    experiment: Experiment,
    tables: Sequence[PublishedTable],
    files: Mapping[str, str],
    name_by_audit: Mapping[str, str],
    context: ExperimentContext,
) -> dict[str, dict[str, Any]]:
    """Make the trials that tables need; models are asked only for answers that are not recorded yet.

    Args:
        files: of the user, by name of the data.
        name_by_audit: names of the stored audits, by name of the survey or data set.

    Returns:
        The results of each audit's trials, by name of the survey or data set and of the trial. Of a trial that only
        reads answers but can use none, the error: the answers are paid, so that other figures must not be lost.

    Raises:
        ConfigError, ModelSetupError, StorageError, UsageError: with the problem and how to fix it.
    """
    return {
        audit_name: {
            name: _run_trial(experiment.trials[name], files, stored_name, context)
            for name in select_trials(experiment, tables, files, audit_name)
        }
        for audit_name, stored_name in name_by_audit.items()
    }


def _run_trial(trial: Trial, files: Mapping[str, str], audit_name: str, context: ExperimentContext) -> Any:
    """Make one trial on an audit, and return its data."""
    if trial.experiment == REPAIR:
        return measure_repair(context, audit_name, **trial.options)
    functions = {function.__name__: function for function in EXPERIMENTS}
    try:
        return functions[trial.experiment](context, audit_name, **trial.options, **locate_files(trial, files)).data
    except UsageError as error:
        if trial.experiment in ASKING_EXPERIMENTS:
            raise
        return error


def locate_files(trial: Trial, files: Mapping[str, str]) -> dict[str, Path]:
    """Paths of the files that a trial reads, by option."""
    return {option: Path(files[data_name]) for option, data_name in trial.files.items()}
