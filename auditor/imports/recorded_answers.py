"""Answers that were recorded elsewhere, whatever program recorded them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from auditor.domain import SCORE_MAX, SCORE_MIN, Outcome
from auditor.errors import ImportFileError
from auditor.imports.row_scores import parse_row_score
from auditor.input_files import read_json
from auditor.surveys.row_reader import TABLE_SUFFIXES, read_column_names, read_rows

TABLE_COLUMNS = ("model", "country", "topic", "sample", "text")
LOG_SUFFIXES = (".eval", ".json")
MAX_LISTED_KEYS = 12
"""Keys that a message names."""


class AnswerFileFormat(StrEnum):
    """What a file of answers is."""

    AUTO = "auto"
    TABLE = "table"
    INSPECT = "inspect"
    PROMPTFOO = "promptfoo"


class LogKeys(NamedTuple):
    """Under what names a log of another program has what an audit needs; None for the score reads it off the text."""

    country: str = "country"
    topic: str = "topic"
    score: str | None = None


class RecordedAnswer(NamedTuple):
    """One recorded answer.

    Attributes:
        where: it stood, for messages.
        sample: None where the file does not number samples: then they are numbered in its order.
        outcome: of the call; `ok` where words came, whatever they say.
        score: in [-1, 1], where the file has one; else it is read off the text.
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
    """Recorded answers in a file, or in all the logs of a folder.

    Args:
        path: a table with `model,country,topic,sample,text[,score]`; a log of Inspect AI (`.eval`, `.json`); results of
            promptfoo (`.json`, `.jsonl`); or a folder of logs.
        form: which of these; `auto` looks.
        keys: names of country, topic and score in a log.
        note: receives a line for each log that lacks some of its answers.

    Raises:
        ImportFileError: a file that is none of these, or an answer that cannot be used; the message names it.
        UsageError: a log of Inspect, and Inspect is not installed.
    """
    if not path.is_dir():
        yield from _read_file(path, file_format, keys or LogKeys(), report_problem)
        return
    logs = sorted(p for p in path.iterdir() if p.suffix.lower() in LOG_SUFFIXES and p.is_file())
    if not logs:
        raise ImportFileError(f"{path}: holds no log.", f"Name a file, or a folder with {' or '.join(LOG_SUFFIXES)}.")
    for log in logs:
        yield from _read_file(log, file_format, keys or LogKeys(), report_problem)


def _read_file(
    path: Path, file_format: AnswerFileFormat, keys: LogKeys, report_problem: Callable[[str], None]
) -> Iterator[RecordedAnswer]:
    from auditor.imports.inspect_logs import read_inspect_log
    from auditor.imports.promptfoo import read_promptfoo

    readers: dict[AnswerFileFormat, Callable[[Path, LogKeys], Iterator[RecordedAnswer]]] = {
        AnswerFileFormat.TABLE: _read_table,
        AnswerFileFormat.INSPECT: functools.partial(read_inspect_log, report_problem=report_problem),
        AnswerFileFormat.PROMPTFOO: read_promptfoo,
    }
    return readers[detect_format(path) if file_format is AnswerFileFormat.AUTO else file_format](path, keys)


def detect_format(path: Path) -> AnswerFileFormat:
    """What a file is, by its suffix and its outermost keys.

    Raises:
        ImportFileError: it is JSON that neither program writes.
    """
    suffix = path.suffix.lower()
    if suffix == ".eval":
        return AnswerFileFormat.INSPECT
    if suffix == ".jsonl" and {"testIdx", "promptIdx"} & read_column_names(path):
        return AnswerFileFormat.PROMPTFOO
    if suffix != ".json":
        return AnswerFileFormat.TABLE
    found = load_json(path)
    if isinstance(found, dict) and {"eval", "version"} <= found.keys():
        return AnswerFileFormat.INSPECT
    if isinstance(found, dict) and {"results", "evalId"} & found.keys():
        return AnswerFileFormat.PROMPTFOO
    raise ImportFileError(
        f"{path}: is neither a log of Inspect AI nor results of promptfoo.", f"A table is {', '.join(TABLE_SUFFIXES)}."
    )


def load_json(path: Path) -> Any:
    """A file of JSON.

    Raises:
        ImportFileError: it cannot be read, or is none.
    """
    return read_json(path, ImportFileError)


def find_text(location: str, key: str, *mappings: Mapping[str, Any] | None) -> str:
    """What stands under a key, whatever its case, in the first place that has it.

    Raises:
        ImportFileError: nowhere, or it is no text.
    """
    for place in mappings:
        for name, value in (place or {}).items():
            if name.lower() != key.lower() or value is None:
                continue
            if not isinstance(value, str) or not value.strip():
                raise ImportFileError(f"{location}: '{name}' is no name.", "Write it as text that is not empty.")
            return value.strip()
    there = list(dict.fromkeys(name for place in mappings for name in place or {}))
    known = ", ".join(there[:MAX_LISTED_KEYS]) or "none"
    raise ImportFileError(
        f"{location}: does not say its {key}; its keys are: {known}.",
        "Say which key has it: --country KEY, --topic KEY.",
    )


def require_score(location: str, value: Any) -> float:
    """A number in [-1, 1].

    Raises:
        ImportFileError: it is none, such as a grade or a share of 100.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not SCORE_MIN <= value <= SCORE_MAX:
        raise ImportFileError(
            f"{location}: the score {value!r} is no number in [-1, 1].",
            "Name a score on the survey's scale with --score, or leave it out: then it is read off the text.",
        )
    return float(value)


def _read_table(path: Path, _: LogKeys) -> Iterator[RecordedAnswer]:
    for row in read_rows(path, TABLE_COLUMNS, ["score"]):
        text = row.cells["text"]
        yield RecordedAnswer(
            location=row.location,
            model=row.required_text("model"),
            country=row.required_text("country"),
            topic=row.required_text("topic"),
            sample=row.integer("sample"),
            text=text or None,
            outcome=Outcome.OK if text else Outcome.CLIENT_ERROR,
            score=parse_row_score(row),
        )
