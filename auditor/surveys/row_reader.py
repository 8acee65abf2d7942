"""Read a table in any supported format as rows of text, each with its location for error messages.

Types are not inferred: the caller converts each column, so that `NA` (Namibia) and `NO` (Norway) stay texts.
"""

from __future__ import annotations

import csv
import difflib
import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from auditor.errors import ImportFileError
from auditor.input_files import (
    SAVE_AS_UTF8,
    find_non_utf8_line,
    iterate_line_blocks,
    open_text,
    parse_json,
    require_columns,
    require_file,
)
from auditor.packed_files import iterate_parquet, read_parquet_columns
from auditor.surveys.table_formats import (
    SPREADSHEET_ERRORS,
    STATISTICS_SUFFIXES,
    WINDOWS_1252,
    LabelledColumn,
    NumberStyle,
    StoredValue,
    find_delimiter,
    find_encoding,
    find_number_style,
    find_suffix,
    format_number,
    has_decimal_commas,
    iterate_spreadsheet,
    looks_like_thousands,
    make_unknown_format_error,
    parse_number,
    points_may_separate_thousands,
    read_statistics_file,
    reject_other_formats,
    reject_separator_line,
    require_one_row,
)
from auditor.text_safety import truncate_text

T = TypeVar("T")
ColumnCheck = Callable[[Sequence[str], str], None]
"""Raises ImportFileError for invalid column names; the second argument is their location in the file."""
MAX_NAME_CHARS = 40
"""Characters of a column name in an error message: a file that is not a table may have one very long line."""
MAX_WHOLE_NUMBER = 999_999_999
"""Largest whole number: a database's 32-bit column can store it on every system."""
BATCH_ROWS = 10_000
"""Most rows of typed cells that are read at a time."""
TEXT_BATCH_ROWS = 1_000
"""Most rows of a text file that are read at a time: the texts of 10,000 leave the processor's cache, and take twice
as long."""
BATCH_CHARS = 1 << 22
"""Characters of text from which on a batch ends: of long texts, few are in memory at once."""
FLAG_VALUES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
DELIMITER_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
BYTE_ORDER_MARK = "\ufeff"
# A NUL character, or a lone surrogate: half of a character in UTF-16.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_TYPE_NAMES: dict[type, str] = {dict: "table", list: "list", bytes: "run of bytes", date: "date", datetime: "date"}


def _has_no_commas(_: str) -> NumberStyle:
    """The style of numbers in a row that no file's columns belong to."""
    return NumberStyle.POINT


