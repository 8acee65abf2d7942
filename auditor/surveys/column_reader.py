"""Read a few columns of a large official file, CSV or SPSS, as codes with their labels; skip all other columns."""

from __future__ import annotations

import csv
import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError
from auditor.input_files import get_limits, make_limit_error, require_columns, require_file
from auditor.surveys.file_signatures import reject_other_formats

DELIMITERS = (",", ";", "\t")
READ_BLOCK_BYTES = 4 << 20
"""Bytes that pyarrow parses at a time: 4 MiB."""

SPSS_VALUE_BYTES = 32
"""Memory of one value of an SPSS file while it is read: a Python number in a list."""

ColumnValue = str | float | None


@dataclass(frozen=True, slots=True)
class DistinctValueColumn:
    """A column, stored as its distinct values and each row's position among them.

    Attributes:
        name: the column's name as spelled in the file.
        values: distinct values, text or number; None for an empty field.
        labels: value labels from the file; empty for CSV.
        value_index: shape (rows,), position of each row's value in `values`.
        row_numbers: shape (rows,), number of each row in the file, from 1.
    """

    name: str
    values: tuple[ColumnValue, ...]
    labels: Mapping[ColumnValue, str]
    value_index: NDArray[np.int32]
    row_numbers: NDArray[np.int64]

    def select_rows(self, rows: NDArray[np.bool_]) -> DistinctValueColumn:
        """Return the column with only the rows for which the mask is true, and only the values that occur in them."""
        used_positions, new_index = np.unique(self.value_index[rows], return_inverse=True)
        values = tuple(self.values[i] for i in used_positions)
        return DistinctValueColumn(self.name, values, self.labels, new_index.astype(np.int32), self.row_numbers[rows])

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
    """Read columns of a `.csv` or `.sav` file.

    Args:
        candidate_names: for each column the names that it may have, best first, in any case.
        optional_names: further columns that the file may have, in any case.

    Returns:
        One column for each entry of `candidate_names`, and then those of `optional_names` that the file has.

    Raises:
        ImportFileError: the file is missing, does not match its suffix, is empty or lacks a column (the message
            names it); or it is a `.sav` file and pyreadstat is not installed.
    """
    require_file(path, ImportFileError, "Download it from the survey's publisher, named in the mapping.")
    readers = {".csv": _read_csv, ".sav": _read_sav, ".zsav": _read_sav}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        how_to_fix = (
            "Unpack it first." if path.suffix.lower() in (".zip", ".gz", ".7z") else "Use the .csv or .sav file."
        )
        raise ImportFileError(f"{path}: files with the suffix '{path.suffix}' are not supported.", how_to_fix)
    reject_other_formats(path, "an SPSS file" if reader is _read_sav else "CSV")
    columns = reader(path, candidate_names, optional_names)
    if not columns[0].value_index.size:
        raise ImportFileError(f"{path}: the file has no rows below the header.", "Check that the file is complete.")
    return columns


def _match_column_names(
    header: Sequence[str], candidate_names: Sequence[Sequence[str]], optional_names: Sequence[str], path: Path
) -> list[str]:
    """Return for each column the first candidate name that is in the header; raise ImportFileError if none is.

    The optional names that are in the header follow.
    """
    # Reversed, so that of names that only differ in case the first one wins.
    name_by_folded = {name.casefold(): name for name in reversed(header)}
    matched_names = []
    for names in candidate_names:
        column_name = next(
            (name_by_folded[candidate.casefold()] for candidate in names if candidate.casefold() in name_by_folded),
            None,
        )
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
    present_names = [name_by_folded.get(name.casefold()) for name in optional_names]
    return matched_names + [name for name in present_names if name is not None]


# --- CSV --------------------------------------------------------------------------------------------------------


def _read_csv(
    path: Path, candidate_names: Sequence[Sequence[str]], optional_names: Sequence[str]
) -> list[DistinctValueColumn]:
    """Read columns of a CSV file; candidates, result and errors as for `read_columns`."""
    import pyarrow as pa

    header, delimiter = _read_header(path)
    require_columns(header, str(path), ImportFileError)
    names = _match_column_names(header, candidate_names, optional_names, path)
    duplicate_name = next((name for name in names if header.count(name) > 1), None)
    if duplicate_name is not None:
        raise ImportFileError(f"{path}: the column '{duplicate_name}' occurs twice.", "Remove one of the columns.")
    try:
        return _parse_csv(path, names, delimiter, use_threads=True)
    except pa.ArrowInvalid:
        pass  # pyarrow only counts rows with one thread: the second attempt names the invalid row
    try:
        return _parse_csv(path, names, delimiter, use_threads=False)
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0][:200]  # its first line, which may quote a long row
        how_to_fix = "Save the file as UTF-8." if "UTF8" in reason else "Correct that row, or export the file again."
        raise ImportFileError(f"{path}: is not valid CSV: {reason}.", how_to_fix) from None


def _parse_csv(path: Path, names: list[str], delimiter: str, use_threads: bool) -> list[DistinctValueColumn]:
    """Parse the named columns of a CSV file as text; raise pyarrow.ArrowInvalid for an invalid file."""
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    text = pa.dictionary(pa.int32(), pa.string())
    table = pa_csv.read_csv(
        path,
        read_options=pa_csv.ReadOptions(use_threads=use_threads, block_size=READ_BLOCK_BYTES),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter),
        # pyarrow would read the country code "NA" (Namibia) as a missing value.
        convert_options=pa_csv.ConvertOptions(
            include_columns=list(dict.fromkeys(names)),
            column_types=dict.fromkeys(names, text),
            strings_can_be_null=False,
        ),
    )
    return [_column_from_arrow(name, table.column(name)) for name in names]


