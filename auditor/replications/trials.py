"""Experiments on the finished audits of a replication, for the tables that need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from auditor.experiments.declaration import ExperimentContext
from auditor.experiments.registry import EXPERIMENTS
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.experiment import Experiment
from auditor.replications.presets import PublishedTable


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


def run_trials(
    experiment: Experiment,
    tables: Sequence[PublishedTable],
    files: Mapping[str, str],
    measured: Sequence[MeasuredAudit],
    context: ExperimentContext,
) -> list[MeasuredAudit]:
    """Make the trials that tables need; models are asked only for answers that are not recorded yet.

    Args:
        files: of the user, by name of the data.

    Returns:
        The audits with the results of their trials.

    Raises:
        ConfigError, ModelSetupError, StorageError, UsageError: with the problem and how to fix it.
    """
    functions = {function.__name__: function for function in EXPERIMENTS}
    with_trials = []
    for audit in measured:
        results = {}
        for name in select_trials(experiment, tables, files, audit.name):
            trial = experiment.trials[name]
            paths = {option: Path(files[data_name]) for option, data_name in trial.files.items()}
            run_experiment = functions[trial.experiment]
            results[name] = run_experiment(context, audit.report.audit.name, **trial.options, **paths).data
        with_trials.append(replace(audit, trials=results))
    return with_trials
