"""Read columns of SPSS and Stata files with pyreadstat: values with their labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditor.errors import ImportFileError
from auditor.input_files import get_limits, make_limit_error, require_columns

STATISTICS_SUFFIXES = (".sav", ".zsav", ".dta")
VALUE_BYTES = 32
"""Memory of one value while it is read: a Python number in a list."""

StoredValue = str | float | None


@dataclass(frozen=True, slots=True)
class LabelledColumn:
    """A column of an SPSS or Stata file.

    Attributes:
        values: text or number of each row; None if it is missing. With `keep_missing`, missing values that the authors
            coded: numbers in SPSS, `.a` to `.z` in Stata.
        labels: texts of values.
    """

    name: str
    values: Sequence[StoredValue]
    labels: Mapping[StoredValue, str] = field(default_factory=dict)


def read_statistics_file(
    path: Path, select_columns: Callable[[Sequence[str]], list[str]], *, keep_missing: bool
) -> list[LabelledColumn]:
    """Read columns of a `.sav`, `.zsav` or `.dta` file.

    Args:
        select_columns: receives the names of all columns and returns those to read; it may raise an error.
        keep_missing: whether values that the file declares as missing, such as "Refused", are kept.

    Raises:
        ImportFileError: pyreadstat is not installed, the file is damaged or too large, or as `select_columns`.
    """
    program = "Stata" if path.suffix.lower() == ".dta" else "SPSS"
    try:
        import pyreadstat
    except ImportError:
        how_to_fix = "Run pip install pyreadstat, or export the file as CSV."
        raise ImportFileError(
            f"{path}: the package pyreadstat, which reads {program} files, is not installed.", how_to_fix
        ) from None
    read: Callable[..., Any] = pyreadstat.read_dta if program == "Stata" else pyreadstat.read_sav
    article = "a" if program == "Stata" else "an"
    try:
        _, metadata = read(str(path), metadataonly=True)
        require_columns(metadata.column_names, str(path), ImportFileError)
        names = select_columns(metadata.column_names)
        row_bytes = sum(max(VALUE_BYTES, metadata.variable_storage_width.get(name, 0)) for name in names)
        max_rows = get_limits().unpacked_bytes // max(row_bytes, 1)
        _require_rows(path, metadata.number_rows, max_rows)
        values_by_column, _ = read(
            str(path), usecols=list(dict.fromkeys(names)), user_missing=keep_missing, output_format="dict",
            disable_datetime_conversion=True, row_limit=max_rows + 1,
        )  # fmt: skip
        _require_rows(path, max(map(len, values_by_column.values()), default=0), max_rows)
    except (pyreadstat.ReadstatError, UnicodeDecodeError) as error:
        raise ImportFileError(
            f"{path}: is not {article} {program} file: {error}.", "Check that the suffix matches the format."
        ) from None
    return [_make_column(name, values_by_column[name], metadata, program) for name in names]


def _make_column(name: str, values: list[Any], metadata: Any, program: str) -> LabelledColumn:
    """Build a column from values and pyreadstat's metadata."""
    labels = metadata.variable_value_labels.get(name, {})
    if metadata.readstat_variable_types[name] == "string":
        return LabelledColumn(name, [text or None for text in values], labels)
    missing_letters = program == "Stata"
    return LabelledColumn(
        name,
        [_to_stored_value(value) for value in values],
        {_to_stored_value(value) if missing_letters else value: label for value, label in labels.items()},
    )


def _to_stored_value(value: Any) -> StoredValue:
    """A value of a numeric column: a number, `.a` for Stata's missing value a, or None."""
    if isinstance(value, str):
        return f".{value}"
    return None if value is None or math.isnan(value) else float(value)


def _require_rows(path: Path, n_rows: int | None, max_rows: int) -> None:
    """Raise ImportFileError if a file has more rows than files may unpack to; a file need not state their number."""
    if n_rows is not None and n_rows > max_rows:
        problem = f"has more than {max_rows:,} rows, which unpack to more than {get_limits().unpacked_bytes / 1e9:g} GB"
        raise make_limit_error(str(path), problem, n_rows, max_rows, ImportFileError)
