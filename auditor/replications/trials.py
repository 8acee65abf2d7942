"""Experiments on the finished audits of a replication, for the tables that need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.experiments.declaration import ExperimentContext
from auditor.experiments.registry import EXPERIMENTS
from auditor.replications.experiment import Experiment, Trial
from auditor.replications.people_comparisons import measure_repair
from auditor.replications.presets import PublishedTable

ASKING_EXPERIMENTS = ("accuracy", "rules", "temperature")
"""Experiments that ask models for further answers."""
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


def list_asking_experiments(
    experiment: Experiment, tables: Sequence[PublishedTable], files: Mapping[str, str], audit_names: Iterable[str]
) -> list[str]:
    """Names of the experiments on the finished audits that will ask models for further answers."""
    trials = [name for audit_name in audit_names for name in select_trials(experiment, tables, files, audit_name)]
    names = dict.fromkeys(experiment.trials[name].experiment for name in trials)
    return [name for name in names if name in ASKING_EXPERIMENTS]


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
        The results of each audit's trials, by name of the survey or data set and of the trial.

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
    paths = {option: Path(files[data_name]) for option, data_name in trial.files.items()}
    if trial.experiment == REPAIR:
        return measure_repair(context, audit_name, **trial.options)
    functions = {function.__name__: function for function in EXPERIMENTS}
    return functions[trial.experiment](context, audit_name, **trial.options, **paths).data
