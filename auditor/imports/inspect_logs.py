"""Logs of Inspect AI as recorded answers, read by Inspect's own reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from auditor.domain import Outcome
from auditor.errors import AuditorError, ImportFileError
from auditor.exports.inspect_samples import BETWEEN, MARK, SCORE
from auditor.extras import load_extra
from auditor.imports.logs import Keys, Recorded, named, usable_score
from auditor.input_files import require_file

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

STOPPED = {"max_tokens": Outcome.TRUNCATED, "model_length": Outcome.TRUNCATED, "content_filter": Outcome.REFUSED}
LIMITED = {"time": Outcome.TIMEOUT, "working": Outcome.TIMEOUT, "token": Outcome.TRUNCATED, "cost": Outcome.OVER_BUDGET}


def inspect_answers(path: Path, keys: Keys) -> Iterator[Recorded]:
    """The samples of a log in its order: id by id, epoch by epoch.

    A sample's country and topic are those of its metadata; its model, the log's. A score is taken where `keys` names
    one, and from logs that we wrote; else it is read off the text, since a grade says nothing of a survey's scale.

    Raises:
        ImportFileError: no log, or a sample that cannot be used.
        UsageError: Inspect is not installed.
    """
    log = load_extra("inspect_ai.log", "inspect")
    require_file(path, ImportFileError)
    try:
        header = log.read_eval_log(str(path), header_only=True)
        for number, sample in enumerate(_samples(log, path, header), start=1):
            yield _answer(f"{path}: sample {sample.id}, epoch {sample.epoch} (number {number})", header, sample, keys)
    except AuditorError:
        raise
    except Exception:  # noqa: BLE001 - a broken archive, JSON or log: its reader raises what its libraries raise
        raise ImportFileError(f"{path}: cannot be read as a log of Inspect AI.", "Check that it is complete.") from None


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
    score = None if found is None or missing else usable_score(where, found.value)
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
    if sample.limit is not None and sample.limit.type in LIMITED:
        return LIMITED[sample.limit.type]
    if sample.output.choices and sample.output.stop_reason in STOPPED:
        return STOPPED[sample.output.stop_reason]
    if sample.error is not None or text is None:
        return Outcome.CLIENT_ERROR
    return Outcome.OK