class TextRow(NamedTuple):
    """One row: its location for error messages, and its cells as text by column; a missing value is an empty string.

    Attributes:
        find_style: finds out what commas mean in the numbers of a column of the file.
    """

    location: str
    cells: dict[str, str]
    find_style: Callable[[str], NumberStyle] = _has_no_commas

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
        if text.isdecimal() and len(text) < 10:
            return int(text)
        style = self._style_of(column, text)
        number = parse_number(text, style)
        if style is NumberStyle.UNCLEAR:
            raise self._make_number_error(column, text, style)
        if "%" in text or not 0 <= number <= MAX_WHOLE_NUMBER or not number.is_integer():
            raise self.make_cell_error(
                column, f"'{truncate_text(text)}' is not a whole number", "Write a whole number from 0."
            )
        return int(number)

    def number(self, column: str) -> float | None:
        """Return a cell as a finite number; None if it is empty. A percentage is divided by 100.

        Raises:
            ImportFileError: it is not such a number, or the commas of the column can be read in two ways.
        """
        text = self.cells[column]
        if not text:
            return None
        style = self._style_of(column, text)
        number = parse_number(text, style)
        if number != number:  # nan
            raise self._make_number_error(column, text, style)
        return number

    def flag(self, column: str) -> bool | None:
        """Return a cell that is true or false; None if it is empty.

        Raises:
            ImportFileError: it is neither.
        """
        text = self.cells[column]
        if not text:
            return None
        if text.lower() not in FLAG_VALUES:
            problem = f"'{truncate_text(text)}' is neither true nor false"
            raise self.make_cell_error(column, problem, "Write true or false, or leave it empty.")
        return FLAG_VALUES[text.lower()]

    def flags(self, columns: Iterable[str]) -> dict[str, bool]:
        """Return the cells that are true or false by column, without the empty ones; raises as `flag`."""
        return {column: value for column in columns if (value := self.flag(column)) is not None}

    def with_decimal_point(self, column: str) -> str:
        """Return a cell; a number with a decimal comma, by the other numbers of its column, with a point instead.

        Raises:
            ImportFileError: it is a number whose point may separate thousands, in a file whose decimals have commas.
        """
        text = self.cells[column]
        if "," not in text and not looks_like_thousands(text):
            return text
        style = self.find_style(column)
        if style is NumberStyle.UNCLEAR and looks_like_thousands(text):
            raise self._make_number_error(column, text, style)
        is_decimal = style is NumberStyle.DECIMAL_COMMA and not math.isnan(parse_number(text, style))
        return text.replace(",", ".") if is_decimal else text

    def _style_of(self, column: str, text: str) -> NumberStyle:
        """What a comma, or a point that may separate thousands, means in a number of a column."""
        return self.find_style(column) if "," in text or looks_like_thousands(text) else NumberStyle.POINT

    def _make_number_error(self, column: str, text: str, style: NumberStyle) -> ImportFileError:
        """Build the error about a text that cannot be read as a number, or not in one way only."""
        how_to_fix = "Write a number, or leave it empty."
        if style is NumberStyle.UNCLEAR:
            mark = "commas in this column" if "," in text else "points in this file, whose decimals have commas,"
            how_to_fix = f"The {mark} can be read in two ways. Write 0.5, not 0,5; and 1234, not 1,234 or 1.234."
        return self.make_cell_error(column, f"'{truncate_text(text)}' is not a number", how_to_fix)

    def make_cell_error(self, column: str, problem: str, how_to_fix: str) -> ImportFileError:
        """Build an error about a cell, for the caller to raise."""
        return ImportFileError(f"{self.location}, column '{column}': {problem}.", how_to_fix)


class ColumnBatch(NamedTuple):
    """Consecutive rows of a file by column, which are faster to convert than single rows.

    Attributes:
        place: the file and the unit of `numbers`, as in `scores.csv: line`.
        numbers: number of each row in the file.
        columns: texts by column; a missing value is an empty string.
        find_style: as in `TextRow`.
    """

    place: str
    numbers: Sequence[int]
    columns: dict[str, list[str]]
    find_style: Callable[[str], NumberStyle]

    def row(self, index: int) -> TextRow:
        """Return the row at a position in this batch."""
        cells = {name: texts[index] for name, texts in self.columns.items()}
        return TextRow(f"{self.place} {self.numbers[index]}", cells, self.find_style)


def read_rows(
    path: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    missing_column_hint: str = "Add or rename it.",
    *,
    booleans: Collection[str] = (),
) -> Iterator[TextRow]:
    """Yield the rows of a tidy file; arguments and errors as for `read_batches`."""
    for batch in read_batches(path, required, optional, missing_column_hint, booleans=booleans):
        names = list(batch.columns)
        for number, cells in zip(batch.numbers, zip(*batch.columns.values(), strict=True), strict=True):
            yield TextRow(f"{batch.place} {number}", dict(zip(names, cells, strict=True)), batch.find_style)


