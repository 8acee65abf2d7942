"""Read logs of Inspect AI, with Inspect's own reader: as recorded answers, or as answers to items of a task."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import pydantic

from auditor.config import TaskSection
from auditor.domain import AnswerKind, Outcome, Task, TaskItem, canonical_hash
from auditor.errors import AuditorError, ImportFileError, format_count, pluralize
from auditor.exports.inspect_logs import CELL_SEPARATOR, METADATA_KEY, SCORE_NAME, TASK_KEY
from auditor.extras import load_extra
from auditor.imports.recorded_answers import (
    LogKeys,
    RecordedAnswer,
    describe_joined_logs,
    find_scored_outcome,
    find_text,
    list_logs,
    require_score,
)
from auditor.imports.task_answers import RecordedTask, TaskAnswerRow
from auditor.input_files import read_json, require_file
from auditor.models.finish_reasons import finish_reason_outcome
from auditor.packed_files import check_archive
from auditor.tasks import canonical_answer, is_correct, parse_number
from auditor.tasks.loader import MAX_ID_LENGTH
from auditor.text_safety import escape_for_storage, escape_invisible

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample


LIMIT_OUTCOMES = {
    "time": Outcome.TIMEOUT,
    "working": Outcome.TIMEOUT,
    "token": Outcome.TRUNCATED,
    "cost": Outcome.OVER_BUDGET,
}
STATUS_PROBLEMS = {
    "started": "its run did not finish",
    "cancelled": "its run was cancelled",
    "error": "its run ended with an error",
}
"""Problem that each status of a log stands for; `success` is none."""


SampleKey: TypeAlias = tuple[str, str, str, int]
"""Id of a task's run, which its retries share, model, id of a sample and epoch."""


def sort_retries(paths: Sequence[Path]) -> list[Path]:
    """Sort logs so that of the logs of one run, a retry comes before the log whose samples it has taken over.

    Other logs stay in their order; so does a file that is no log, whose error is raised when it is read.
    """
    log = load_extra("inspect_ai.log", "inspect")
    spec_by_path: dict[Path, Any] = {}
    for path in paths:
        with contextlib.suppress(Exception):  # as in `iterate_log_samples`
            spec_by_path[path] = log.read_eval_log(str(path), header_only=True).eval
    positions = {path: position for position, path in enumerate(paths)}
    first_position: dict[str, int] = {}
    for path, position in positions.items():
        if path in spec_by_path and spec_by_path[path].task_id:
            first_position.setdefault(spec_by_path[path].task_id, position)
    newest_first = sorted(
        paths, key=lambda path: spec_by_path[path].created if path in spec_by_path else "", reverse=True
    )
    return sorted(
        newest_first,
        key=lambda path: first_position.get(
            spec_by_path[path].task_id if path in spec_by_path else "", positions[path]
        ),
    )


def read_inspect_log(
    path: Path,
    keys: LogKeys,
    report_problem: Callable[[str], None] = lambda line: None,
    seen: set[SampleKey] | None = None,
) -> Iterator[RecordedAnswer]:
    """Read the samples of a log in its order: by id, then by epoch.

    Country and topic are taken from a sample's metadata, the model from the log. The score is the one that `keys.score`
    names, or auditor's own in logs that auditor wrote. Otherwise it is parsed from the text, since a grade is not on a
    survey's scale. A sample that ended with an error counts as failed, whatever score it has.

    Args:
        path: the log.
        keys: metadata keys of country and topic, and the name of the score.
        report_problem: receives one line about problems of the whole log, such as missing samples.
        seen: samples of logs that were read before, which are left out: a retry of a run repeats those of the run's
            log. Those of this log are added.

    Raises:
        ImportFileError: the file is no log, or a sample cannot be used.
        UsageError: Inspect is not installed.
    """
    for location, header, sample in iterate_log_samples(path, report_problem, seen):
        yield _parse_answer(location, header, sample, keys)


