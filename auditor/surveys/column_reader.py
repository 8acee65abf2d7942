"""Read a few columns of a large file as codes with their labels; skip all other columns."""

from __future__ import annotations

import csv
import dataclasses
import difflib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError
from auditor.input_files import open_binary, open_text, require_columns, require_file
from auditor.lazy_imports import import_when_used
from auditor.surveys.row_reader import read_batches, read_column_names
from auditor.surveys.table_formats import (
    DELIMITERS,
    NA,
    STATISTICS_SUFFIXES,
    TABLE_SUFFIXES,
    UTF_8,
    LabelledColumn,
    find_delimiter,
    find_encoding,
    find_suffix,
    make_unknown_format_error,
    normalize_numbers,
    read_statistics_file,
    reject_other_formats,
    reject_separator_line,
    require_one_row,
)

if not TYPE_CHECKING:
    pa = import_when_used("pyarrow")
    pa_csv = import_when_used("pyarrow.csv")
else:
    import pyarrow as pa
    import pyarrow.csv as pa_csv

# What R, Stata, pandas, Excel and databases write for a missing value.
_MISSING_MARKER = re.compile(r"n/?a|#n/a|nan|<na>|\\n|null|none|\.[a-z]?|-+")
READ_BLOCK_BYTES = 4 << 20
"""Bytes that pyarrow parses at a time: 4 MiB."""

ColumnValue = str | float | None
ColumnSelection = Callable[[Sequence[str]], list[str]]
"""Receives the names of a file's columns and returns those to read; raises ImportFileError if one is missing."""