def read_batches(
    path: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    missing_column_hint: str = "Add or rename it.",
    *,
    booleans: Collection[str] = (),
) -> Iterator[ColumnBatch]:
    """Yield the rows of a tidy file in batches; its suffix selects the format.

    Args:
        path: a file with one of `table_formats.TABLE_SUFFIXES`; text may also be packed (`.csv.gz`). In SPSS and Stata
            files, a value that has a label is read as its label, and one that is declared as missing as empty.
        required: columns that the file must have, in upper or lower case.
        optional: columns that the file may have; further columns are ignored, unless one looks like a misspelling.
        missing_column_hint: how to fix a missing required column, for the error message.
        booleans: columns in which typed files may have true and false, which become "true" and "false".

    Raises:
        ImportFileError: unknown suffix or encoding, content that does not match the suffix, a missing, duplicate or
            misspelt column, or a row that does not fit the header; the message names file, line and column.
    """
    known_columns = [*required, *optional]

    def check(columns: Sequence[str], location: str) -> None:
        """Raise ImportFileError if the columns of the file, or of the row at `location`, are not as expected."""
        require_columns(columns, location, ImportFileError)
        _check_columns(columns, required, known_columns, location, missing_column_hint)

    styles: dict[str, NumberStyle] = {}

    def read_texts(column: str) -> Iterator[str]:
        """Read the texts of a column from the file again."""
        return (text for batch in _read_raw_batches(path, known_columns) for text in _texts(batch, column))

    def find_style(column: str) -> NumberStyle:
        """Find out what commas and points mean in the numbers of a column."""
        if column not in styles:
            style = find_number_style(read_texts(column), delimiter)
            has_unclear_points = style is NumberStyle.POINT and points_may_separate_thousands(read_texts(column))
            styles[column] = NumberStyle.UNCLEAR if has_unclear_points and has_decimal_commas(path) else style
        return styles[column]

    checked_names: Sequence[str] | None = None
    to_text = functools.partial(_cell_to_text, booleans=booleans)
    try:
        for raw in _read_raw_batches(path, known_columns, required):
            delimiter = raw.delimiter
            if raw.names != checked_names:
                check(raw.names, raw.header_location)
                checked_names = raw.names
            columns = _convert_columns(raw, known_columns, to_text)
            yield ColumnBatch(f"{path}: {raw.unit}", raw.numbers, columns, find_style)
    except UnicodeDecodeError:
        raise ImportFileError(f"{path}: a text is not UTF-8.", SAVE_AS_UTF8) from None
    except OSError as error:
        how_to_fix = "Check that the file is complete and that you may read it."
        raise ImportFileError(f"{path}: cannot be read: {error.strerror or error}.", how_to_fix) from None


def read_column_names(path: Path) -> set[str]:
    """Return the column names of a file, to recognise its layout; empty if it cannot be read."""
    if not path.is_file():
        return set()
    try:
        return set(next((batch.names for batch in _read_raw_batches(path, ())), ()))
    except (OSError, ValueError, RecursionError, ImportFileError):
        return set()


# --- columns ----------------------------------------------------------------------------------------------------


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


def _rename_columns(names: Sequence[str], known_columns: Sequence[str]) -> list[str]:
    """Spell the known columns as the caller does where the file spells them in another case."""
    present = set(names)
    known_by_folded = {name.casefold(): name for name in known_columns if name not in present}
    return [known_by_folded.get(name.casefold(), name) for name in names]


def _convert_columns(
    raw: _RawBatch, known_columns: Sequence[str], to_text: Callable[[Any, str, str], str]
) -> dict[str, list[str]]:
    """Return the known columns of a batch as text.

    Raises:
        ImportFileError: a cell is neither text nor a number, or cannot be stored.
    """
    columns = {}
    for column in known_columns:
        cells = raw.columns[raw.names.index(column)] if column in raw.names else None
        if cells is None:
            columns[column] = [""] * len(raw.numbers)
            continue
        if raw.is_text:
            texts = list(map(str.strip, cells))
            if not SPREADSHEET_ERRORS.isdisjoint(texts):
                _raise_spreadsheet_error(raw, column, texts)
        else:
            texts = [
                to_text(cell, f"{raw.location} {number}", column)
                for cell, number in zip(cells, raw.numbers, strict=True)
            ]
        # Joined texts are checked at once; line breaks in answers are not printable either.
        if not (joined := "".join(texts)).isprintable():
            if BYTE_ORDER_MARK in joined:  # files were joined: else the first name of each of them is another one
                texts = [text.strip(BYTE_ORDER_MARK).strip() for text in texts]
            _require_storable(raw, column, texts)
        columns[column] = texts
    return columns


def _raise_spreadsheet_error(raw: _RawBatch, column: str, texts: Sequence[str]) -> None:
    """Raise ImportFileError for a text that a spreadsheet wrote instead of the result of a formula."""
    position = next(i for i, text in enumerate(texts) if text in SPREADSHEET_ERRORS)
    row = TextRow(f"{raw.location} {raw.numbers[position]}", {})
    raise row.make_cell_error(
        column, f"has the error {texts[position]} of a spreadsheet", "Correct the formula, or leave the cell empty."
    )