def iterate_log_samples(
    path: Path, report_problem: Callable[[str], None], seen: set[SampleKey] | None = None
) -> Iterator[tuple[str, EvalLog, EvalSample]]:
    """Yield the location of each sample of a log for messages, the log's header and the sample, by id and epoch.

    Arguments and errors are those of `read_inspect_log`.
    """
    log = load_extra("inspect_ai.log", "inspect")
    require_file(path, ImportFileError)
    if path.suffix.lower() == ".json":
        read_json(path, ImportFileError)  # its size and depth
    else:
        check_archive(path, ImportFileError, "Inspect AI log")
    counts = Counter[str]()
    seen_before = frozenset(seen or ())
    try:
        header = log.read_eval_log(str(path), header_only=True)
        for number, sample in enumerate(_read_samples(log, path, header), start=1):
            counts["samples"] += 1
            key = (header.eval.task_id, str(header.eval.model), str(sample.id), sample.epoch)
            if header.eval.task_id and key in seen_before:
                counts["repeated"] += 1
                continue
            if seen is not None:
                seen.add(key)
            counts["failed"] += sample.error is not None
            counts["invalid"] += sample.invalidation is not None
            yield f"{path}: sample {sample.id}, epoch {sample.epoch} (number {number})", header, sample
        if problems := _find_problems(header, counts):
            report_problem(f"{path}: {'; '.join(problems)}.")
    except AuditorError:
        raise
    except Exception:  # noqa: BLE001 - a broken archive, JSON or log: its reader raises what its libraries raise
        raise ImportFileError(f"{path}: is not a valid Inspect AI log.", "Check that it is complete.") from None


def _find_problems(header: EvalLog, counts: Mapping[str, int]) -> list[str]:
    """List why a log is incomplete; empty for a complete log.

    Args:
        header: header of the log.
        counts: samples of the log, those that are in a later log of its run, that ended with an error, and that people
            declared invalid.
    """
    problems, n_samples = [], counts["samples"]
    if header.status in STATUS_PROBLEMS:
        message = escape_invisible(header.error.message.strip().split("\n", 1)[0][:200]) if header.error else ""
        problems.append(STATUS_PROBLEMS[header.status] + (f" ({message})" if message else ""))
    if header.invalidated and not counts["invalid"]:
        problems.append("it is marked as invalid")
    planned = _count_planned_samples(header)
    if planned is not None and n_samples < planned:
        problems.append(f"{format_count(planned - n_samples)} of its {format_count(planned)} samples are missing")
    elif not n_samples:
        problems.append("it holds no samples")
    if counts["repeated"]:
        problems.append(
            f"{format_count(counts['repeated'])} of its samples are in a later log of the same run, and count once"
        )
    if counts["failed"]:
        problems.append(f"{format_count(counts['failed'])} of its samples ended with an error and count as failures")
    if counts["invalid"]:
        problems.append(f"{format_count(counts['invalid'])} of its samples were declared invalid and are excluded")
    return problems


def _count_planned_samples(header: EvalLog) -> int | None:
    """Number of samples that the run planned, over all epochs; None if the log does not say."""
    dataset, config = header.eval.dataset, header.eval.config
    epochs = config.epochs or 1
    candidate_counts = [len(dataset.sample_ids or ()) * epochs, header.results.total_samples if header.results else 0]
    if config.limit is None and config.sample_id is None:  # else only a part of the dataset was run
        candidate_counts.append((dataset.samples or 0) * epochs)
    return max(candidate_counts) or None


def _read_samples(log: ModuleType, path: Path, header: EvalLog) -> Iterable[EvalSample]:
    """Read the samples one at a time if the log lists their ids, else all at once: some writers list none."""
    if header.eval.dataset.sample_ids is None:
        return log.read_eval_log(str(path)).samples or ()
    samples: Iterable[EvalSample] = log.read_eval_log_samples(str(path), all_samples_required=False)
    return samples