@dataclass(frozen=True, slots=True)
class DistinctValueColumn:
    """A column, stored as its distinct values and each row's position among them.

    Attributes:
        name: the column's name as spelled in the file.
        values: distinct values, text or number; None for an empty field.
        labels: value labels from the file; empty for CSV.
        value_index: shape (rows,), position of each row's value in `values`.
        row_numbers: shape (rows,), number of each row: in a spreadsheet, that which programs show; of JSONL, its line;
            else from 1 below the header.
        missing: values that an SPSS file declares as missing; a mapping may list them as nonresponse or a group.
        has_commas: whether the file has commas in the column's numbers, which `values` have as points or without.
    """

    name: str
    values: tuple[ColumnValue, ...]
    labels: Mapping[ColumnValue, str]
    value_index: NDArray[np.int32]
    row_numbers: NDArray[np.int64]
    missing: frozenset[ColumnValue] = frozenset()
    has_commas: bool = False

    def select_rows(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> DistinctValueColumn:
        """Return the column with the rows of a mask, or of positions, and only the values that occur in them."""
        used_positions, new_index = np.unique(self.value_index[rows], return_inverse=True)
        values = tuple(self.values[i] for i in used_positions)
        return dataclasses.replace(
            self, values=values, value_index=new_index.astype(np.int32), row_numbers=self.row_numbers[rows]
        )

    def replace_rows(self, rows: NDArray[np.bool_], value: ColumnValue) -> DistinctValueColumn:
        """Return the column with another value in the rows for which the mask is true."""
        if not rows.any():
            return self
        values = self.values if value in self.values else (*self.values, value)
        value_index = np.where(rows, values.index(value), self.value_index).astype(np.int32)
        return dataclasses.replace(self, values=values, value_index=value_index)

    def blank_missing(self) -> DistinctValueColumn:
        """Return the column with an empty field in place of each value that the file declares as missing."""
        is_missing = np.array([value in self.missing for value in self.values], np.bool_)[self.value_index]
        return self.replace_rows(is_missing, None).select_rows(np.ones_like(is_missing)) if self.missing else self

    def first_row_number(self, value_position: int) -> int:
        """Number of the first row that has `values[value_position]`; 0 if none has it."""
        row_numbers = self.row_numbers[self.value_index == value_position]
        return int(row_numbers[0]) if row_numbers.size else 0

    def count_rows(self, value_position: int) -> int:
        """Number of rows that have `values[value_position]`."""
        return int(np.count_nonzero(self.value_index == value_position))


def read_columns(
    path: Path, candidate_names: Sequence[Sequence[str]], optional_names: Sequence[str] = ()
) -> list[DistinctValueColumn]:
    """Read columns of a table in any supported format.

    Args:
        candidate_names: for each column the names that it may have, best first, in any case.
        optional_names: further columns that the file may have, in any case.

    Returns:
        One column for each entry of `candidate_names`, and then those of `optional_names` that the file has.

    Raises:
        ImportFileError: the file is missing, does not match its suffix, is empty or lacks a column (the message
            names it); or the package that reads it is not installed.
    """

    def select(header: Sequence[str]) -> list[str]:
        """Return the columns to read; raise ImportFileError if one is missing."""
        return _match_column_names(header, candidate_names, optional_names, path)

    return _read_selected_columns(path, select)


def list_column_names(path: Path) -> list[str]:
    """Return the names of a file's columns, without repeated and empty ones; errors as for `read_columns`."""
    names: list[str] = []

    def select(header: Sequence[str]) -> list[str]:
        """Remember the names, and return one column to read."""
        counts = Counter(name.casefold() for name in header)
        names.extend(name for name in header if name and counts[name.casefold()] == 1)
        return names[:1] or list(header[:1])

    _read_selected_columns(path, select)
    return names


def _read_selected_columns(path: Path, select: ColumnSelection) -> list[DistinctValueColumn]:
    """Read the columns that a function selects by the header; errors as for `read_columns`."""
    require_file(path, ImportFileError, "Download it from the survey's publisher, named in the mapping.")
    suffix = find_suffix(path)
    if suffix not in TABLE_SUFFIXES:
        raise make_unknown_format_error(path)
    reject_other_formats(path)
    if suffix in (".csv", ".tsv"):
        columns = _read_csv(path, select)
    elif suffix in STATISTICS_SUFFIXES:
        # Codes of nonresponse are often declared as missing.
        columns = [_from_labelled(column) for column in read_statistics_file(path, select, keep_missing=True)]
    else:
        columns = _read_text_columns(path, select)
    if not columns[0].value_index.size:
        raise ImportFileError(f"{path}: the file has no rows below the header.", "Check that the file is complete.")
    return columns


def _from_labelled(column: LabelledColumn) -> DistinctValueColumn:
    """Convert a column of an SPSS or Stata file."""
    positions: dict[ColumnValue, int] = {}
    index = np.array(
        [
            positions.setdefault((value.strip() or None) if isinstance(value, str) else value, len(positions))
            for value in column.values
        ],
        np.int32,
    )
    # In the order of their values, as codebooks list them.
    order = sorted(positions, key=lambda value: (value is None, isinstance(value, str), value or 0))
    new_positions = {value: position for position, value in enumerate(order)}
    value_index = np.array([new_positions[value] for value in positions], np.int32)[index] if positions else index
    return DistinctValueColumn(
        column.name,
        tuple(order),
        column.labels,
        value_index,
        np.arange(1, len(column.values) + 1),
        frozenset(column.missing),
    )


def _read_text_columns(path: Path, select: ColumnSelection) -> list[DistinctValueColumn]:
    """Read columns of a file that is not CSV through the reader of rows; errors as for `read_columns`."""
    next(read_batches(path, ()), None)  # raises what is wrong with the file
    names = select(sorted(read_column_names(path)))
    texts_by_name: dict[str, list[str]] = {name: [] for name in names}
    numbers: list[int] = []
    for batch in read_batches(path, names):
        numbers += batch.numbers
        for name, texts in batch.columns.items():
            texts_by_name[name] += texts
    indices = np.arange(len(numbers), dtype=np.int32)
    columns = {name: _make_text_column(name, texts, DELIMITERS[0], indices) for name, texts in texts_by_name.items()}
    return [dataclasses.replace(columns[name], row_numbers=np.array(numbers, np.int64)) for name in names]


def _match_column_names(
    header: Sequence[str], candidate_names: Sequence[Sequence[str]], optional_names: Sequence[str], path: Path
) -> list[str]:
    """Return for each column the first candidate name that is in the header; raise ImportFileError if none is.

    The optional names that are in the header follow. The same spelling wins over one in another case.
    """
    name_by_folded = {name.casefold(): name for name in header}
    exact_names = set(header)

    def find(name: str) -> str | None:
        """The name as the header spells it; raise ImportFileError if several spellings differ from it."""
        if name in exact_names or name.casefold() not in name_by_folded:
            return name if name in exact_names else None
        spellings = sorted({other for other in header if other.casefold() == name.casefold()})
        if len(spellings) > 1:
            raise ImportFileError(
                f"{path}: the column '{name}' may be {' or '.join(repr(spelling) for spelling in spellings)}.",
                "Write the name in the mapping as the file does.",
            )
        return spellings[0]

    matched_names = []
    for names in candidate_names:
        column_name = next(filter(None, map(find, names)), None)
        if column_name is None:
            similar_names = difflib.get_close_matches(names[0].casefold(), name_by_folded, n=3, cutoff=0.6)
            hint = (
                f"Is it {' or '.join(name_by_folded[candidate] for candidate in similar_names)}? "
                if similar_names
                else ""
            )
            quoted_names = " or ".join(f"'{candidate}'" for candidate in names)
            raise ImportFileError(
                f"{path}: the file has no column {quoted_names} among its {len(header)} columns.",
                f"{hint}Check that it is the right file and mapping.",
            )
        matched_names.append(column_name)
    present_names = [find(name) for name in optional_names]
    return matched_names + [name for name in present_names if name is not None]


# --- CSV --------------------------------------------------------------------------------------------------------


def _read_csv(path: Path, select: ColumnSelection) -> list[DistinctValueColumn]:
    """Read columns of a CSV or TSV file; errors as for `read_columns`."""
    encoding = _find_encoding(path)
    spellings, delimiter = _read_header(path, encoding)
    header = [name.strip() for name in spellings]
    require_columns(header, str(path), ImportFileError)
    names = select(header)
    duplicate_name = next((name for name in names if header.count(name) > 1), None)
    if duplicate_name is not None:
        raise ImportFileError(f"{path}: the column '{duplicate_name}' occurs twice.", "Remove one of the columns.")
    spelling_by_name = dict(zip(header, spellings, strict=True))
    read_names = [spelling_by_name[name] for name in names]
    try:
        columns = _parse_csv(path, read_names, delimiter, encoding, use_threads=True)
        _require_closed_quotes(path, columns[0].value_index.size, delimiter, encoding)
        return columns
    except pa.ArrowInvalid:
        pass  # pyarrow only counts rows with one thread: the second attempt names the invalid row
    try:
        return _parse_csv(path, read_names, delimiter, encoding, use_threads=False)
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0][:200]  # its first line, which may quote a long row
        how_to_fix = "Save the file as UTF-8." if "UTF8" in reason else "Correct that row, or export the file again."
        raise ImportFileError(f"{path}: is not valid CSV: {reason}.", how_to_fix) from None


