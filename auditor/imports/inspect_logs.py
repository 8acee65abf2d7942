"""Read logs of Inspect AI as recorded answers, with Inspect's own reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from auditor.domain import Outcome
from auditor.errors import AuditorError, ImportFileError
from auditor.exports.inspect_samples import CELL_SEPARATOR, METADATA_KEY, SCORE_NAME
from auditor.extras import load_extra
from auditor.imports.recorded_answers import LogKeys, RecordedAnswer, find_text, require_score
from auditor.input_files import check_archive, read_json, require_file
from auditor.models.finish_reasons import finish_reason_outcome
from auditor.text_safety import escape_invisible

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


def read_inspect_log(
    path: Path, keys: LogKeys, report_problem: Callable[[str], None] = lambda line: None
) -> Iterator[RecordedAnswer]:
    """Read the samples of a log in its order: by id, then by epoch.

    Country and topic are taken from a sample's metadata, the model from the log. The score is the one that `keys.score`
    names, or auditor's own in logs that auditor wrote. Otherwise it is parsed from the text, since a grade is not on a
    survey's scale. A sample that ended with an error counts as failed, whatever score it has.

    Args:
        path: the log.
        keys: metadata keys of country and topic, and the name of the score.
        report_problem: receives one line about problems of the whole log, such as missing samples.

    Raises:
        ImportFileError: the file is no log, or a sample cannot be used.
        UsageError: Inspect is not installed.
    """
    for location, header, sample in iterate_log_samples(path, report_problem):
        yield _parse_answer(location, header, sample, keys)


def iterate_log_samples(path: Path, report_problem: Callable[[str], None]) -> Iterator[tuple[str, EvalLog, EvalSample]]:
    """Yield the location of each sample of a log for messages, the log's header and the sample, by id and epoch.

    Arguments and errors are those of `read_inspect_log`.
    """
    log = load_extra("inspect_ai.log", "inspect")
    require_file(path, ImportFileError)
    if path.suffix.lower() == ".json":
        read_json(path, ImportFileError)  # its size and depth
    else:
        check_archive(path, ImportFileError, "Inspect AI log")
    try:
        header = log.read_eval_log(str(path), header_only=True)
        number = failed = 0
        for number, sample in enumerate(_read_samples(log, path, header), start=1):
            failed += sample.error is not None
            yield f"{path}: sample {sample.id}, epoch {sample.epoch} (number {number})", header, sample
        if problems := _find_problems(header, number, failed):
            report_problem(f"{path}: {'; '.join(problems)}.")
    except AuditorError:
        raise
    except Exception:  # noqa: BLE001 - a broken archive, JSON or log: its reader raises what its libraries raise
        raise ImportFileError(f"{path}: is not a valid Inspect AI log.", "Check that it is complete.") from None


def _find_problems(header: EvalLog, n_samples: int, n_failed: int) -> list[str]:
    """List why a log is incomplete; empty for a complete log.

    Args:
        header: header of the log.
        n_samples: samples that the log holds.
        n_failed: samples that ended with an error.
    """
    problems = []
    if header.status in STATUS_PROBLEMS:
        message = escape_invisible(header.error.message.strip().split("\n", 1)[0][:200]) if header.error else ""
        problems.append(STATUS_PROBLEMS[header.status] + (f" ({message})" if message else ""))
    if header.invalidated:
        problems.append("it is marked as invalid")
    planned = _count_planned_samples(header)
    if planned is not None and n_samples < planned:
        problems.append(f"{planned - n_samples:,} of its {planned:,} samples are missing")
    elif not n_samples:
        problems.append("it holds no samples")
    if n_failed:
        problems.append(f"{n_failed:,} of its samples ended with an error and count as failures")
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
    auditor_metadata: dict[str, Any] = (log.eval.metadata or {}).get(METADATA_KEY) or {}
    country, topic = _parse_cell(location, sample, keys)
    score_name = keys.score or (SCORE_NAME if auditor_metadata else None)
    recorded_score = (sample.scores or {}).get(score_name) if score_name else None
    missing = (
        recorded_score is None or recorded_score.value != recorded_score.value
    )  # Inspect marks a sample without a score by nan
    score = (
        None
        if recorded_score is None or missing or sample.error is not None
        else require_score(location, recorded_score.value)
    )
    text = sample.output.completion or None
    if auditor_metadata and recorded_score is not None and not missing:
        text = recorded_score.explanation or text
    outcome = Outcome.OK if score is not None else _sample_outcome(sample, bool(auditor_metadata), text)
    if score_name and missing and outcome is Outcome.OK:
        outcome = Outcome.UNPARSED  # the scorer gave no score on purpose, so the text is not parsed for one
    model = auditor_metadata.get("model") or log.eval.model
    return RecordedAnswer(location, str(model), country, topic, None, text, outcome, score)


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


def find_sample_outcome(sample: EvalSample, text: str | None) -> Outcome:
    """Outcome of a sample from its error, limit or stop reason; `ok` if it has a text, whatever the text says."""
    if sample.error is not None:
        return Outcome.CLIENT_ERROR
    if sample.limit is not None and sample.limit.type in LIMIT_OUTCOMES:
        return LIMIT_OUTCOMES[sample.limit.type]
    if sample.output.choices and (stop_outcome := finish_reason_outcome(sample.output.stop_reason)) is not None:
        return stop_outcome
    return Outcome.CLIENT_ERROR if text is None else Outcome.OK
