"""Read logs of Inspect AI that are about no survey: their samples are the items of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.domain import AnswerKind, Outcome, Task, TaskItem, canonical_hash
from auditor.errors import ImportFileError
from auditor.exports.inspect_samples import METADATA_KEY
from auditor.imports.inspect_logs import find_sample_outcome, iterate_log_samples
from auditor.imports.recorded_answers import list_logs
from auditor.imports.task_answers import RecordedTask, TaskAnswerRow
from auditor.tasks import canonical_answer, is_correct, parse_number
from auditor.tasks.loader import MAX_ID_LENGTH

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

GRADES = {"C": True, "I": False, 1: True, 0: False}
"""Grades of Inspect's scorers that are correct or not."""


def read_inspect_task(path: Path, score_name: str | None = None) -> RecordedTask:
    """Read a log, or the logs of a folder, whose samples are items: their inputs, choices and targets.

    An item is answered by the choices if all samples have some, else by a text or number that is compared with the
    target. An answer is the one that the log's scorer read, or else the one that the completion states.

    Args:
        path: a log, or a folder with a log for each model.
        score_name: name of the score whose answer counts; None takes the only one that has answers.

    Raises:
        ImportFileError: a file is no log, or the logs contradict each other.
        UsageError: Inspect is not installed.
    """
    notes: list[str] = []
    samples = [
        (location, log, sample)
        for file in list_logs(path)
        for location, log, sample in iterate_log_samples(file, notes.append)
    ]
    if not samples:
        raise ImportFileError(" ".join(notes) or f"{path}: has no samples.", "Check that it is the right file.")
    task = _build_task(path.name, samples)
    rows = []
    n_different: dict[str, int] = {}
    for location, log, sample in samples:
        row, is_graded_otherwise = _read_sample(location, log, sample, task, score_name)
        rows.append(row)
        n_different[row.author] = n_different.get(row.author, 0) + is_graded_otherwise
    if n := sum(n_different.values()):
        notes.append(
            f"{n:,} of {len(rows):,} answers are graded differently in the log: here an answer is compared with the "
            "target."
        )
    if n_without := sum(item.truth is None for item in task.items.values()):
        notes.append(f"{n_without:,} of {len(task.items):,} items have no single target that answers can be equal to.")
    return RecordedTask(rows, task, tuple(notes))


def _build_task(source: str, samples: Sequence[tuple[str, EvalLog, EvalSample]]) -> Task:
    """The task of the samples; raises ImportFileError if two samples of one id have different questions."""
    has_choices = all(sample.choices for _, _, sample in samples)
    known_targets = [target for _, _, sample in samples if (target := _find_target(sample))]
    has_numbers = not has_choices and bool(known_targets) and all(map(_is_number, known_targets))
    task = Task(source, AnswerKind.CHOICE if has_choices else AnswerKind.EXACT, "", numbers=has_numbers)
    items: dict[str, TaskItem] = {}
    for location, _, sample in samples:
        name = str(sample.id)
        if len(name) > MAX_ID_LENGTH:
            raise ImportFileError(
                f"{location}: the id has more than {MAX_ID_LENGTH} characters.", "Give the samples shorter ids."
            )
        item = TaskItem(name, _find_question(sample), options=tuple(sample.choices or ()) if has_choices else ())
        if target := _find_target(sample):
            item = replace(item, truth=canonical_answer(task, item, target))
        if items.setdefault(name, item) != item:
            raise ImportFileError(
                f"{location}: another sample with this id has another question, target or choices.",
                "Import the logs of different tasks as different audits.",
            )
    digest = canonical_hash([[item.id, item.question, item.options, item.truth] for item in items.values()])
    return replace(task, digest=digest, items=items)


def _is_number(text: str) -> bool:
    return parse_number(text) is not None


def _find_target(sample: EvalSample) -> str:
    """The target of a sample; empty if it has none, or several."""
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    return targets[0].strip() if len(targets) == 1 else ""


def _find_question(sample: EvalSample) -> str:
    """The input of a sample: its text, or the texts of its messages."""
    if isinstance(sample.input, str):
        return sample.input.strip()
    return "\n".join(message.text for message in sample.input if message.text).strip()


def _read_sample(
    location: str, log: EvalLog, sample: EvalSample, task: Task, score_name: str | None
) -> tuple[TaskAnswerRow, bool]:
    """The answer of a sample, and whether the log grades it otherwise than the comparison with the target does."""
    scores = sample.scores or {}
    answered = {name: score for name, score in scores.items() if score.answer}
    if score_name is not None and scores and score_name not in scores:
        raise ImportFileError(
            f"{location}: the sample has no score '{score_name}'; its scores are: {', '.join(scores)}.",
            "Name one of them with --score.",
        )
    score = scores.get(score_name) if score_name else next(iter(answered.values())) if len(answered) == 1 else None
    text = sample.output.completion or ""
    metadata = log.eval.metadata or {}
    model = (metadata.get(METADATA_KEY) or {}).get("model") or log.eval.model
    answer = str(score.answer) if score is not None and score.answer else ""
    outcome = find_sample_outcome(sample, text or None) if sample.error is not None or not answer else None
    row = TaskAnswerRow(location, str(model), str(sample.id), sample.epoch - 1, answer, text, outcome)
    item = task.items[row.item]
    canonical = canonical_answer(task, item, answer) if answer and outcome in (None, Outcome.OK) else None
    grade = GRADES.get(score.value) if score is not None and isinstance(score.value, str | int | float) else None
    is_right = None if canonical is None else is_correct(task, item, canonical)
    return row, grade is not None and is_right is not None and grade != is_right