def _find_encoding(path: Path) -> str:
    """Encoding of a CSV file as pyarrow names it; UTF-8 also where only columns that are not read may be damaged."""
    try:
        encoding = find_encoding(path)
    except ImportFileError:
        return "utf8"
    return "utf8" if encoding == UTF_8 else encoding


def _parse_csv(
    path: Path, names: list[str], delimiter: str, encoding: str, use_threads: bool
) -> list[DistinctValueColumn]:
    """Parse the named columns of a CSV file as text; raise pyarrow.ArrowInvalid for an invalid file."""
    text = pa.dictionary(pa.int32(), pa.string())
    with open_binary(path, ImportFileError) as file:
        table = pa_csv.read_csv(
            file,
            read_options=pa_csv.ReadOptions(use_threads=use_threads, block_size=READ_BLOCK_BYTES, encoding=encoding),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter),
            # pyarrow would read the country code "NA" (Namibia) as a missing value.
            convert_options=pa_csv.ConvertOptions(
                include_columns=list(dict.fromkeys(names)),
                column_types=dict.fromkeys(names, text),
                strings_can_be_null=False,
            ),
        )
    return [_column_from_arrow(name.strip(), table.column(name), delimiter) for name in names]


def _require_closed_quotes(path: Path, n_rows: int, delimiter: str, encoding: str) -> None:
    """Check a file with more lines than rows: pyarrow reads all that follows an unclosed quotation mark as one text.

    Raises:
        ImportFileError: a quotation mark is not closed, or text follows the closing one.
    """
    with open_binary(path, ImportFileError) as file:
        n_lines = sum(block.count(b"\n") for block in iter(lambda: file.read(READ_BLOCK_BYTES), b""))
    if n_lines <= n_rows + 1:
        return
    with open_text(path, ImportFileError, UTF_8 if encoding == "utf8" else encoding, errors="replace") as text_file:
        reader = csv.reader(text_file, strict=True, delimiter=delimiter)
        line = 1
        try:
            for cells in reader:
                if reader.line_num > line:
                    require_one_row(cells, delimiter, f"{path}: line {line}")
                line = reader.line_num + 1
        except csv.Error as error:
            raise ImportFileError(
                f"{path}: the row at line {line} is not valid CSV: {error}.",
                "Close its quotation mark, or write a quotation mark inside of a text twice.",
            ) from None


