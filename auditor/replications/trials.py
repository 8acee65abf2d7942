"""Experiments on the audits of a replication: their plans, people's comparisons, and their run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from auditor.config import AuditConfig
from auditor.cost_estimation.planned_calls import PlannedCalls
from auditor.errors import AuditorError, UsageError
from auditor.experiments.registry import EXPERIMENTS
from auditor.experiments.stored_audit import ExperimentContext
from auditor.imports.published import PEOPLE_JUDGE
from auditor.metrics.logic.ranking import RatingMethod
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.repair import repair_comparisons, summarize_stages
from auditor.probes.semantic.experiment_calls import (
    plan_choice_calls,
    plan_rule_following_calls,
    plan_temperature_calls,
)
from auditor.probes.semantic.experiments.runs import parse_temperatures, read_judgements, read_known_answers, read_rules
from auditor.probes.semantic.figures.human_judgements import make_no_label_error, select_labels
from auditor.probes.semantic.questions import list_question_ids
from auditor.probes.semantic.settings import BUILT_IN_QUESTIONS, SemanticProbe
from auditor.replications.experiment import Experiment, Trial
from auditor.replications.presets import PublishedTable
from auditor.run import load_planned_survey

ALL_SETS = "all"


def import_people_comparisons(files: Mapping[str, Path], storage: str | None, max_sets: int | None = None) -> None:
    """Store people's comparisons as audits. Earlier imports of the same names are replaced.

    Args:
        files: by name of the audit.
        storage: URL of the database.
        max_sets: largest number of sets of each file, drawn at random; None keeps all.

    Raises:
        ImportFileError, UsageError: see `import_comparisons`.
    """
    for audit_name, file in files.items():
        import_comparisons(file, audit=audit_name, storage=storage, max_sets=max_sets)


def measure_repair(
    context: ExperimentContext,
    audit: str,
    *,
    noise: float,
    k: int,
    seed: int,
    method: RatingMethod,
    max_sets: int | None = None,
) -> dict[str, Any]:
    """Measure people's comparisons at every stage of REPAIR, as `auditor logic repair --noise` does.

    Args:
        noise: share of the comparisons that are reversed first, in [0, 1].
        k: number of items in the subsets that are checked for cycles.
        seed: of the noise and of the samples.
        method: of rating the items.
        max_sets: largest number of sets with which the comparisons were imported; None for all.

    Returns:
        The options, `drawn` (which sets of the file, in words), `sets` (number of item sets) and `stages`, a
        `StageSummary` for each stage.

    Raises:
        StorageError, UsageError: see `repair_comparisons`.
    """
    with context.open_database() as db, explain_missing_people():
        repaired = repair_comparisons(db, audit, PEOPLE_JUDGE, noise=noise, seed=seed, method=method)
    return {
        "noise": noise,
        "k": k,
        "seed": seed,
        "method": method,
        "drawn": ALL_SETS if max_sets is None or len(repaired) < max_sets else f"at most {max_sets}, drawn at random",
        "sets": len(repaired),
        "stages": summarize_stages(repaired, k=k, seed=seed),
    }


@contextmanager
def explain_missing_people() -> Iterator[None]:
    """Add to a UsageError which judge the comparisons must be of."""
    try:
        yield
    except UsageError as error:
        how_to_fix = f"{error.how_to_fix} The column `judge` of the file must read '{PEOPLE_JUDGE}'."
        raise UsageError(error.message, how_to_fix) from None


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
