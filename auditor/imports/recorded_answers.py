"""Read recorded answers from a table, or from logs of Inspect AI or promptfoo."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from auditor.agents.refusals import begins_with_refusal, has_words
from auditor.domain import SCORE_MAX, SCORE_MIN, Outcome
from auditor.errors import ImportFileError
from auditor.imports.score_table import parse_row_score
from auditor.input_files import read_json
from auditor.models.reasoning import strip_thinking
from auditor.surveys.distributions import parse_enum_cell
from auditor.surveys.row_reader import read_column_names, read_rows
from auditor.surveys.table_formats import FORMATS_TEXT, find_suffix
from auditor.text_safety import escape_for_storage

TABLE_COLUMNS = ("model", "country", "topic", "sample", "text")
LOG_SUFFIXES = (".eval", ".json")
MAX_LISTED_KEYS = 12
"""Largest number of available keys that an error message lists."""


class AnswerFileFormat(StrEnum):
    """Format of a file of answers; `auto` detects it."""

    AUTO = "auto"
    TABLE = "table"
    INSPECT = "inspect"
    PROMPTFOO = "promptfoo"


class LogKeys(NamedTuple):
    """Keys under which a log holds country, topic and score; with `score` None, scores are parsed from the text."""

    country: str = "country"
    topic: str = "topic"
    score: str | None = None


class RecordedAnswer(NamedTuple):
    """One recorded answer.

    Attributes:
        location: file and row or sample, for messages.
        sample: number of the sample; None if the file does not number them, so that they are numbered in its order.
        outcome: outcome of the call; `ok` if it returned text, whatever the text says.
        score: in [-1, 1]; None if the file has none, so that it is parsed from the text.
    """

    location: str
    model: str
    country: str
    topic: str
    sample: int | None
    text: str | None
    outcome: Outcome
    score: float | None = None


def read_recorded_answers(
    path: Path,
    file_format: AnswerFileFormat = AnswerFileFormat.AUTO,
    keys: LogKeys | None = None,
    report_problem: Callable[[str], None] = lambda line: None,
) -> Iterator[RecordedAnswer]:
    """Read the recorded answers of a file, or of all logs in a folder.

    Args:
        path: a table with `model,country,topic,sample,text[,score]`; a log of Inspect AI (`.eval`, `.json`); results of
            promptfoo (`.json`, `.jsonl`); or a folder of logs.
        file_format: format of the file or files; `auto` detects it.
        keys: keys of country, topic and score in a log.
        report_problem: receives a line for each log that lacks some of its answers.

    Raises:
        ImportFileError: a file has none of these formats, or an answer cannot be used; the message names it.
        UsageError: the file is a log of Inspect, and Inspect is not installed.
    """
    files = [
        (file, detect_format(file) if file_format is AnswerFileFormat.AUTO else file_format) for file in list_logs(path)
    ]
    has_score = False
    files_by_model: dict[str, dict[Path, None]] = {}
    for answer_file, answer in _read_files(files, keys or LogKeys(), report_problem):
        has_score |= answer.score is not None
        files_by_model.setdefault(answer.model, {})[answer_file] = None
        yield answer
    if keys is not None and keys.score is not None and files_by_model and not has_score:
        raise ImportFileError(
            f"{path}: no answer has a usable score '{keys.score}'.",
            "Name a score of the log, or omit --score to parse scores from the text.",
        )
    for model, answer_files in files_by_model.items():
        if len(answer_files) > 1:
            report_problem(describe_joined_logs(model, [file.name for file in answer_files]))


def describe_joined_logs(model: str, names: Iterable[str]) -> str:
    """Say that the answers of several logs are taken for one model's."""
    return f"The answers of {model} in {', '.join(names)} are of one model: several to one question are repetitions."


def list_logs(path: Path) -> list[Path]:
    """The logs of a folder in order of their names, or the path itself if it is no folder.

    Raises:
        ImportFileError: the folder contains no log.
    """
    if not path.is_dir():
        return [path]
    logs = sorted(file for file in path.iterdir() if file.suffix.lower() in LOG_SUFFIXES and file.is_file())
    if not logs:
        raise ImportFileError(
            f"{path}: the folder contains no log.", f"Name a file, or a folder with {' or '.join(LOG_SUFFIXES)}."
        )
    return logs


def _read_files(
    files: Sequence[tuple[Path, AnswerFileFormat]], keys: LogKeys, report_problem: Callable[[str], None]
) -> Iterator[tuple[Path, RecordedAnswer]]:
    """Read the answers of files, each with the reader of its format; arguments as in `read_recorded_answers`."""
    from auditor.imports.inspect_logs import SampleKey, read_inspect_log, sort_retries  # imports this module: a cycle
    from auditor.imports.promptfoo import read_promptfoo  # imports this module: a cycle

    seen: set[SampleKey] = set()
    readers: dict[AnswerFileFormat, Callable[[Path, LogKeys], Iterator[RecordedAnswer]]] = {
        AnswerFileFormat.TABLE: _read_table,
        AnswerFileFormat.INSPECT: functools.partial(read_inspect_log, report_problem=report_problem, seen=seen),
        AnswerFileFormat.PROMPTFOO: functools.partial(read_promptfoo, report_problem=report_problem),
    }
    format_by_path = dict(files)
    paths = list(format_by_path)
    if len(paths) > 1 and AnswerFileFormat.INSPECT in format_by_path.values():
        paths = sort_retries(paths)
    for path in paths:
        is_table = format_by_path[path] is AnswerFileFormat.TABLE  # its reader names the line of such a text
        for answer in readers[format_by_path[path]](path, keys):
            yield path, answer if is_table else _make_storable(answer)


