"""Read a CSV, JSONL or Parquet file as rows of text, each with its location for error messages.

Types are not inferred: the caller converts each column, so that `NA` (Namibia) and `NO` (Norway) stay texts.
"""

from __future__ import annotations

import csv
import difflib
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from auditor.errors import ImportFileError
from auditor.input_files import (
    SAVE_AS_UTF8,
    find_non_utf8_line,
    iterate_lines,
    iterate_parquet,
    open_text,
    parse_json,
    read_parquet_columns,
    require_columns,
    require_file,
)
from auditor.surveys.file_signatures import reject_other_formats
from auditor.text_safety import truncate_text

ColumnCheck = Callable[[Sequence[str], str], None]
"""Raises ImportFileError for invalid column names; the second argument is their location in the file."""
CellFormatter = Callable[[Any, str, str], str]
"""Returns a value of a JSON or Parquet cell as text; the other arguments are its location and column."""
TABLE_SUFFIXES = (".csv", ".jsonl", ".parquet")
MAX_NAME_CHARS = 40
"""Characters of a column name in an error message: a file that is not a table may have one very long line."""
MAX_DIGITS = 9
"""Digits of a whole number: a database's 32-bit column can store it on every system."""
# A NUL character, or a lone surrogate: half of a character in UTF-16.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_TYPE_NAMES: dict[type, str] = {dict: "table", list: "list", bytes: "run of bytes"}


class TextRow(NamedTuple):
    """One row: its location for error messages, and its cells as text by column; a missing value is an empty string."""

    location: str
    cells: dict[str, str]

    def required_text(self, column: str) -> str:
        """Return the text of a cell.

        Raises:
            ImportFileError: the cell is empty.
        """
        if not self.cells[column]:
            raise ImportFileError(
                f"{self.location}: the column '{column}' is empty in this row.", "Fill it in, or remove the row."
            )
        return self.cells[column]

    def integer(self, column: str) -> int:
        """Return a cell as a whole number from 0; 0 if it is empty.

        Raises:
            ImportFileError: it is not such a number.
        """
        text = self.cells[column] or "0"
        if not text.isdecimal() or len(text) > MAX_DIGITS:
            raise self.make_cell_error(
                column, f"'{truncate_text(text)}' is not a whole number", "Write a whole number from 0."
            )
        return int(text)

    def number(self, column: str) -> float | None:
        """Return a cell as a finite number; None if it is empty.

        Raises:
            ImportFileError: it is not such a number.
        """
        text = self.cells[column]
        if not text:
            return None
        try:
            number = math.nan if "_" in text else float(text)  # Python reads 1_0 as 10
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            how_to_fix = "Write 0.5, not 0,5." if "," in text else "Write a number, or leave it empty."
            raise self.make_cell_error(column, f"'{truncate_text(text)}' is not a number", how_to_fix)
        return number + 0.0  # -0.0 becomes 0.0

    def make_cell_error(self, column: str, problem: str, how_to_fix: str) -> ImportFileError:
        """Build an error about a cell, for the caller to raise."""
        return ImportFileError(f"{self.location}, column '{column}': {problem}.", how_to_fix)