def _texts(raw: _RawBatch, column: str) -> list[str]:
    """The texts of a column of a batch; none if it does not have the column."""
    cells = raw.columns[raw.names.index(column)] if column in raw.names else ()
    return [cell for cell in cells if isinstance(cell, str)]


def _require_storable(raw: _RawBatch, column: str, texts: Sequence[str]) -> None:
    """Raise ImportFileError for a NUL character or lone surrogate, which databases cannot store.

    Spreadsheets and truncated model answers may contain them.
    """
    for text, number in zip(texts, raw.numbers, strict=True):
        if not text.isprintable() and (unstorable := _UNSTORABLE.search(text)):
            description = "a NUL character" if unstorable[0] == "\0" else "an incomplete character (a lone surrogate)"
            row = TextRow(f"{raw.location} {number}", {})
            raise row.make_cell_error(column, f"has {description}", "Remove it.")


# --- formats ----------------------------------------------------------------------------------------------------


class _RawBatch(NamedTuple):
    """Consecutive rows of a file as its format stores them.

    Attributes:
        location: file and unit of `numbers`, as in `scores.csv: line`.
        header_location: where the names are, for messages.
        names: of the columns in the file, known ones in the caller's spelling.
        columns: cells by position of the name in `names`.
        numbers: number of each row in the file.
        is_text: whether all cells are texts.
        delimiter: of a text file.
    """

    path: Path
    unit: str
    header_location: str
    names: Sequence[str]
    columns: Sequence[Sequence[Any]]
    numbers: Sequence[int]
    is_text: bool = False
    delimiter: str = ","

    @property
    def location(self) -> str:
        """File and unit of `numbers`, as in `scores.csv: line`."""
        return f"{self.path}: {self.unit}"


def _read_raw_batches(path: Path, known_columns: Sequence[str], required: Sequence[str] = ()) -> Iterator[_RawBatch]:
    """Yield the rows of a file with the reader of its format; without rows, one batch that has only the names.

    Raises:
        ImportFileError: as `read_batches`, but for invalid columns.
    """
    suffix = find_suffix(path)
    readers: dict[str, Callable[[Path, Sequence[str]], Iterator[_RawBatch]]] = {
        ".csv": _read_delimited,
        ".tsv": _read_delimited,
        ".jsonl": _read_json_lines,
        ".parquet": _read_parquet,
        ".xlsx": functools.partial(_read_spreadsheet, required=required),
        **dict.fromkeys(STATISTICS_SUFFIXES, _read_statistics),
    }
    if suffix not in readers:
        raise make_unknown_format_error(path)
    require_file(path, ImportFileError)
    reject_other_formats(path)
    yield from readers[suffix](path, known_columns)


def _read_delimited(path: Path, known_columns: Sequence[str]) -> Iterator[_RawBatch]:
    """Yield the rows of a CSV or TSV file; raise ImportFileError for one that does not fit the header."""
    with open_text(path, ImportFileError, find_encoding(path)) as file:
        lines = _CountedLines(iterate_line_blocks(file, str(path), ImportFileError))
        remaining_lines = iter(lines)
        first_line = next(remaining_lines, "")
        reject_separator_line(first_line, path)
        delimiter = find_delimiter(first_line, find_suffix(path))
        require_columns(first_line.count(delimiter) + 1, str(path), ImportFileError)  # before a list of them is made
        reader = csv.reader(itertools.chain([first_line], remaining_lines), strict=True, delimiter=delimiter)
        try:
            header = [name.strip().strip(BYTE_ORDER_MARK) for name in next(reader, [])]
            folded = sorted(map(_fold_name, header))
            folded_names = frozenset(folded)
            names = _rename_columns(header, known_columns)
            make_batch = functools.partial(_RawBatch, path, "line", str(path), names, is_text=True, delimiter=delimiter)
            rows: list[list[str]] = []
            numbers: list[int] = []
            width, is_first, line = len(names), True, reader.line_num
            for cells in reader:
                start, line = line + 1, reader.line_num
                if not any(map(str.strip, cells)) and len(cells) != 1:  # blank, as spreadsheets leave below a table
                    continue
                if len(cells) != width:
                    problem = f"line {line} has {len(cells)} fields where the header has {width}"
                    quoting = f"Put text that contains {DELIMITER_NAMES[delimiter]} in double quotes."
                    raise ImportFileError(f"{path}: {problem}.", quoting)
                if width > 1 and _fold_name(cells[0]) in folded_names and sorted(map(_fold_name, cells)) == folded:
                    how_to_fix = "Files were joined: delete that line if their columns are in the same order."
                    raise ImportFileError(f"{path}: line {line} is the header again.", how_to_fix)
                if line > start:
                    require_one_row(cells, delimiter, f"{path}: line {start}")
                rows.append(cells)
                numbers.append(line)
                if len(rows) == TEXT_BATCH_ROWS or lines.n_chars > BATCH_CHARS:
                    yield make_batch(list(zip(*rows, strict=True)), numbers)
                    rows, numbers, is_first, lines.n_chars = [], [], False, 0
            if rows or is_first:
                yield make_batch(list(zip(*rows, strict=True)) or [()] * width, numbers)
        except csv.Error as error:
            location = f"{path}: line {reader.line_num}"
            if "field limit" in str(error):
                problem = f"{location} has a field of more than {csv.field_size_limit():,} characters."
                raise ImportFileError(
                    problem, "Add the missing quote, or save long texts as JSONL or Parquet."
                ) from None
            raise ImportFileError(f"{location} is not valid CSV: {error}.", "Correct that line.") from None


