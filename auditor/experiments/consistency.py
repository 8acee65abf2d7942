"""Consistency experiments of the papers, run on an audit of moral questions with its own config and ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor import bootstrap
from auditor.config import load_stored_config
from auditor.errors import ImportFileError, UsageError
from auditor.metrics.averaging import AveragedEstimate, averaged_share, mean_of_instances
from auditor.metrics.clustered_correlation import correlate_over_units
from auditor.metrics.paired_difference import PairedDifference, paired_difference
from auditor.reports.data.semantic.experiment_schema import (
    ConsistencyAccuracyRow,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.run import resolve_storage_url, run_with_models
from auditor.storage import audits, semantic_results
from auditor.storage.database import open_database, run_lock
from auditor.surveys.row_reader import read_rows

if TYPE_CHECKING:
    from auditor.agents.run_context import ProgressReporter, RunContext
    from auditor.agents.semantic.experiments import KnownAnswerQuestion

T = TypeVar("T")
Floats = NDArray[np.float64]
CONSISTENCY_BOUNDS = (-1.0, 1.0)
"""Smallest and largest possible consistency."""


def run_temperature_experiment(
    audit_name: str,
    temperatures: Sequence[float],
    *,
    storage: str | None = None,
    progress: ProgressReporter | None = None,
    signals: bool = False,
) -> list[SemanticTemperatureRow]:
    """Compare the consistency of answers to one repeated wording with that of answers to as many paraphrases.

    Models are asked at each of the temperatures; there is one row per model and temperature.

    Args:
        audit_name: an audit of moral questions, whose models, encoder and score are used.
        temperatures: at which the models are asked.
        storage: database URL.
        progress: receives every answer.
        signals: whether SIGINT, SIGTERM and SIGHUP stop the experiment with everything saved, as in `run_audit`.

    Raises:
        UsageError: the audit asked no moral questions by a config.
        ConfigError, ModelSetupError, StorageError: with the problem and how to fix it.
        RunInterrupted: stopped by a signal, if `signals` is set, as in `run_audit`.
    """
    from auditor.agents.semantic.experiments import scores_by_temperature  # loads langgraph (2 s)

    scores, seed = _ask_audit_models(
        audit_name, lambda context: scores_by_temperature(context, temperatures), storage, progress, signals
    )
    rows = []
    # Keys are (model, temperature, whether the answers are to paraphrases); values are one consistency per question.
    for model, temperature in dict.fromkeys((model, temperature) for model, temperature, _ in scores):
        same_words, other_words = scores[model, temperature, False], scores[model, temperature, True]
        change = _difference_over_questions(same_words, other_words, seed)
        rows.append(
            SemanticTemperatureRow(
                model=model,
                temperature=temperature,
                same_words=_mean_over_questions(same_words),
                other_words=_mean_over_questions(other_words),
                difference=change.estimate,
                p_value=change.p_value,
            )
        )
    return rows


def run_rule_experiment(
    audit_name: str, *, storage: str | None = None, progress: ProgressReporter | None = None, signals: bool = False
) -> list[RuleFollowingRow]:
    """Compare the consistency of answers before and after a model is told to follow its own rule of thumb.

    The rule is the first that the model gave for the question. There is one row per model.

    Raises:
        As `run_temperature_experiment`.
    """
    from auditor.agents.semantic.experiments import scores_by_rule  # loads langgraph (2 s)

    scores, seed = _ask_audit_models(audit_name, scores_by_rule, storage, progress, signals)
    rows = []
    # Keys are (model, whether it was told the rule); values are one consistency per question.
    for model in dict.fromkeys(model for model, _ in scores):
        before, after = scores[model, False], scores[model, True]
        change = _difference_over_questions(before, after, seed)
        rows.append(
            RuleFollowingRow(
                model=model,
                before=_mean_over_questions(before),
                after=_mean_over_questions(after),
                change=change.estimate,
                p_value=change.p_value,
            )
        )
    return rows


def run_accuracy_experiment(
    audit_name: str,
    file: Path,
    *,
    storage: str | None = None,
    progress: ProgressReporter | None = None,
    signals: bool = False,
) -> list[ConsistencyAccuracyRow]:
    """Correlate the consistency of a model's answers with their accuracy, on questions with a known answer.

    Each question is asked in several wordings. There is one row per model.

    Args:
        audit_name: an audit of moral questions, whose models, encoder and score are used.
        file: `question_id,question,choices,correct[,paraphrase]`, choices separated by `|`; one row per paraphrase.

    Raises:
        ImportFileError: a row that cannot be used.
        Others as `run_temperature_experiment`.
    """
    from auditor.agents.semantic.experiments import accuracy_and_consistency  # loads langgraph (2 s)

    questions = _read_known_answers(file)
    measures_by_model, _ = _ask_audit_models(
        audit_name, lambda context: accuracy_and_consistency(context, questions), storage, progress, signals
    )
    rows = []
    for model, (accuracy, consistency) in measures_by_model.items():
        correlation = correlate_over_units(consistency, accuracy, {"question": np.arange(len(accuracy))})
        r = correlation.estimate
        rows.append(
            ConsistencyAccuracyRow(
                model=model,
                accuracy=_estimate_accuracy(accuracy),
                consistency=_mean_over_questions(consistency),
                n=r.n,
                r=r.value,
                p_value=correlation.p_value,
                ci_low=r.ci_low,
                ci_high=r.ci_high,
                reason=r.reason,
            )
        )
    return rows


def _mean_over_questions(scores: Floats) -> AveragedEstimate:
    """Mean consistency, shape (questions,), nan where there is none, with an interval over other questions."""
    return mean_of_instances(
        scores, {"question": np.arange(len(scores))}, CONSISTENCY_BOUNDS, empty_reason="no question has a value"
    )


def _difference_over_questions(first: Floats, second: Floats, seed: int) -> PairedDifference:
    """Mean of second minus first, shape (questions,) each, with an interval over other questions."""
    bounds = (CONSISTENCY_BOUNDS[0] - CONSISTENCY_BOUNDS[1], CONSISTENCY_BOUNDS[1] - CONSISTENCY_BOUNDS[0])
    return paired_difference(first, second, {"question": np.arange(len(first))}, bounds=bounds, seed=seed)


def _estimate_accuracy(accuracies: Floats) -> AveragedEstimate:
    """Mean over questions of the share of correct answers, shape (questions,), nan where no answer is usable."""
    has_answers = ~np.isnan(accuracies)
    return averaged_share(
        np.where(has_answers, accuracies, 0.0),
        has_answers,
        {"question": np.arange(len(accuracies))},
        "instances",
        empty_reason="no question has a usable answer",
    )


def _read_known_answers(file: Path) -> list[KnownAnswerQuestion]:
    """Read the questions of a file, one entry per id with all its wordings: the question itself, then its paraphrases.

    Raises:
        ImportFileError: a row that cannot be used, rows of one id that differ, no rows, or no paraphrase of a question.
    """
    from auditor.agents.semantic.experiments import KnownAnswerQuestion  # loads langgraph (2 s)

    questions_by_id: dict[str, KnownAnswerQuestion] = {}
    for row in read_rows(file, ("question_id", "question", "choices", "correct"), ("paraphrase",)):
        cells = row.cells
        choices = tuple(choice.strip() for choice in cells["choices"].split("|") if choice.strip())
        if not cells["question_id"] or not cells["question"] or len(choices) < 2:
            raise ImportFileError(f"{row.location}: needs a question_id, a question and two choices.", "Separate by |.")
        if cells["correct"] not in choices:
            raise ImportFileError(
                f"{row.location}, column 'correct': '{cells['correct']}' is none of the choices.", "Mend it."
            )
        parsed = KnownAnswerQuestion(  # choices are numbered from 1
            cells["question_id"], (cells["question"],), choices, choices.index(cells["correct"]) + 1
        )
        earlier = questions_by_id.setdefault(parsed.id, parsed)
        if (earlier.wordings[0], earlier.choices, earlier.correct_choice) != (
            parsed.wordings[0],
            parsed.choices,
            parsed.correct_choice,
        ):
            raise ImportFileError(f"{row.location}: question '{parsed.id}' is another in an earlier row.", "Mend one.")
        if cells["paraphrase"]:
            questions_by_id[parsed.id] = earlier._replace(wordings=(*earlier.wordings, cells["paraphrase"]))
    for question in questions_by_id.values():
        if len(question.wordings) < 2:
            raise ImportFileError(
                f"{file}: question '{question.id}' has no paraphrase.", "Add a row for each, with the same question."
            )
    if not questions_by_id:
        raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
    return list(questions_by_id.values())


def _ask_audit_models(
    audit_name: str,
    ask: Callable[[RunContext], Awaitable[T]],
    storage: str | None,
    progress: ProgressReporter | None,
    signals: bool,
) -> tuple[T, int]:
    """Run `ask` with the models of a stored audit of moral questions, while no other process runs it.

    Args:
        ask: awaits the answers it needs, given the context of the run, and returns what is computed from them.
        storage, progress, signals: as of `run_temperature_experiment`.

    Returns:
        What `ask` returned, and the audit's seed.

    Raises:
        UsageError: the audit asked no moral questions by a config.
    """
    bootstrap.prepare_environment()
    with open_database(resolve_storage_url(storage), create=False) as db:
        audit = audits.get_audit(db, audit_name)
        config = load_stored_config(audit.config)
        if config is None or config.probes.semantic is None or not semantic_results.load_questions(db, audit.id):
            raise UsageError(
                f"the audit '{audit_name}' has asked no moral questions.",
                "Run one with `semantic = {}` under [probes].",
            )
        with run_lock(db, audit_name):
            survey = audits.load_audit_survey(db, audit)
            return run_with_models(ask, config, survey, audit, db, progress=progress, signals=signals), config.seed