def _make_storable(answer: RecordedAnswer) -> RecordedAnswer:
    """Copy an answer of a log with NUL and lone surrogates as visible escapes, as in answers that a run records."""
    return answer._replace(
        model=escape_for_storage(answer.model),
        country=escape_for_storage(answer.country),
        topic=escape_for_storage(answer.topic),
        text=None if answer.text is None else escape_for_storage(answer.text),
    )


def detect_format(path: Path) -> AnswerFileFormat:
    """Detect the format of a file by its suffix and its top-level keys.

    Raises:
        ImportFileError: the file is JSON, but of neither program.
    """
    suffix = find_suffix(path)
    if suffix == ".eval":
        return AnswerFileFormat.INSPECT
    if suffix == ".jsonl" and {"testIdx", "promptIdx"} & read_column_names(path):
        return AnswerFileFormat.PROMPTFOO
    if suffix != ".json":
        return AnswerFileFormat.TABLE
    document = read_json(path, ImportFileError)
    if isinstance(document, dict) and {"eval", "version"} <= document.keys():
        return AnswerFileFormat.INSPECT
    if isinstance(document, dict) and {"results", "evalId"} & document.keys():
        return AnswerFileFormat.PROMPTFOO
    raise ImportFileError(
        f"{path}: is neither an Inspect AI log nor a promptfoo result file.",
        f"Tables must be files of these kinds: {FORMATS_TEXT}.",
    )


def find_text(location: str, key: str, *mappings: Mapping[str, Any] | None) -> str:
    """Text under a key, ignoring case, in the first of the mappings that has it; stripped of white space.

    Raises:
        ImportFileError: no mapping has the key, or its value is no text or empty.
    """
    for mapping in mappings:
        for name, value in (mapping or {}).items():
            if name.lower() != key.lower() or value is None:
                continue
            if not isinstance(value, str) or not value.strip():
                raise ImportFileError(
                    f"{location}: the value of '{name}' is empty or not a text.", "Write a text in quotes."
                )
            return value.strip()
    available_keys = list(dict.fromkeys(name for mapping in mappings for name in mapping or {}))
    listed_keys = ", ".join(available_keys[:MAX_LISTED_KEYS]) or "none"
    raise ImportFileError(
        f"{location}: the {key} is missing; the keys are: {listed_keys}.",
        "Name the key: --country KEY, --topic KEY. For questions with right answers, which are about no country: "
        "auditor import task-answers.",
    )


def require_score(location: str, value: Any) -> float:
    """Return a score as a float in [-1, 1].

    Raises:
        ImportFileError: it is no number in that range, such as a grade or a percentage.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not SCORE_MIN <= value <= SCORE_MAX:
        raise ImportFileError(
            f"{location}: the score {value!r} is not a number from -1 to 1.",
            "Name a score on the survey's scale with --score, or omit --score to parse it from the text.",
        )
    return float(value)


def find_scored_outcome(text: str | None) -> Outcome:
    """Outcome of an answer that another program scored: scorers give a number to an empty answer or a refusal, too."""
    visible_text = strip_thinking(text or "")
    if not has_words(visible_text):
        return Outcome.UNPARSED
    return Outcome.REFUSED if begins_with_refusal(visible_text) else Outcome.OK


def _read_table(path: Path, _: LogKeys) -> Iterator[RecordedAnswer]:
    """Read a table with `model,country,topic,sample,text[,score][,outcome]`.

    Without an outcome, a row without text and score is a failed call, and one with a score is an answer whose text is
    not recorded. `auditor export tables` writes outcomes.
    """
    for row in read_rows(path, TABLE_COLUMNS, ["score", "outcome"]):
        text = row.cells["text"]
        outcome = parse_enum_cell(row, "outcome", Outcome, str.lower)
        score = parse_row_score(row) if outcome in (None, Outcome.OK) else None
        if outcome is None and text:
            outcome = Outcome.OK if score is None else find_scored_outcome(text)
        elif outcome is None:
            outcome = Outcome.CLIENT_ERROR if score is None else Outcome.OK
        yield RecordedAnswer(
            location=row.location,
            model=row.required_text("model"),
            country=row.required_text("country"),
            topic=row.required_text("topic"),
            sample=row.integer("sample"),
            text=text or None,
            outcome=outcome,
            score=score if outcome is Outcome.OK else None,
        )
