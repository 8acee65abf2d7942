"""Experiments on the finished audits of a replication, for the tables that need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from auditor.experiments.declaration import ExperimentContext
from auditor.experiments.registry import EXPERIMENTS
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.experiment import Experiment, Trial
from auditor.replications.people_comparisons import measure_repair
from auditor.replications.presets import PublishedTable

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
    with_trials = []
    for audit in measured:
        results = {}
        for name in select_trials(experiment, tables, files, audit.name):
            results[name] = _run_trial(experiment.trials[name], files, audit.report.audit.name, context)
        with_trials.append(replace(audit, trials=results))
    return with_trials


def _run_trial(trial: Trial, files: Mapping[str, str], audit_name: str, context: ExperimentContext) -> Any:
    """Make one trial on an audit, and return its data."""
    paths = {option: Path(files[data_name]) for option, data_name in trial.files.items()}
    if trial.experiment == REPAIR:
        return measure_repair(context, audit_name, **trial.options)
    functions = {function.__name__: function for function in EXPERIMENTS}
    return functions[trial.experiment](context, audit_name, **trial.options, **paths).data