def _fold_name(cell: str) -> str:
    """The name of a column as it is compared: in one case, and without the byte order mark of a joined file."""
    return cell.strip().strip(BYTE_ORDER_MARK).casefold()


class _CountedLines(Iterable[str]):
    """Lines of a file; `n_chars` is the length of the blocks of lines that were read since it was last set to 0."""

    def __init__(self, blocks: Iterator[list[str]]) -> None:
        self._blocks, self.n_chars = blocks, 0

    def __iter__(self) -> Iterator[str]:
        for lines in self._blocks:
            self.n_chars += sum(map(len, lines))
            yield from lines


def _read_json_lines(path: Path, known_columns: Sequence[str]) -> Iterator[_RawBatch]:
    """Yield the objects of a JSONL file; a batch ends where the keys change."""
    with open_text(path, ImportFileError, _find_json_encoding(path)) as file:
        records: list[dict[str, Any]] = []
        numbers: list[int] = []
        lines = _CountedLines(iterate_line_blocks(file, str(path), ImportFileError))

        def make_batch() -> _RawBatch:
            """Build a batch of the records read so far."""
            lines.n_chars = 0
            keys = list(records[0])
            columns = [[record[key] for record in records] for key in keys]
            names = _rename_columns(keys, known_columns)
            return _RawBatch(path, "line", f"{path}: line {numbers[0]}", names, columns, numbers)

        for line_number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            location = f"{path}: line {line_number}"
            record = parse_json(line, location, ImportFileError, "Write one object per line.")
            if not isinstance(record, dict):
                raise ImportFileError(
                    f"{location} is not a JSON object.", 'Write one object per line: {"country": ...}.'
                )
            is_full = len(records) == TEXT_BATCH_ROWS or lines.n_chars > BATCH_CHARS
            if records and (is_full or record.keys() != records[0].keys()):
                yield make_batch()
                records, numbers = [], []
            records.append(record)
            numbers.append(line_number)
        if records:
            yield make_batch()


def _find_json_encoding(path: Path) -> str:
    """The encoding of a JSONL file; raise ImportFileError for one that JSON does not allow."""
    encoding = find_encoding(path)
    if encoding == WINDOWS_1252:
        line = find_non_utf8_line(path, ImportFileError)
        raise ImportFileError(f"{path}: line {line} is not UTF-8.", SAVE_AS_UTF8)
    return encoding


def _read_parquet(path: Path, known_columns: Sequence[str]) -> Iterator[_RawBatch]:
    """Yield the rows of a Parquet file, known columns only."""
    file_names = read_parquet_columns(path, ImportFileError)
    names = _rename_columns(file_names, known_columns)
    selected = [file_name for file_name, name in zip(file_names, names, strict=True) if name in known_columns]
    records = enumerate(iterate_parquet(path, ImportFileError, selected) if selected else (), start=1)
    is_first = True
    while (batch := _take_batch(records, lambda record: record.values())) or is_first:
        is_first = False
        columns = [[record.get(name) for _, record in batch] for name in file_names]
        yield _RawBatch(path, "row", str(path), names, columns, [number for number, _ in batch])