def read_rows(
    path: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    missing_column_hint: str = "Add or rename it.",
    *,
    booleans: Collection[str] = (),
) -> Iterator[TextRow]:
    """Yield the rows of a tidy file; its suffix selects the format.

    Args:
        path: a `.csv`, `.jsonl` or `.parquet` file; text is UTF-8, with or without a byte order mark.
        required: columns that the file must have.
        optional: columns that the file may have; further columns are ignored, unless one looks like a misspelling.
        missing_column_hint: how to fix a missing required column, for the error message.
        booleans: columns in which JSONL and Parquet files may have true and false, which become "true" and "false".

    Raises:
        ImportFileError: unknown suffix, not UTF-8, content that does not match the suffix, a missing, duplicate or
            misspelt column, or a row that does not fit the header; the message names file, line and column.
    """
    readers = {".csv": _read_csv_rows, ".jsonl": _read_jsonl_rows, ".parquet": _read_parquet_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        suffix = f"the suffix '{path.suffix}'" if path.suffix else "no suffix"
        raise ImportFileError(f"{path}: files with {suffix} are not supported.", f"Use {', '.join(TABLE_SUFFIXES)}.")
    known_columns = [*required, *optional]
    require_file(path, ImportFileError)
    reject_other_formats(path, "a Parquet file" if reader is _read_parquet_rows else "text")

    def check(columns: Sequence[str], location: str) -> None:
        """Raise ImportFileError if the columns of the file, or of the row at `location`, are not as expected."""
        require_columns(columns, location, ImportFileError)
        _check_columns(columns, required, known_columns, location, missing_column_hint)

    try:
        for row in reader(path, known_columns, check, functools.partial(_cell_to_text, booleans=booleans)):
            _require_storable(row)
            yield TextRow(row.location, {key: row.cells.get(key, "") for key in known_columns})
    except UnicodeDecodeError:
        text_location = f"line {line}" if (line := find_non_utf8_line(path, ImportFileError)) else "a text"
        raise ImportFileError(f"{path}: {text_location} is not UTF-8.", SAVE_AS_UTF8) from None
    except OSError as error:
        how_to_fix = "Check that the file is complete and that you may read it."
        raise ImportFileError(f"{path}: cannot be read: {error.strerror or error}.", how_to_fix) from None


def _require_storable(row: TextRow) -> None:
    """Raise ImportFileError for a NUL character or lone surrogate, which databases cannot store.

    Spreadsheets and truncated model answers may contain them.
    """
    for column, text in row.cells.items():
        if not text.isprintable() and (unstorable := _UNSTORABLE.search(text)):
            description = "a NUL character" if unstorable[0] == "\0" else "an incomplete character (a lone surrogate)"
            raise row.make_cell_error(column, f"has {description}", "Remove it.")


def read_column_names(path: Path) -> set[str]:
    """Return the column names of a file, to recognise its layout; empty if it cannot be read."""
    if not path.is_file():
        return set()
    try:
        if path.suffix.lower() == ".parquet":
            return set(read_parquet_columns(path, ImportFileError))
        with open_text(path, ImportFileError) as file:
            lines = iterate_lines(file, str(path), ImportFileError)
            if path.suffix.lower() == ".jsonl":
                record = json.loads(next(lines, ""))
                return set(record) if isinstance(record, dict) else set()
            return {name.strip() for name in next(csv.reader(lines), [])}
    except (OSError, ValueError, RecursionError, csv.Error, ImportFileError):
        return set()


def _check_columns(
    columns: Sequence[str],
    required: Sequence[str],
    known_columns: Sequence[str],
    location: str,
    missing_column_hint: str,
) -> None:
    """Raise ImportFileError for a duplicate or missing column, or one that looks like a misspelling."""
    duplicates = sorted(column for column, count in Counter(columns).items() if count > 1)
    if duplicates:
        raise ImportFileError(
            f"{location}: the column '{duplicates[0][:MAX_NAME_CHARS]}' occurs twice.", "Remove one of the columns."
        )
    missing = [column for column in required if column not in columns]
    # One missing column may be misspelt; if several are missing, it is probably the wrong file.
    if len(missing) < 2:
        _check_spelling(columns, known_columns, location)
    if missing:
        omitted_count = f" and {len(columns) - 10} more" if len(columns) > 10 else ""
        column_list = ", ".join(column[:MAX_NAME_CHARS] for column in columns[:10]) or "none"
        raise ImportFileError(
            f"{location}: the column '{missing[0]}' is missing; the file has: {column_list}{omitted_count}.",
            missing_column_hint,
        )


def _check_spelling(columns: Sequence[str], known_columns: Sequence[str], location: str) -> None:
    """Raise ImportFileError if an unknown column is spelt almost like a known column that is absent."""
    absent_columns = [column for column in known_columns if column not in columns]
    for column in (name for name in columns if name not in known_columns):
        similar_columns = difflib.get_close_matches(column.lower(), absent_columns, n=1, cutoff=0.8)
        if similar_columns:
            raise ImportFileError(f"{location}: unknown column '{column}'.", f"Did you mean '{similar_columns[0]}'?")


def _read_csv_rows(path: Path, _: Sequence[str], check_columns: ColumnCheck, __: CellFormatter) -> Iterator[TextRow]:
    """Yield the rows of a CSV file with all its columns; raise ImportFileError for one that does not fit the header."""
    with open_text(path, ImportFileError) as file:
        reader = csv.reader(iterate_lines(file, str(path), ImportFileError), strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
                raise ImportFileError(
                    f"{path}: columns are not separated by commas.", "Save it as comma-separated CSV."
                )
            check_columns(header, str(path))
            for cells in reader:
                if not cells:
                    continue
                location = f"{path}: line {reader.line_num}"
                if len(cells) != len(header):
                    problem = f"has {len(cells)} fields where the header has {len(header)}"
                    raise ImportFileError(f"{location} {problem}.", "Put text that contains a comma in double quotes.")
                yield TextRow(location, dict(zip(header, (cell.strip() for cell in cells), strict=True)))
        except csv.Error as error:
            location = f"{path}: line {reader.line_num}"
            if "field limit" in str(error):
                problem = f"{location} has a field of more than {csv.field_size_limit():,} characters."
                raise ImportFileError(
                    problem, "Add the missing quote, or save long texts as JSONL or Parquet."
                ) from None
            raise ImportFileError(f"{location} is not valid CSV: {error}.", "Correct that line.") from None


def _read_jsonl_rows(
    path: Path, known_columns: Sequence[str], check_columns: ColumnCheck, to_text: CellFormatter
) -> Iterator[TextRow]:
    """Yield the rows of a JSONL file, known columns only; columns are checked again when they change."""
    checked_columns: Set[str] = set()
    with open_text(path, ImportFileError) as file:
        for line_number, line in enumerate(iterate_lines(file, str(path), ImportFileError), start=1):
            if not line.strip():
                continue
            location = f"{path}: line {line_number}"
            record = parse_json(line, location, ImportFileError, "Write one object per line.")
            if not isinstance(record, dict):
                raise ImportFileError(
                    f"{location} is not a JSON object.", 'Write one object per line: {"country": ...}.'
                )
            if record.keys() != checked_columns:
                check_columns(list(record), location)
                checked_columns = record.keys()
            yield TextRow(
                location, {key: to_text(record[key], location, key) for key in known_columns if key in record}
            )


def _read_parquet_rows(
    path: Path, known_columns: Sequence[str], check_columns: ColumnCheck, to_text: CellFormatter
) -> Iterator[TextRow]:
    """Yield the rows of a Parquet file, known columns only; raise ImportFileError if it cannot be read."""
    names = read_parquet_columns(path, ImportFileError)
    check_columns(names, str(path))
    for row_number, record in enumerate(iterate_parquet(path, ImportFileError, known_columns), start=1):
        location = f"{path}: row {row_number}"
        yield TextRow(location, {key: to_text(cell, location, key) for key, cell in record.items()})


def _cell_to_text(value: Any, location: str, column: str, booleans: Collection[str]) -> str:
    """Return a JSON or Parquet text or number as text, empty if missing; raise ImportFileError for other values."""
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if isinstance(value, bool) and column in booleans:
        return str(value).lower()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value)
    description = str(value).lower() if isinstance(value, bool) else f"a {_TYPE_NAMES.get(type(value), 'value')}"
    raise ImportFileError(
        f"{location}, column '{column}': {description} is neither text nor a number.",
        'Put text in quotes: "NO", not NO.' if isinstance(value, bool) else "Write a string or a number.",
    )
