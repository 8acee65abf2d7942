"""The papers' experiments on consistency: run on an audit of moral questions, with its own config and ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor import bootstrap
from auditor.errors import ImportFileError, UsageError
from auditor.metrics.correlation import pearson
from auditor.metrics.resampling import bootstrap_mean, paired_difference
from auditor.reports.estimate_conversion import missing_estimate, to_estimate
from auditor.reports.semantic.experiment_schema import (
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
"""Of a consistency."""


def run_temperature_experiment(
    audit_name: str,
    temperatures: Sequence[float],
    *,
    storage: str | None = None,
    progress: ProgressReporter | None = None,
    signals: bool = False,
) -> list[SemanticTemperatureRow]:
    """Consistency over temperatures: the same words as often as there are wordings, against the wordings.

    Raises:
        UsageError: the audit asked no moral questions by a config.
        ConfigError, ModelSetupError, StorageError: what is wrong, and how to mend it.
        Interrupted: a signal stopped it, where `signals` says that one may, as in `run_audit`.
    """
    from auditor.agents.semantic.experiments import scores_by_temperature

    found, seed = _ask_audit_models(
        audit_name, lambda context: scores_by_temperature(context, temperatures), storage, progress, signals
    )
    rows = []
    for model, t in dict.fromkeys((model, t) for model, t, _ in found):
        same, other = found[model, t, False], found[model, t, True]
        change = paired_difference(same, other, seed=seed)
        rows.append(
            SemanticTemperatureRow(
                model=model,
                temperature=t,
                same_words=to_estimate(bootstrap_mean(same, seed=seed, bounds=CONSISTENCY_BOUNDS)),
                other_words=to_estimate(bootstrap_mean(other, seed=seed, bounds=CONSISTENCY_BOUNDS)),
                difference=to_estimate(change) if change.n else missing_estimate(change.reason or ""),
                p_value=change.p_value,
            )
        )
    return rows


def run_rule_experiment(
    audit_name: str, *, storage: str | None = None, progress: ProgressReporter | None = None, signals: bool = False
) -> list[RuleFollowingRow]:
    """Consistency before and after a model is told to follow its own first rule of thumb on each question.

    Raises:
        As `temperature_trial`.
    """
    from auditor.agents.semantic.experiments import scores_by_rule

    found, seed = _ask_audit_models(audit_name, scores_by_rule, storage, progress, signals)
    rows = []
    for model in dict.fromkeys(model for model, _ in found):
        before, after = found[model, False], found[model, True]
        change = paired_difference(before, after, seed=seed)
        rows.append(
            RuleFollowingRow(
                model=model,
                before=to_estimate(bootstrap_mean(before, seed=seed, bounds=CONSISTENCY_BOUNDS)),
                after=to_estimate(bootstrap_mean(after, seed=seed, bounds=CONSISTENCY_BOUNDS)),
                change=to_estimate(change) if change.n else missing_estimate(change.reason or ""),
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
    """Whether a model is right where it is consistent: questions with a known answer, in several wordings.

    Args:
        name: an audit of moral questions, whose models, encoder and score are used.
        file: `question_id,question,choices,correct[,paraphrase]`, choices separated by `|`; a row for each paraphrase.

    Raises:
        ImportFileError: a row that cannot be used.
        Others as `temperature_trial`.
    """
    from auditor.agents.semantic.experiments import accuracy_and_consistency

    questions = _read_known_answers(file)
    found, seed = _ask_audit_models(
        audit_name, lambda context: accuracy_and_consistency(context, questions), storage, progress, signals
    )
    rows = []
    for model, (accuracy, consistency) in found.items():
        together = pearson(consistency, accuracy)
        rows.append(
            ConsistencyAccuracyRow(
                model=model,
                accuracy=to_estimate(bootstrap_mean(accuracy, seed=seed, bounds=(0.0, 1.0))),
                consistency=to_estimate(bootstrap_mean(consistency, seed=seed, bounds=CONSISTENCY_BOUNDS)),
                n=together.n,
                r=together.r,
                p_value=together.p_value,
                ci_low=together.ci_low,
                ci_high=together.ci_high,
                reason=together.reason,
            )
        )
    return rows


def _read_known_answers(file: Path) -> list[KnownAnswerQuestion]:
    from auditor.agents.semantic.experiments import KnownAnswerQuestion

    found: dict[str, KnownAnswerQuestion] = {}
    for row in read_rows(file, ("question_id", "question", "choices", "correct"), ("paraphrase",)):
        c = row.cells
        choices = tuple(t.strip() for t in c["choices"].split("|") if t.strip())
        if not c["question_id"] or not c["question"] or len(choices) < 2:
            raise ImportFileError(f"{row.location}: needs a question_id, a question and two choices.", "Separate by |.")
        if c["correct"] not in choices:
            raise ImportFileError(
                f"{row.location}, column 'correct': '{c['correct']}' is none of the choices.", "Mend it."
            )
        new = KnownAnswerQuestion(c["question_id"], (c["question"],), choices, choices.index(c["correct"]) + 1)
        old = found.setdefault(new.id, new)
        if (old.wordings[0], old.choices, old.correct) != (new.wordings[0], new.choices, new.correct):
            raise ImportFileError(f"{row.location}: question '{new.id}' is another in an earlier row.", "Mend one.")
        if c["paraphrase"]:
            found[new.id] = old._replace(wordings=(*old.wordings, c["paraphrase"]))
    for question in found.values():
        if len(question.wordings) < 2:
            raise ImportFileError(
                f"{file}: question '{question.id}' has no paraphrase.", "Add a row for each, with the same question."
            )
    if not found:
        raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
    return list(found.values())


def _ask_audit_models(
    audit_name: str,
    ask: Callable[[RunContext], Awaitable[T]],
    storage: str | None,
    progress: ProgressReporter | None,
    signals: bool,
) -> tuple[T, int]:
    """What the work finds among an audit's models, and the audit's seed."""
    bootstrap.prepare_environment()
    from auditor.config import AuditConfig

    with open_database(resolve_storage_url(storage), create=False) as db:
        audit = audits.get_audit(db, audit_name)
        config = AuditConfig.model_validate_json(audit.config) if audit.config else None
        if config is None or config.probes.semantic is None or not semantic_results.load_questions(db, audit.id):
            raise UsageError(
                f"the audit '{audit_name}' has asked no moral questions.",
                "Run one with `semantic = {}` under [probes].",
            )
        with run_lock(db, audit_name):
            survey = audits.load_audit_survey(db, audit)
            return run_with_models(ask, config, survey, audit, db, progress=progress, signals=signals), config.seed
