"""Logs of Inspect AI as recorded answers, read by Inspect's own reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from auditor.domain import Outcome
from auditor.errors import AuditorError, ImportFileError
from auditor.exports.inspect_samples import BETWEEN, MARK, SCORE
from auditor.extras import load_extra
from auditor.imports.recorded_answers import Keys, Recorded, named, usable_score
from auditor.input_files import require_file
from auditor.models.finish_reasons import outcome_of
from auditor.text_safety import visible

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

LIMITED = {"time": Outcome.TIMEOUT, "working": Outcome.TIMEOUT, "token": Outcome.TRUNCATED, "cost": Outcome.OVER_BUDGET}
ENDED = {
    "started": "its run did not finish",
    "cancelled": "its run was cancelled",
    "error": "its run ended with an error",
}
"""What the status of a log says of its run, but for `success`."""


def inspect_answers(path: Path, keys: Keys, note: Callable[[str], None] = lambda line: None) -> Iterator[Recorded]:
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
        for number, sample in enumerate(_samples(log, path, header), start=1):
            failed += sample.error is not None
            yield _answer(f"{path}: sample {sample.id}, epoch {sample.epoch} (number {number})", header, sample, keys)
        if problems := _problems(header, number, failed):
            note(f"{path}: {'; '.join(problems)}.")
    except AuditorError:
        raise
    except Exception:  # noqa: BLE001 - a broken archive, JSON or log: its reader raises what its libraries raise
        raise ImportFileError(f"{path}: cannot be read as a log of Inspect AI.", "Check that it is complete.") from None


def _problems(header: EvalLog, samples: int, failed: int) -> list[str]:
    """Why a log has less than its run was meant to give; empty for a complete log.

    Args:
        header: of the log.
        samples: how many it holds; failed: those that ended with an error.
    """
    problems = []
    if header.status in ENDED:
        message = visible(header.error.message.strip().split("\n", 1)[0][:200]) if header.error else ""
        problems.append(ENDED[header.status] + (f" ({message})" if message else ""))
    if header.invalidated:
        problems.append("it is marked as invalid")
    planned = _planned(header)
    if planned is not None and samples < planned:
        problems.append(f"{planned - samples:,} of its {planned:,} samples are missing")
    elif not samples:
        problems.append("it holds no samples")
    if failed:
        problems.append(f"{failed:,} of its samples ended with an error and count as failures")
    return problems


def _planned(header: EvalLog) -> int | None:
    """How many samples the run was meant to have, over all epochs; None where the log does not say."""
    dataset, config = header.eval.dataset, header.eval.config
    epochs = config.epochs or 1
    known = [len(dataset.sample_ids or ()) * epochs, header.results.total_samples if header.results else 0]
    if config.limit is None and config.sample_id is None:  # else only a part of the dataset was run
        known.append((dataset.samples or 0) * epochs)
    return max(known) or None


def _samples(log: ModuleType, path: Path, header: EvalLog) -> Iterable[EvalSample]:
    """One at a time, where the log lists them; some writers do not."""
    if header.eval.dataset.sample_ids is None:
        return log.read_eval_log(str(path)).samples or ()
    found: Iterable[EvalSample] = log.read_eval_log_samples(str(path), all_samples_required=False)
    return found


def _answer(where: str, log: EvalLog, sample: EvalSample, keys: Keys) -> Recorded:
    ours: dict[str, Any] = (log.eval.metadata or {}).get(MARK) or {}
    country, topic = _cell(where, sample, keys)
    wanted = keys.score or (SCORE if ours else None)
    found = (sample.scores or {}).get(wanted) if wanted else None
    missing = found is None or found.value != found.value  # Inspect marks a sample without a score by nan
    score = None if found is None or missing or sample.error is not None else usable_score(where, found.value)
    text = sample.output.completion or None
    if ours and found is not None and not missing:
        text = found.explanation or text
    outcome = Outcome.OK if score is not None else _outcome(sample, bool(ours), text)
    if wanted and missing and outcome is Outcome.OK:
        outcome = Outcome.UNPARSED  # whoever scored it declined to; the text is not read over their head
    model = ours.get("model") or log.eval.model
    return Recorded(where, str(model), country, topic, None, text, outcome, score)


def _cell(where: str, sample: EvalSample, keys: Keys) -> tuple[str, str]:
    identifier = str(sample.id)
    try:
        return named(where, keys.country, sample.metadata), named(where, keys.topic, sample.metadata)
    except ImportFileError:
        if BETWEEN in identifier and not sample.metadata:
            country, topic = identifier.split(BETWEEN, 1)
            return country.strip(), topic.strip()
        raise


def _outcome(sample: EvalSample, ours: bool, text: str | None) -> Outcome:
    told = sample.metadata.get("outcome")
    if ours and told in tuple(Outcome) and told != Outcome.OK:
        return Outcome(told)
    if sample.error is not None:
        return Outcome.CLIENT_ERROR
    if sample.limit is not None and sample.limit.type in LIMITED:
        return LIMITED[sample.limit.type]
    if sample.output.choices and (stopped := outcome_of(sample.output.stop_reason)) is not None:
        return stopped
    return Outcome.CLIENT_ERROR if text is None else Outcome.OK