def find_quoted_rows(path: Path, name: str) -> NDArray[np.bool_] | None:
    """Return which values of a CSV file's column are in quotation marks, shape (rows,); None for another format."""
    if find_suffix(path) not in (".csv", ".tsv"):
        return None
    encoding = _find_encoding(path)
    header, delimiter = _read_header(path, encoding)
    name = next(spelling for spelling in header if spelling.strip() == name)
    parse_options = pa_csv.ParseOptions(delimiter=delimiter)

    def read(null_values: list[str]) -> Any:
        """Read the column with some unquoted values as null."""
        options = pa_csv.ConvertOptions(
            include_columns=[name],
            column_types={name: pa.string()},
            null_values=null_values,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        read_options = pa_csv.ReadOptions(encoding=encoding)
        with open_binary(path, ImportFileError) as file:
            return pa_csv.read_csv(file, read_options, parse_options, options).column(name)

    values = read([]).unique().to_pylist()
    is_quoted: NDArray[np.bool_] = read(values).is_valid().to_numpy()
    return is_quoted


def classify_na(column: DistinctValueColumn, path: Path) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find out by quotation marks where the text NA is a missing value, and where it is a text.

    R writes texts in quotation marks, and missing values as NA without them.

    Returns:
        Two masks, shape (rows,): rows with a missing value, and rows with the text. In neither where nothing tells.
    """
    is_na = np.zeros(column.value_index.size, bool)
    if NA in column.values:
        is_na = column.value_index == column.values.index(NA)
    quoted_rows = find_quoted_rows(path, column.name) if is_na.any() else None
    if quoted_rows is None:
        return np.zeros_like(is_na), np.zeros_like(is_na)
    is_quoted = quoted_rows[column.row_numbers - 1]
    is_text = np.array([_is_text(value) for value in column.values])[column.value_index] & ~is_na
    quotes_all_texts = bool(is_text.any()) and bool(is_quoted[is_text].all())
    # Some programs put only those texts in quotation marks that could be taken for something else.
    quotes_some_na = bool(is_quoted[is_na].any()) and not is_quoted[is_text].any()
    is_certain = is_na & (quotes_all_texts or quotes_some_na)
    return is_certain & ~is_quoted, is_certain & is_quoted


def blank_missing_na(column: DistinctValueColumn, path: Path) -> DistinctValueColumn:
    """Return a column with an empty field where NA is certain to be a missing value."""
    return column.replace_rows(classify_na(column, path)[0], None)


def _is_text(value: ColumnValue) -> bool:
    """Whether a value is a text that is no number and does not mean a missing value."""
    if not isinstance(value, str) or is_missing_marker(value):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def is_missing_marker(value: ColumnValue) -> bool:
    """Whether a value is empty or what programs write for a missing value, such as `NA`, `N/A`, `.` or `NaN`."""
    return value is None or (isinstance(value, str) and _MISSING_MARKER.fullmatch(value.strip().casefold()) is not None)


def _column_from_arrow(name: str, chunked: Any, delimiter: str) -> DistinctValueColumn:
    """Convert a dictionary-encoded pyarrow ChunkedArray of text to a column without value labels."""
    # Each chunk has a dictionary of its own until they are unified.
    unified = chunked.unify_dictionaries()
    if not unified.num_chunks:
        return _make_text_column(name, [], delimiter, np.empty(0, np.int32))
    texts = unified.chunk(0).dictionary.to_pylist()
    value_index = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in unified.chunks])
    return _make_text_column(name, texts, delimiter, value_index)


def _make_text_column(
    name: str, texts: Sequence[str], delimiter: str, value_index: NDArray[np.int32]
) -> DistinctValueColumn:
    """Build a column from text values; values that only differ in surrounding whitespace are merged."""
    normalized_texts = normalize_numbers(texts, delimiter)
    values: list[ColumnValue] = [text.strip() or None for text in normalized_texts]
    position_by_value = {value: position for position, value in enumerate(dict.fromkeys(values))}
    new_positions = np.array([position_by_value[value] for value in values], np.int32)
    return DistinctValueColumn(
        name,
        tuple(position_by_value),
        {},
        new_positions[value_index],
        np.arange(1, value_index.size + 1),
        has_commas=normalized_texts != list(texts),
    )


def _read_header(path: Path, encoding: str) -> tuple[list[str], str]:
    """Return the column names, as the file spells them, and the delimiter of a CSV file."""
    try:
        # Only the header is decoded here: columns that are not read may have any encoding.
        if encoding == "utf8":
            with open_binary(path, ImportFileError) as file:
                # Lines of the old Macintosh end with a carriage return only.
                first_line = file.readline(1 << 20).partition(b"\r")[0].decode(UTF_8)
        else:
            with open_text(path, ImportFileError, encoding) as text_file:
                first_line = text_file.readline(1 << 20)
    except UnicodeDecodeError:
        raise ImportFileError(f"{path}: its first line is not UTF-8 text.", "Save it as CSV in UTF-8.") from None
    if "\0" in first_line:
        raise ImportFileError(f"{path}: is not a text file.", "Name a table with the right suffix.")
    reject_separator_line(first_line, path)
    delimiter = find_delimiter(first_line, find_suffix(path))
    try:
        return next(csv.reader([first_line], delimiter=delimiter), []), delimiter
    except csv.Error as error:
        raise ImportFileError(
            f"{path}: line 1 is not a header of a CSV file: {error}.",
            "Name a CSV file with the names of the columns in its first row.",
        ) from None
