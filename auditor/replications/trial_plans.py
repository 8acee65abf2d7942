"""The calls of experiments on the audits of a replication, planned from their files before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from auditor.config import AuditConfig
from auditor.cost_estimation.planned_calls import PlannedCalls
from auditor.errors import AuditorError, UsageError
from auditor.probes.semantic.experiment_calls import (
    plan_choice_calls,
    plan_rule_following_calls,
    plan_temperature_calls,
)
from auditor.probes.semantic.experiments.accuracy import read_known_answers
from auditor.probes.semantic.experiments.judgements import read_judgements
from auditor.probes.semantic.experiments.rules import read_rules
from auditor.probes.semantic.experiments.temperature import parse_temperatures
from auditor.probes.semantic.figures.people_labels import make_no_label_error, select_labels
from auditor.probes.semantic.questions import list_question_ids
from auditor.probes.semantic.settings import BUILT_IN_QUESTIONS, SemanticProbe
from auditor.replications.experiment import Experiment, Trial
from auditor.replications.presets import PublishedTable
from auditor.replications.trials import is_asked, locate_files, select_trials
from auditor.run import load_planned_survey

QUESTIONS_KEY = "probes.semantic.questions"


class AuditPlan(NamedTuple):
    """What is asked for an audit.

    Attributes:
        is_asked: whether it asks its own questions; otherwise it is only stored, for its experiments.
        asking_trials: names of the experiments on it that ask models.
        calls: of these experiments.
    """

    is_asked: bool
    asking_trials: list[str]
    calls: list[PlannedCalls]


def plan_trials(
    experiment: Experiment,
    tables: Sequence[PublishedTable],
    files: Mapping[str, str],
    configs: Mapping[str, AuditConfig],
) -> dict[str, AuditPlan]:
    """Plan the experiments that tables need, by name of the survey or data set.

    Args:
        files: of the user, by name of the data.
        configs: of the audits, by name of the survey or data set.

    Raises:
        AuditorError: a file cannot be used, as the experiment itself would find; the message names its `--data`.
    """
    _require_question_files(experiment, files)
    plans = {}
    for audit_name, config in configs.items():
        asked = is_asked(experiment, tables, files, audit_name)
        names = select_trials(experiment, tables, files, audit_name)
        calls = {name: _plan_trial(experiment.trials[name], files, config, asked) for name in names}
        asking = [name for name in names if calls[name]]
        plans[audit_name] = AuditPlan(asked, asking, [call for name in asking for call in calls[name]])
    return plans


def _require_question_files(experiment: Experiment, files: Mapping[str, str]) -> None:
    """Raise UsageError, which names `--data`, if a file of questions is missing."""
    for name, value in files.items():
        if experiment.files[name].key == QUESTIONS_KEY and value != BUILT_IN_QUESTIONS and not Path(value).is_file():
            raise UsageError(
                f"--data {name}: there is no file '{value}'.",
                f"Correct the path, or write --data {name}={BUILT_IN_QUESTIONS} for the questions of this program.",
            )


def _plan_trial(trial: Trial, files: Mapping[str, str], config: AuditConfig, asked: bool) -> list[PlannedCalls]:
    """The calls of a trial; AuditorError, which names its file, if that cannot be used."""
    if trial.experiment not in PLANNERS:
        return []
    try:
        return list(PLANNERS[trial.experiment](trial, locate_files(trial, files), config, asked))
    except AuditorError as error:
        named = "".join(f"--data {name}: " for name in trial.files.values())
        raise type(error)(f"{named}{error.message}", error.how_to_fix) from None


def _plan_accuracy(
    trial: Trial, paths: Mapping[str, Path], config: AuditConfig, _asked: bool
) -> Iterator[PlannedCalls]:
    yield from plan_choice_calls(config, read_known_answers(paths["file"])[: trial.options.get("limit")])


def _plan_rules(trial: Trial, paths: Mapping[str, Path], config: AuditConfig, asked: bool) -> Iterator[PlannedCalls]:
    survey = load_planned_survey(config)
    rules = read_rules(paths["file"], list_question_ids(config, survey), config.name)
    yield from plan_rule_following_calls(config, survey, rules, is_asked=asked)


def _plan_temperature(
    trial: Trial, _paths: Mapping[str, Path], config: AuditConfig, asked: bool
) -> Iterator[PlannedCalls]:
    temperatures = parse_temperatures(trial.options["temperatures"])
    yield from plan_temperature_calls(config, load_planned_survey(config), len(temperatures), is_asked=asked)


def _plan_judgements(
    _trial: Trial, paths: Mapping[str, Path], config: AuditConfig, _asked: bool
) -> Iterator[PlannedCalls]:
    """Read the labels, which asks nobody; UsageError if none is of the audit's models, questions and wordings."""
    probe = config.probes.get(SemanticProbe)
    questions = list_question_ids(config, load_planned_survey(config)).asked
    numbers = range(1, probe.paraphrases + 1)
    units = set(product((model.name for model in config.models), questions))
    selected = select_labels(read_judgements(paths["file"]), units, dict.fromkeys(questions, numbers))
    if not selected.by_unit:
        raise make_no_label_error(paths["file"], config.name)
    yield from ()


PLANNERS: Mapping[str, Callable[[Trial, Mapping[str, Path], AuditConfig, bool], Iterator[PlannedCalls]]] = {
    "accuracy": _plan_accuracy,
    "rules": _plan_rules,
    "temperature": _plan_temperature,
    "judgements": _plan_judgements,
}
"""Planners of the calls of experiments, by name; others ask nobody."""
