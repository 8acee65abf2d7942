"""Rows of text out of a CSV, JSONL or Parquet file, each with where it stood; nothing is guessed about types.

Cells are kept as text until their column says what they are, so that `NA` (Namibia) and `NO` (Norway) survive.
"""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from auditor.errors import ImportFileError

SUFFIXES = (".csv", ".jsonl", ".parquet")


class Row(NamedTuple):
    """One row: where it stood, for messages, and its cells as text; an absent value is the empty string."""

    where: str
    cells: dict[str, str]


def read_rows(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> Iterator[Row]:
    """Rows of a tidy file, chosen by its suffix.

    Args:
        path: a `.csv`, `.jsonl` or `.parquet` file; text is UTF-8, with or without a byte order mark.
        required: columns that must be there.
        optional: columns that may be there; others are left out, unless one looks like a misspelt known column.

    Raises:
        ImportFileError: unknown suffix, not UTF-8, not what its suffix says, a column that is missing, twice or
            misspelt, or a row that does not fit the header; the message names file, line and column.
    """
    readers = {".csv": _csv_rows, ".jsonl": _jsonl_rows, ".parquet": _parquet_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        suffix = f"the suffix '{path.suffix}'" if path.suffix else "no suffix"
        raise ImportFileError(f"{path}: has {suffix}, which says no known format.", f"Name it {', '.join(SUFFIXES)}.")
    wanted = [*required, *optional]
    try:
        for row in reader(path, required, wanted):
            yield Row(row.where, {key: row.cells.get(key, "") for key in wanted})
    except UnicodeDecodeError as error:
        raise ImportFileError(f"{path}: byte {error.start + 1} is not UTF-8.", "Save the file as UTF-8.") from None
    except OSError as error:
        raise ImportFileError(f"{path}: cannot be read: {error.strerror or error}.") from None


def _check_columns(columns: Iterable[str], required: Sequence[str], wanted: Sequence[str], where: str) -> None:
    columns = list(columns)
    twice = sorted({c for c in columns if columns.count(c) > 1})
    if twice:
        raise ImportFileError(f"{where}: the column '{twice[0]}' is there twice.", "Keep one.")
    for column in columns:
        near = difflib.get_close_matches(column.lower(), [w for w in wanted if w not in columns], n=1, cutoff=0.8)
        if column not in wanted and near:
            raise ImportFileError(f"{where}: unknown column '{column}'.", f"Did you mean '{near[0]}'?")
    missing = [r for r in required if r not in columns]
    if missing:
        there = ", ".join(columns[:20]) or "none"
        raise ImportFileError(
            f"{where}: the column '{missing[0]}' is missing; there are: {there}.", "Add or rename it."
        )


def _csv_rows(path: Path, required: Sequence[str], wanted: Sequence[str]) -> Iterator[Row]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
                raise ImportFileError(
                    f"{path}: columns are not separated by commas.", "Save it as comma-separated CSV."
                )
            _check_columns(header, required, wanted, str(path))
            for cells in reader:
                if not cells:
                    continue
                where = f"{path}: line {reader.line_num}"
                if len(cells) != len(header):
                    problem = f"has {len(cells)} fields where the header has {len(header)}"
                    raise ImportFileError(f"{where} {problem}.", "Put text that holds a comma in double quotes.")
                yield Row(where, dict(zip(header, (c.strip() for c in cells), strict=True)))
        except csv.Error as error:
            raise ImportFileError(f"{path}: line {reader.line_num} is not CSV: {error}.", "Mend that line.") from None


def _jsonl_rows(path: Path, required: Sequence[str], wanted: Sequence[str]) -> Iterator[Row]:
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path}: line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ImportFileError(f"{where} is not JSON: {error}.", "Write one object a line.") from None
            if not isinstance(record, dict):
                raise ImportFileError(f"{where} is no JSON object.", 'Write one object a line: {"country": ...}.')
            _check_columns(record, required, wanted, where)
            yield Row(where, {key: _as_text(record[key], where, key) for key in wanted if key in record})


def _parquet_rows(path: Path, required: Sequence[str], wanted: Sequence[str]) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise ImportFileError(f"{path}: is not Parquet: {error}.", "Does its suffix say what it is?") from None
    with file:
        columns = file.schema_arrow.names
        _check_columns(columns, required, wanted, str(path))
        number = 0
        for batch in file.iter_batches(columns=[c for c in columns if c in wanted]):
            for record in batch.to_pylist():
                number += 1
                where = f"{path}: row {number}"
                yield Row(where, {key: _as_text(value, where, key) for key, value in record.items()})


def _as_text(value: Any, where: str, column: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value)
    raise ImportFileError(
        f"{where}, column '{column}': {value!r} is neither text nor a number.",
        'Put text in quotes: "NO", not NO.' if isinstance(value, bool) else "Write a plain value.",
    )