def find_quoted_rows(path: Path, name: str) -> NDArray[np.bool_] | None:
    """Return which values of a CSV file's column are in quotation marks, shape (rows,); None for another format."""
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    if path.suffix.lower() != ".csv":
        return None
    _, delimiter = _read_header(path)
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
        return pa_csv.read_csv(path, parse_options=parse_options, convert_options=options).column(name)

    values = read([]).unique().to_pylist()
    is_quoted: NDArray[np.bool_] = read(values).is_valid().to_numpy()
    return is_quoted


def _column_from_arrow(name: str, chunked: Any) -> DistinctValueColumn:
    """Convert a dictionary-encoded pyarrow ChunkedArray of text to a column without value labels."""
    # Each chunk has a dictionary of its own until they are unified.
    unified = chunked.unify_dictionaries()
    if not unified.num_chunks:
        return _make_text_column(name, [], np.empty(0, np.int32), {})
    texts = unified.chunk(0).dictionary.to_pylist()
    value_index = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in unified.chunks])
    return _make_text_column(name, texts, value_index, {})


def _make_text_column(
    name: str, texts: Sequence[str], value_index: NDArray[np.int32], labels: Mapping[ColumnValue, str]
) -> DistinctValueColumn:
    """Build a column from text values; values that only differ in surrounding whitespace are merged."""
    values: list[ColumnValue] = [text.strip() or None for text in texts]
    position_by_value = {value: position for position, value in enumerate(dict.fromkeys(values))}
    new_positions = np.array([position_by_value[value] for value in values], np.int32)
    return DistinctValueColumn(
        name, tuple(position_by_value), labels, new_positions[value_index], np.arange(1, value_index.size + 1)
    )


def _read_header(path: Path) -> tuple[list[str], str]:
    """Return the column names and the delimiter of a CSV file."""
    try:
        # Only the header is decoded here: columns that are not read may have any encoding.
        with open(path, "rb") as file:
            first_line = file.readline(1 << 20).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ImportFileError(f"{path}: its first line is not UTF-8 text.", "Save it as CSV in UTF-8.") from None
    if "\0" in first_line:
        raise ImportFileError(f"{path}: is not a text file.", "Name a CSV or SPSS (.sav) file.")
    delimiter = max(DELIMITERS, key=first_line.count)
    try:
        return [name.strip() for name in next(csv.reader([first_line], delimiter=delimiter), [])], delimiter
    except csv.Error as error:
        raise ImportFileError(
            f"{path}: line 1 is not a header of a CSV file: {error}.",
            "Name a CSV or SPSS (.sav) file with the names of the columns in its first row.",
        ) from None


# --- SPSS -------------------------------------------------------------------------------------------------------


def _read_sav(
    path: Path, candidate_names: Sequence[Sequence[str]], optional_names: Sequence[str]
) -> list[DistinctValueColumn]:
    """Read columns of an SPSS file; candidates, result and errors as for `read_columns`."""
    try:
        import pyreadstat
    except ImportError:
        how_to_fix = "Run pip install pyreadstat, or export the file as CSV."
        raise ImportFileError(
            f"{path}: the package pyreadstat, which reads SPSS files, is not installed.", how_to_fix
        ) from None
    try:
        _, metadata = pyreadstat.read_sav(str(path), metadataonly=True)
        require_columns(metadata.column_names, str(path), ImportFileError)
        names = _match_column_names(metadata.column_names, candidate_names, optional_names, path)
        _require_size(path, metadata.number_rows, len(names))
        # Codes of nonresponse are often declared as missing; `user_missing` keeps them as codes.
        values_by_column, _ = pyreadstat.read_sav(
            str(path), usecols=list(dict.fromkeys(names)), user_missing=True, output_format="dict",
            disable_datetime_conversion=True,
        )  # fmt: skip
    except (pyreadstat.ReadstatError, UnicodeDecodeError) as error:
        raise ImportFileError(
            f"{path}: is not an SPSS file: {error}.", "Check that the suffix matches the format."
        ) from None
    return [_column_from_sav(name, values_by_column[name], metadata) for name in names]


def _require_size(path: Path, n_rows: int | None, n_columns: int) -> None:
    """Raise ImportFileError if the columns that are read would need more memory than files may unpack to."""
    n_bytes, limit = (n_rows or 0) * n_columns * SPSS_VALUE_BYTES, get_limits().unpacked_bytes
    if n_bytes > limit:
        problem = f"has {n_rows:,} rows, which unpack to more than {limit / 1e9:g} GB"
        raise make_limit_error(str(path), problem, n_bytes, limit, ImportFileError)


def _column_from_sav(name: str, column_values: list[Any], metadata: Any) -> DistinctValueColumn:
    """Build a column from values and pyreadstat metadata of an SPSS file; empty numeric fields are nan there."""
    labels: dict[ColumnValue, str] = metadata.variable_value_labels.get(name, {})
    if metadata.readstat_variable_types[name] == "string":
        return _make_text_column(name, column_values, np.arange(len(column_values), dtype=np.int32), labels)
    distinct, value_index = np.unique(np.array(column_values, float), return_inverse=True)
    numbers = tuple(None if math.isnan(number) else float(number) for number in distinct)
    return DistinctValueColumn(
        name, numbers, labels, value_index.astype(np.int32), np.arange(1, len(column_values) + 1)
    )
