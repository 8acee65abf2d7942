"""Logs of Inspect AI as recorded answers, read by Inspect's own reader."""

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
from auditor.input_files import require_file
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
"""What the status of a log says of its run, but for `success`."""


def read_inspect_log(
    path: Path, keys: LogKeys, report_problem: Callable[[str], None] = lambda line: None
) -> Iterator[RecordedAnswer]:
    """The samples of a log in its order: id by id, epoch by epoch.

    A sample's country and topic are those of its metadata; its model, the log's. A score is taken where `keys` names
    one, and from logs that we wrote; else it is read off the text, since a grade says nothing of a survey's scale. A
    sample that ended with an error is a failure, whatever score it has.

    Args:
        path: the log.
        keys: names of country, topic and score.
        note: receives what is wrong with the log as a whole, such as samples that it lacks.

    Raises:
        ImportFileError: no log, or a sample that cannot be used.
        UsageError: Inspect is not installed.
    """
    log = load_extra("inspect_ai.log", "inspect")
    require_file(path, ImportFileError)
    try:
        header = log.read_eval_log(str(path), header_only=True)
        number = failed = 0
        for number, sample in enumerate(_read_samples(log, path, header), start=1):
            failed += sample.error is not None
            yield _parse_answer(
                f"{path}: sample {sample.id}, epoch {sample.epoch} (number {number})", header, sample, keys
            )
        if problems := _find_problems(header, number, failed):
            report_problem(f"{path}: {'; '.join(problems)}.")
    except AuditorError:
        raise
    except Exception:  # noqa: BLE001 - a broken archive, JSON or log: its reader raises what its libraries raise
        raise ImportFileError(f"{path}: cannot be read as a log of Inspect AI.", "Check that it is complete.") from None


def _find_problems(header: EvalLog, n_samples: int, n_failed: int) -> list[str]:
    """Why a log has less than its run was meant to give; empty for a complete log.

    Args:
        header: of the log.
        samples: how many it holds; failed: those that ended with an error.
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
    """How many samples the run was meant to have, over all epochs; None where the log does not say."""
    dataset, config = header.eval.dataset, header.eval.config
    epochs = config.epochs or 1
    known = [len(dataset.sample_ids or ()) * epochs, header.results.total_samples if header.results else 0]
    if config.limit is None and config.sample_id is None:  # else only a part of the dataset was run
        known.append((dataset.samples or 0) * epochs)
    return max(known) or None


def _read_samples(log: ModuleType, path: Path, header: EvalLog) -> Iterable[EvalSample]:
    """One at a time, where the log lists them; some writers do not."""
    if header.eval.dataset.sample_ids is None:
        return log.read_eval_log(str(path)).samples or ()
    found: Iterable[EvalSample] = log.read_eval_log_samples(str(path), all_samples_required=False)
    return found


def _parse_answer(location: str, log: EvalLog, sample: EvalSample, keys: LogKeys) -> RecordedAnswer:
    ours: dict[str, Any] = (log.eval.metadata or {}).get(METADATA_KEY) or {}
    country, topic = _parse_cell(location, sample, keys)
    wanted = keys.score or (SCORE_NAME if ours else None)
    found = (sample.scores or {}).get(wanted) if wanted else None
    missing = found is None or found.value != found.value  # Inspect marks a sample without a score by nan
    score = None if found is None or missing or sample.error is not None else require_score(location, found.value)
    text = sample.output.completion or None
    if ours and found is not None and not missing:
        text = found.explanation or text
    outcome = Outcome.OK if score is not None else _sample_outcome(sample, bool(ours), text)
    if wanted and missing and outcome is Outcome.OK:
        outcome = Outcome.UNPARSED  # whoever scored it declined to; the text is not read over their head
    model = ours.get("model") or log.eval.model
    return RecordedAnswer(location, str(model), country, topic, None, text, outcome, score)


def _parse_cell(location: str, sample: EvalSample, keys: LogKeys) -> tuple[str, str]:
    identifier = str(sample.id)
    try:
        return find_text(location, keys.country, sample.metadata), find_text(location, keys.topic, sample.metadata)
    except ImportFileError:
        if CELL_SEPARATOR in identifier and not sample.metadata:
            country, topic = identifier.split(CELL_SEPARATOR, 1)
            return country.strip(), topic.strip()
        raise


def _sample_outcome(sample: EvalSample, is_auditor_log: bool, text: str | None) -> Outcome:
    told = sample.metadata.get("outcome")
    if is_auditor_log and told in tuple(Outcome) and told != Outcome.OK:
        return Outcome(told)
    if sample.error is not None:
        return Outcome.CLIENT_ERROR
    if sample.limit is not None and sample.limit.type in LIMIT_OUTCOMES:
        return LIMIT_OUTCOMES[sample.limit.type]
    if sample.output.choices and (stopped := finish_reason_outcome(sample.output.stop_reason)) is not None:
        return stopped
    return Outcome.CLIENT_ERROR if text is None else Outcome.OK