def _take_batch(records: Iterator[tuple[int, T]], get_cells: Callable[[T], Iterable[Any]]) -> list[tuple[int, T]]:
    """Take the next numbered records of a file until the batch is full; none at the end of the file."""
    batch, n_chars = [], 0
    for number, record in itertools.islice(records, BATCH_ROWS):
        batch.append((number, record))
        n_chars += sum(len(cell) for cell in get_cells(record) if isinstance(cell, str))
        if n_chars > BATCH_CHARS:
            break
    return batch


def _read_spreadsheet(path: Path, known_columns: Sequence[str], required: Sequence[str]) -> Iterator[_RawBatch]:
    """Yield the rows of a spreadsheet's first sheet; empty rows are left out."""
    sheet = iterate_spreadsheet(path, required, known_columns)
    header = [str(cell).strip() if cell is not None else "" for cell in next(sheet, [])]
    while header and not header[-1]:
        header.pop()
    names = _rename_columns(header, known_columns)
    numbered = ((number, cells) for number, cells in enumerate(sheet, start=2) if not all(map(_is_blank, cells)))
    is_first = True
    while (batch := _take_batch(numbered, lambda cells: cells)) or is_first:
        is_first = False
        for number, cells in batch:
            if any(cell is not None for cell in cells[len(names) :]):
                raise ImportFileError(f"{path}: row {number} has a cell below no header.", "Name all columns.")
        columns = [[cells[i] if i < len(cells) else None for _, cells in batch] for i in range(len(names))]
        yield _RawBatch(path, "row", str(path), names, columns, [number for number, _ in batch])


def _is_blank(cell: Any) -> bool:
    """Whether a cell shows nothing."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _read_statistics(path: Path, known_columns: Sequence[str]) -> Iterator[_RawBatch]:
    """Yield the rows of an SPSS or Stata file: labels where values have them, nothing where they are missing."""
    names: list[str] = []

    def select(file_names: Sequence[str]) -> list[str]:
        names.extend(_rename_columns(file_names, known_columns))
        return [file_name for file_name, name in zip(file_names, names, strict=True) if name in known_columns]

    by_name = {column.name: column for column in read_statistics_file(path, select, keep_missing=False)}
    known = dict(zip(_rename_columns(list(by_name), known_columns), by_name.values(), strict=True))
    n_rows = max((len(column.values) for column in known.values()), default=0)
    columns = [_label_values(known[name], path) if name in known else [None] * n_rows for name in names]
    yield _RawBatch(path, "row", str(path), names, columns, range(1, n_rows + 1))


def _label_values(column: LabelledColumn, path: Path) -> list[StoredValue]:
    """The labels of a column's values, or the values if none has a label.

    Raises:
        ImportFileError: only some have one, as the ends of a scale: 1 would be "never", and 2 the number.
    """
    numbers = {value for value in column.values if isinstance(value, float)}
    labelled = {number for number in numbers if number in column.labels}
    if labelled and numbers != labelled:
        first, other = min(labelled), min(numbers - labelled)
        raise ImportFileError(
            f"{path}: column '{column.name}': {format_number(first)} has the label '{column.labels[first]}', and "
            f"{format_number(other)} has none.",
            "Label all values of the column, or remove its labels.",
        )
    return [column.labels.get(value, value) for value in column.values]


def _cell_to_text(value: Any, location: str, column: str, booleans: Collection[str]) -> str:
    """Return a typed cell as text, empty if it is missing; raise ImportFileError for other values."""
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if isinstance(value, bool) and column in booleans:
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value):
        return format_number(value)
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value)
    description = str(value).lower() if isinstance(value, bool) else f"a {_TYPE_NAMES.get(type(value), 'value')}"
    raise ImportFileError(
        f"{location}, column '{column}': {description} is neither text nor a number.",
        'Put text in quotes: "NO", not NO.' if isinstance(value, bool) else "Write a string or a number.",
    )