def _parse_answer(location: str, log: EvalLog, sample: EvalSample, keys: LogKeys) -> RecordedAnswer:
    """Convert a sample to a recorded answer; its score is None if it must be parsed from the text, or if it failed.

    In auditor's own logs, the score's explanation is the trace, so it is used as the text.

    Raises:
        ImportFileError: country or topic is missing, or the score is not in [-1, 1].
    """
    auditor_metadata = _find_auditor_metadata(log)
    country, topic = _parse_cell(location, sample, keys)
    score_name = keys.score or (SCORE_NAME if auditor_metadata else None)
    recorded_score = (sample.scores or {}).get(score_name) if score_name else None
    missing = (
        recorded_score is None or recorded_score.value != recorded_score.value
    )  # Inspect marks a sample without a score by nan
    failure = find_failure(sample, is_auditor_log=bool(auditor_metadata))
    score = (
        None
        if recorded_score is None or missing or failure is not None
        else require_score(location, recorded_score.value)
    )
    text = sample.output.completion or None
    if auditor_metadata and recorded_score is not None and not missing:
        text = recorded_score.explanation or text
    if score is None:
        outcome = _sample_outcome(sample, bool(auditor_metadata), text)
    else:
        outcome = Outcome.OK if auditor_metadata else find_scored_outcome(text)
    if score_name and missing and outcome is Outcome.OK:
        outcome = Outcome.UNPARSED  # the scorer gave no score on purpose, so the text is not parsed for one
    score = score if outcome is Outcome.OK else None
    return RecordedAnswer(location, _find_model(log), country, topic, None, text, outcome, score)


def _parse_cell(location: str, sample: EvalSample, keys: LogKeys) -> tuple[str, str]:
    """Return country and topic of a sample: from its metadata or, without any, from an id `COUNTRY | TOPIC`.

    Raises:
        ImportFileError: neither names them.
    """
    identifier = str(sample.id)
    try:
        return find_text(location, keys.country, sample.metadata), find_text(location, keys.topic, sample.metadata)
    except ImportFileError:
        if CELL_SEPARATOR in identifier and not sample.metadata:
            country, topic = identifier.split(CELL_SEPARATOR, 1)
            return country.strip(), topic.strip()
        raise


def _sample_outcome(sample: EvalSample, is_auditor_log: bool, text: str | None) -> Outcome:
    """Outcome of a sample without a score: as auditor recorded it, else from its error, limit or stop reason."""
    outcome_name = sample.metadata.get("outcome")
    if is_auditor_log and outcome_name in tuple(Outcome) and outcome_name != Outcome.OK:
        return Outcome(outcome_name)
    return find_sample_outcome(sample, text)


def find_failure(sample: EvalSample, *, is_auditor_log: bool = False) -> Outcome | None:
    """Outcome of a sample that people declared invalid, or that an error, limit or stop reason ended; else None.

    In auditor's own logs a score says that the answer was usable, whatever the reason why the model stopped.
    """
    if sample.invalidation is not None:
        return Outcome.EXCLUDED
    if sample.error is not None:
        return Outcome.CLIENT_ERROR
    if is_auditor_log:
        return None
    if sample.limit is not None and sample.limit.type in LIMIT_OUTCOMES:
        return LIMIT_OUTCOMES[sample.limit.type]
    return finish_reason_outcome(sample.output.stop_reason) if sample.output.choices else None


def find_sample_outcome(sample: EvalSample, text: str | None) -> Outcome:
    """Outcome of a sample as `find_failure`; `ok` if it has a text, whatever the text says."""
    return find_failure(sample) or (Outcome.CLIENT_ERROR if text is None else Outcome.OK)


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
    seen: set[SampleKey] = set()
    samples, logs_by_model = [], dict[str, list[str]]()
    for file in sort_retries(list_logs(path)):
        samples_of_log = list(iterate_log_samples(file, notes.append, seen))
        samples += samples_of_log
        for model in {_find_model(log) for _, log, _ in samples_of_log}:
            logs_by_model.setdefault(model, []).append(file.name)
    if not samples:
        raise ImportFileError(" ".join(notes) or f"{path}: has no samples.", "Check that it is the right file.")
    task = _build_task(path.name, samples)
    rows = []
    n_different: dict[str, int] = {}
    for location, log, sample in samples:
        row, is_graded_otherwise = _read_sample(location, log, sample, task, score_name)
        rows.append(row if len(logs_by_model[row.author]) == 1 else replace(row, sample=None))
        n_different[row.author] = n_different.get(row.author, 0) + is_graded_otherwise
    for model, names in logs_by_model.items():
        if len(names) > 1:
            notes.append(describe_joined_logs(model, names))
    if ambiguous := [scores for *_, sample in samples if len(scores := _list_answers(sample)) > 1 and not score_name]:
        notes.append(
            f"{pluralize(len(ambiguous), 'sample')} with different answers of several scores: the answer is read from "
            f"the text. To choose one of them: --score {' or '.join(dict.fromkeys(itertools.chain(*ambiguous)))}"
        )
    if n := sum(n_different.values()):
        notes.append(
            f"{format_count(n)} of {pluralize(len(rows), 'answer')} are graded differently in the log: here an answer "
            "is compared with the target."
        )
    if n_without := sum(item.truth is None for item in task.items.values()):
        notes.append(
            "No single target that answers can be equal to: "
            f"{format_count(n_without)} of {pluralize(len(task.items), 'item')}."
        )
    return RecordedTask(rows, task, tuple(notes))


def _build_task(source: str, samples: Sequence[tuple[str, EvalLog, EvalSample]]) -> Task:
    """The task of the samples; raises ImportFileError if two samples of one id have different questions."""
    answer_format = _find_answer_format(samples)
    task = Task(
        source, AnswerKind(answer_format.answer), "", answer_format.range, bool(answer_format.numbers),
        answer_format.tolerance,
    )  # fmt: skip
    has_choices = task.kind is AnswerKind.CHOICE
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


def _find_answer_format(samples: Sequence[tuple[str, EvalLog, EvalSample]]) -> TaskSection:
    """The kind of answers: as auditor recorded it in its own logs, else by the choices and targets of the samples.

    Raises:
        ImportFileError: a log of auditor has an invalid format.
    """
    recorded = [_find_auditor_metadata(log).get(TASK_KEY) for _, log, _ in samples]
    if recorded[0] and all(answer_format == recorded[0] for answer_format in recorded):
        try:
            return TaskSection.model_validate({"source": "", **recorded[0]})
        except (pydantic.ValidationError, TypeError):
            raise ImportFileError(
                f"{samples[0][0]}: the log has no valid format of answers.", "Export the audit again."
            ) from None
    if all(sample.choices for _, _, sample in samples):
        return TaskSection(source="", answer="choice")
    known_targets = [target for _, _, sample in samples if (target := _find_target(sample))]
    return TaskSection(source="", answer="exact", numbers=bool(known_targets) and all(map(_is_number, known_targets)))


def _find_auditor_metadata(log: EvalLog) -> dict[str, Any]:
    """What auditor noted in its own logs; empty for logs of others."""
    return (log.eval.metadata or {}).get(METADATA_KEY) or {}


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


def _find_model(log: EvalLog) -> str:
    """Name of a log's model; in auditor's own logs, its name in the audit."""
    return str(_find_auditor_metadata(log).get("model") or log.eval.model)


def _list_answers(sample: EvalSample) -> dict[str, str]:
    """The answers that scores read, by the name of the first score that has each of them."""
    answers: dict[str, str] = {}
    for name, score in (sample.scores or {}).items():
        if score.answer and score.answer not in answers.values():
            answers[name] = score.answer
    return answers


def _read_sample(
    location: str, log: EvalLog, sample: EvalSample, task: Task, score_name: str | None
) -> tuple[TaskAnswerRow, bool]:
    """The answer of a sample, and whether the log grades it otherwise than the comparison with the target does."""
    scores = sample.scores or {}
    answered = [scores[name] for name in _list_answers(sample)]
    if score_name is not None and scores and score_name not in scores:
        raise ImportFileError(
            f"{location}: the sample has no score '{score_name}'; its scores are: {', '.join(scores)}.",
            "Name one of them with --score.",
        )
    score = scores.get(score_name) if score_name else answered[0] if len(answered) == 1 else None
    is_auditor_log = bool(_find_auditor_metadata(log))
    completion = sample.output.completion
    if is_auditor_log and score is not None and score_name in (None, SCORE_NAME):  # others are of judges
        completion = score.explanation or completion
    text = escape_for_storage(completion or "")
    answer = escape_for_storage(str(score.answer)) if score is not None and score.answer else ""
    failure = find_failure(sample, is_auditor_log=is_auditor_log)
    outcome = None if answer and failure is None else _sample_outcome(sample, is_auditor_log, text or None)
    row = TaskAnswerRow(location, _find_model(log), str(sample.id), sample.epoch - 1, answer, text, outcome)
    item = task.items[row.item]
    canonical = canonical_answer(task, item, answer) if answer and outcome in (None, Outcome.OK) else None
    grade = GRADES.get(score.value) if score is not None and isinstance(score.value, str | int | float) else None
    is_right = None if canonical is None else is_correct(task, item, canonical)
    return row, grade is not None and is_right is not None and grade != is_right
