"""What a table file is: its format, encoding and delimiter, and whether its first bytes match its suffix.

Columns of SPSS and Stata files are read with pyreadstat, with the labels of their values.
"""

from __future__ import annotations

import codecs
import itertools
import math
import re
import zipfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from auditor.errors import ImportFileError
from auditor.input_files import (
    SAVE_AS_UTF8,
    UTF_16_MARKS,
    find_non_utf8_line,
    get_limits,
    make_limit_error,
    open_binary,
    open_text,
    require_columns,
)
from auditor.packed_files import check_archive, shorten_floats
from auditor.text_safety import truncate_text

_UNPACK_HINT = "Unpack it, and use the file in it."
# First bytes of a file, name of its format, and how to fix the error.
SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "Unpack it; rename a spreadsheet to .xlsx."),
    (b"\x1f\x8b", "a gzip archive", "Add .gz to its name, as in scores.csv.gz."),
    (b"7z\xbc\xaf", "a 7z archive", _UNPACK_HINT),
    (b"Rar!", "a RAR archive", _UNPACK_HINT),
    (b"$FL", "an SPSS file", "Rename it to .sav."),
    (b"PAR1", "a Parquet file", "Rename it to .parquet."),
    (b"<stata_dta>", "a Stata file", "Rename it to .dta."),
    (b"RDX", "an R file", "Use the SPSS, Stata or CSV file."),
    (b"%PDF", "a PDF document", "Use the data file, not the documentation."),
    (b"\x89PNG", "a picture", "Use the data file."),
    (b"\xff\xd8\xff", "a picture", "Use the data file."),
    (b"\xd0\xcf\x11\xe0", "an old Office document", "Save the sheet as CSV."),
    (b"<!doctype html", "a web page", "Download the file itself; the site may require you to log in."),
    (b"<html", "a web page", "Download the file itself; the site may require you to log in."),
)


# Formats whose files begin with a signature, by the suffix of the file's name.
_FORMAT_BY_SUFFIX = {
    ".gz": "a gzip archive",
    ".parquet": "a Parquet file",
    ".sav": "an SPSS file",
    ".zsav": "an SPSS file",
    ".dta": "a Stata file",
    ".xlsx": "a ZIP archive or a spreadsheet",
}


def reject_other_formats(path: Path) -> None:
    """Raise an error if a file begins with the signature of another format than that of its suffix.

    Raises:
        ImportFileError: the file begins like one of another format, which the message names.
    """
    try:
        with open(path, "rb") as file:
            first_bytes = file.read(64).lstrip(b" \r\n\t").lower()
    except OSError:
        return  # the reader that is called next reports why the file cannot be opened
    expected_format = _FORMAT_BY_SUFFIX.get(path.suffix.lower())
    for signature, format_name, how_to_fix in SIGNATURES:
        if first_bytes.startswith(signature.lower()) and format_name != expected_format:
            raise ImportFileError(f"{path}: the suffix does not match the content, which is {format_name}.", how_to_fix)


TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx", ".dta", ".sav", ".zsav")
PACKED_SUFFIXES = (".csv.gz", ".tsv.gz", ".jsonl.gz")
FORMATS_TEXT = f"{', '.join(TABLE_SUFFIXES)}, {', '.join(PACKED_SUFFIXES)}"
ARCHIVE_SUFFIXES = (".zip", ".gz", ".7z", ".rar", ".tar")
DELIMITERS = (",", ";", "\t")
UTF_8 = "utf-8-sig"
"""Python's name of UTF-8 with or without a byte order mark."""
WINDOWS_1252 = "cp1252"
"""Latin-1, with the quotation marks and the euro sign that Windows adds to it."""
NA = "NA"
"""The code of Namibia, and what R writes for a missing value."""
_BLOCK_BYTES = 1 << 20
_UTF_8_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_NOT_LATIN = re.compile(rb"[\x81\x8d\x8f\x90\x9d]|[\x80-\xff]{4}|\xff\xfe|\xfe\xff")
"""Bytes that Windows-1252 does not have, or four accented letters in a row, as in Cyrillic or Japanese encodings."""
_ACCENTED = r"[\x8a\x8c\x8e\x9a\x9c\x9e\x9f\xc0-\xd6\xd8-\xf6\xf8-\xff]"
_ACCENTS_ONLY = re.compile(
    rf"(?<![A-Za-z\x80-\xff])({_ACCENTED})(?!\1){_ACCENTED}{{1,2}}(?![A-Za-z\x80-\xff])".encode()
)
"""A short word of accented letters only, as in Greek or Hebrew, but for doubled ones, as in Estonian "öö"."""
_SYMBOL_IN_WORD = re.compile(
    rb"[A-Za-z][\x82\x84\x86-\x89\x8b\x98\x99\x9b\xa1-\xa9\xaf\xb3\xb5\xb6\xb8\xb9\xbc-\xbf][A-Za-z]"
    rb"|[a-z][\x8a\x8c\x8e\x9f\xc0-\xd6\xd8-\xde][a-z]"
)
"""A symbol or a capital within a word, as in files of DOS or Mac OS."""
_LATIN_WORD = re.compile(rf"[A-Za-z]{_ACCENTED}|{_ACCENTED}[A-Za-z]".encode())
"""Accented letters beside others, as in most words with accents."""
MIN_LATIN_WORDS = 10
"""Usual words in Windows-1252 that outweigh an unusual one, such as a question without a space before its "¿"."""
MAX_LATIN_WORDS = 10_000
"""Usual words after which those of a file are not counted any more, since counting takes as long as reading."""
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
_DECIMAL_COMMA_FIELDS = {
    ",": re.compile(r'(?:^|,)\s*"([-+]?\d*,\d+)%?"\s*(?=,|$)'),
    ";": re.compile(r'(?:^|;)\s*"?([-+]?\d*,\d+)%?"?\s*(?=;|$)'),
    "\t": re.compile(r'(?:^|\t) *"?([-+]?\d*,\d+)%?"? *(?=\t|$)'),
}
"""Fields that are a number with one comma, by the delimiter."""
_POINTED_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+")
_FORMULA = re.compile(rb"<f[ >/]")
_COMPUTE_WHEN_OPENED = re.compile(rb"""\sfullCalcOnLoad\s*=\s*["'](?:1|true)["']""")
_ESCAPED_CONTROL = re.compile(r"_x(00[01][0-9A-Fa-f])_")
"""A control character as spreadsheets store it in a text: a carriage return is _x000D_."""
_MERGED_CELLS = re.compile(rb'<(?:\w+:)?mergeCell\s+ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
SPREADSHEET_ERRORS = frozenset(
    ("#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#SPILL!", "#CALC!", "#FIELD!", "#ERROR!")
)
"""What spreadsheets show for a formula without a result, and write to CSV files."""


def find_suffix(path: Path) -> str:
    """The suffix that selects the reader, in lower case: `.csv` for `scores.csv.gz`; empty if there is none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = "".join(suffixes[-2:]) in PACKED_SUFFIXES
    return suffixes[-2] if packed else (suffixes[-1] if suffixes else "")


def make_unknown_format_error(path: Path) -> ImportFileError:
    """Build the error for a file whose suffix is not known; it is not raised here."""
    suffix = f"the suffix '{path.suffix}'" if path.suffix else "no suffix"
    hint = "Unpack it first. " if path.suffix.lower() in ARCHIVE_SUFFIXES else ""
    return ImportFileError(f"{path}: files with {suffix} are not supported.", f"{hint}Use one of {FORMATS_TEXT}.")


# --- text files -------------------------------------------------------------------------------------------------


def find_encoding(path: Path) -> str:
    """Find the encoding of a text file, as Python names it: UTF-8, UTF-16 with a byte order mark, or Windows-1252.

    Raises:
        ImportFileError: the file has none of these; the message names the first line that is not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_binary(path, ImportFileError) as file:
        block = file.read(_BLOCK_BYTES)
        if block.startswith(UTF_16_MARKS):
            return "utf-16"
        if b"\0" in block[:2]:
            raise ImportFileError(f"{path}: is text in UTF-16 without a byte order mark.", SAVE_AS_UTF8)
        try:
            while block:
                if not block.isascii() or decoder.getstate()[0]:
                    decoder.decode(block)
                block = file.read(_BLOCK_BYTES)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            if not _is_latin(path):
                line = find_non_utf8_line(path, ImportFileError)
                raise ImportFileError(f"{path}: line {line} is not UTF-8.", SAVE_AS_UTF8) from None
            return WINDOWS_1252
    return UTF_8


def _is_latin(path: Path) -> bool:
    """Whether a file that is not UTF-8 is text in Latin-1, and not a damaged file or text in another encoding."""
    n_utf8 = n_other = n_accents_only = n_symbols = n_latin = 0
    with open_binary(path, ImportFileError) as file:
        for line in file:
            if line.isascii():
                continue
            if _NOT_LATIN.search(line):
                return False
            if n_latin < MAX_LATIN_WORDS:
                n_accents_only += len(_ACCENTS_ONLY.findall(line))
                n_symbols += len(_SYMBOL_IN_WORD.findall(line))
                n_latin += len(_LATIN_WORD.findall(line))
            n_utf8 += len(_UTF_8_SEQUENCE.findall(line))
            n_other += len(_HIGH_BYTES.findall(_UTF_8_SEQUENCE.sub(b"", line)))
    # French "çà" is a word of accented letters only, too.
    return n_other > n_utf8 and n_latin >= max(n_accents_only, MIN_LATIN_WORDS * n_symbols)


def find_delimiter(header: str, suffix: str) -> str:
    """The delimiter of a file, given its first line: the one that occurs most often outside of quotation marks."""
    if suffix == ".tsv":
        return "\t"
    unquoted = re.sub(r'"[^"]*"', "", header)
    return max(DELIMITERS, key=unquoted.count)


def reject_separator_line(line: str, path: Path) -> None:
    """Raise ImportFileError for a first line that only Excel reads, which names the delimiter."""
    if re.fullmatch(r"\ufeff?\"?sep=.\"?\s*", line, re.IGNORECASE):
        raise ImportFileError(
            f"{path}: line 1 is '{line.strip()}', which only Excel reads, and no header.", "Delete that line."
        )


def require_one_row(cells: Sequence[str], delimiter: str, location: str) -> None:
    """Check a row of several lines: a quotation mark in one row and one in a later row make one text of both.

    Args:
        location: file and line, for the message.

    Raises:
        ImportFileError: a further line has as many fields as the row, and one of them is equal to that of the first;
            and all other lines could be rows, too.
    """
    if len(cells) == 1:
        return  # each line of the text could be a row
    first, *others = [line.split(delimiter) for line in delimiter.join(cells).splitlines() if line]
    # Texts in quotation marks of their own may be in the first and the last row only.
    if len(first) < len(cells) or any(len(fields) != len(cells) for fields in others[:-1]):
        return
    for fields in others:
        is_prose = any(field.startswith(" ") for field in fields)  # in which a space follows a comma
        if (
            len(fields) == len(cells)
            and not is_prose
            and any(a == b != "" for a, b in zip(first, fields, strict=False))
        ):
            raise ImportFileError(
                f"{location}: a text in quotation marks contains what looks like another row: "
                f"{truncate_text(delimiter.join(fields))}",
                "Write a quotation mark inside of a text twice, or save the table as JSONL.",
            )


# --- numbers ----------------------------------------------------------------------------------------------------


class NumberStyle(StrEnum):
    """What a comma means in the numbers of a column."""

    POINT = "point"
    """Nothing: numbers have no comma."""
    DECIMAL_COMMA = "decimal comma"
    THOUSANDS = "thousands"
    UNCLEAR = "unclear"
    """The values cannot all be read in one way."""


def find_number_style(texts: Iterable[str], delimiter: str) -> NumberStyle:
    """Find out what the commas in a column's numbers mean.

    Commas separate thousands only if all values fit, and not in a file that is separated by semicolons.

    Args:
        texts: the values of the column; those that are no numbers do not count.
        delimiter: of the file.
    """
    numbers = [bare for text in texts if (bare := _bare_number(text)) and set(bare) <= set("+-0123456789.,")]
    with_comma = [number for number in numbers if "," in number]
    if not with_comma:
        return NumberStyle.POINT
    look_like_thousands = all(_THOUSANDS.fullmatch(number) for number in with_comma)
    if look_like_thousands and delimiter != ";":
        others = (number for number in numbers if "," not in number)
        is_consistent = all(len(number.lstrip("+-").partition(".")[0]) <= 3 for number in others)
        return NumberStyle.THOUSANDS if is_consistent else NumberStyle.UNCLEAR
    is_decimal = all(_DECIMAL_COMMA.fullmatch(number) for number in with_comma) and not any(
        "." in number for number in numbers
    )
    return NumberStyle.DECIMAL_COMMA if is_decimal else NumberStyle.UNCLEAR


def parse_number(text: str, style: NumberStyle = NumberStyle.POINT) -> float:
    """Parse a number; a percentage is divided by 100. Returns nan if the text is no finite number."""
    bare = _bare_number(text)
    if style is NumberStyle.UNCLEAR or ("," in bare and style is NumberStyle.POINT):
        return math.nan
    bare = bare.replace(",", "." if style is NumberStyle.DECIMAL_COMMA else "")
    try:
        number = math.nan if "_" in bare else float(bare)  # Python reads 1_0 as 10
    except ValueError:
        return math.nan
    if not math.isfinite(number):
        return math.nan
    return (number / 100 if text.rstrip().endswith("%") else number) + 0.0  # -0.0 becomes 0.0


def looks_like_thousands(text: str) -> bool:
    """Whether a point may separate thousands in a text, as in 1.000."""
    return _POINTED_THOUSANDS.fullmatch(_bare_number(text)) is not None


def points_may_separate_thousands(texts: Iterable[str]) -> bool:
    """Whether every number of a column that has a point may be one of thousands: with 0.8 beside it, 1.000 is 1."""
    return all(looks_like_thousands(text) for text in texts if "." in text and not math.isnan(parse_number(text)))


def has_decimal_commas(path: Path) -> bool:
    """Whether fields of a text file are numbers with a decimal comma; raises ImportFileError as `open_text`.

    In a file that semicolons do not separate, 1,234 is none, since its comma may separate thousands.
    """
    suffix = find_suffix(path)
    if suffix not in (".csv", ".tsv"):
        return False
    with open_text(path, ImportFileError, find_encoding(path)) as file:
        delimiter = find_delimiter(file.readline(), suffix)
        numbers = (number for line in file for number in _DECIMAL_COMMA_FIELDS[delimiter].findall(line.rstrip("\r\n")))
        return any(delimiter == ";" or not _THOUSANDS.fullmatch(number) for number in numbers)


def normalize_numbers(texts: Collection[str], delimiter: str) -> list[str]:
    """Replace the numbers of a column that have a comma by the same numbers with a point; other texts stay."""
    style = find_number_style(texts, delimiter)
    if style in (NumberStyle.POINT, NumberStyle.UNCLEAR):
        return list(texts)
    replacement = "." if style is NumberStyle.DECIMAL_COMMA else ""
    pattern = _DECIMAL_COMMA if style is NumberStyle.DECIMAL_COMMA else _THOUSANDS
    return [text.replace(",", replacement) if pattern.fullmatch(text.strip()) else text for text in texts]


def _bare_number(text: str) -> str:
    """A number without a percent sign, with a minus sign that Python reads."""
    return text.strip().removesuffix("%").rstrip().replace("\u2212", "-")


def format_number(value: float) -> str:
    """A number of a file with typed cells as text; whole numbers without a point: files store 76 as 76.0."""
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


# --- spreadsheets -----------------------------------------------------------------------------------------------


def iterate_spreadsheet(
    path: Path, required: Collection[str] = (), known_columns: Collection[str] = ()
) -> Iterator[list[Any]]:
    """Yield the rows of the first sheet of an `.xlsx` file, the header included; a formula is its last result.

    Args:
        required: columns that make a sheet a table of this kind; all columns of the first sheet if there are none.
        known_columns: columns that are read, the required ones included.

    Raises:
        ImportFileError: openpyxl is not installed, the file is no spreadsheet or exceeds a limit, or a cell shows an
            error or has a formula without its result, or one that is read is merged, or another sheet may have
            further rows.
    """
    try:
        import openpyxl
    except ImportError:
        raise ImportFileError(
            f"{path}: the package openpyxl, which reads .xlsx files, is not installed.",
            "Run pip install openpyxl, or save the sheet as CSV.",
        ) from None
    check_archive(path, ImportFileError, is_streamed=lambda name: name.startswith("xl/worksheets/"))
    workbooks = []

    def open_rows(*, results: bool) -> Iterator[tuple[Any, ...]]:
        """Open the first sheet with the results of formulas, or with the formulas."""
        workbooks.append(openpyxl.load_workbook(path, read_only=True, data_only=results))
        sheet = workbooks[-1].worksheets[0]
        sheet.reset_dimensions()  # else a sheet that claims to have 16,384 columns would be filled up
        rows: Iterator[tuple[Any, ...]] = sheet.iter_rows(values_only=True)
        return rows

    try:
        rows = open_rows(results=True)
        positions = _require_one_table(path, workbooks[0].worksheets, required, known_columns)
        hidden_cells = _find_hidden_cells(path, workbooks[0].worksheets[0], positions)
        formula_rows = open_rows(results=False) if _has_formulas(path) else itertools.repeat(())
        is_uncomputed = _is_uncomputed(path)
    except (KeyError, ValueError, IndexError, AttributeError, SyntaxError) as error:  # ParseError is a SyntaxError
        reason = "" if isinstance(error, AttributeError) else f": {error}"
        raise ImportFileError(
            f"{path}: is not a spreadsheet that can be read{reason}.", "Save the sheet as CSV."
        ) from None
    n_columns = n_cells = 0
    limit = get_limits().cells
    for number, (cells, formulas) in enumerate(zip(rows, formula_rows, strict=False), start=1):
        if not cells:  # one of up to a million above a cell far below
            yield []
            continue
        if len(cells) > n_columns:
            n_columns = len(cells)
            require_columns(n_columns, str(path), ImportFileError)
        n_cells += len(cells)  # empty ones too: a row with one cell far to the right is filled up with them
        if n_cells > limit:
            problem = f"has more than {limit:,} cells"
            raise make_limit_error(str(path), problem, n_cells, limit, ImportFileError)
        _reject_hidden_cells(path, number, cells, hidden_cells)
        if error_value := next((cell for cell in cells if cell in SPREADSHEET_ERRORS), None):
            raise ImportFileError(f"{path}: row {number} has the error {error_value}.", "Correct the formula.")
        # A text that looks like a formula is the same in both.
        unknown = (
            formula
            for cell, formula in zip(cells, formulas, strict=False)
            if formula and (cell is None or (is_uncomputed and cell != formula))
        )
        if formula := next(unknown, None):
            raise ImportFileError(
                f"{path}: row {number} has the formula {truncate_text(str(formula))} without its result.",
                "Save the file with a spreadsheet program, which stores results, or write numbers.",
            )
        yield [_unescape_controls(cell) for cell in cells]
    for workbook in workbooks:
        workbook.close()


def _unescape_controls(cell: Any) -> Any:
    """A cell of a spreadsheet, a text with its control characters."""
    if not isinstance(cell, str) or "_x00" not in cell:
        return cell
    return _ESCAPED_CONTROL.sub(lambda match: chr(int(match[1], 16)), cell)


def _require_one_table(
    path: Path, sheets: Sequence[Any], required: Collection[str], known_columns: Collection[str]
) -> list[int]:
    """Return the positions, from 1, of the first sheet's columns that are read.

    Raises:
        ImportFileError: another sheet has the required columns, and the first one lacks some; or it looks like more
            rows: it has all columns that are read from the first sheet, or no others than those that can be read.
    """
    headers: list[list[str]] = []
    for sheet in sheets:
        sheet.reset_dimensions()
        cells = next(sheet.iter_rows(max_row=1, values_only=True), ())
        headers.append(["" if cell is None else str(cell).strip().casefold() for cell in cells])
    known = {column.casefold() for column in known_columns}
    first = set(headers[0]) - {""}
    read = first & known or first
    needed = {column.casefold() for column in required} or first
    for sheet, header in zip(sheets[1:], headers[1:], strict=True):
        columns = set(header) - {""}
        if not needed or not needed <= columns:
            continue
        names = truncate_text(", ".join(name for name in required or headers[0] if name.casefold() in needed))
        problem = f"{path}: the sheet '{truncate_text(sheet.title)}' has the columns {names}"
        if not needed <= first:
            raise ImportFileError(
                f"{problem}, but only the first sheet is read.", "Move that sheet to the first place."
            )
        if read <= columns or columns <= known:
            raise ImportFileError(
                f"{problem} too, but only the first sheet is read.",
                "Put all rows on the first sheet, or delete the other one.",
            )
    return [position for position, name in enumerate(headers[0], start=1) if name in known]


def _find_hidden_cells(path: Path, sheet: Any, positions: Sequence[int]) -> deque[tuple[int, int, str]]:
    """Find merged cells in columns that are read: all but their first cell have no value, though all show it.

    Returns:
        Of each merge the first and last row with such a cell, and its cells as text, by the first row.
    """
    from openpyxl.utils import range_boundaries

    merges: set[tuple[int, int, str]] = set()
    for merge in _iter_merges(path, sheet):
        first, top, last, bottom = range_boundaries(merge)
        hides_right_cells = any(first < position <= last for position in positions)
        start = max(2, top if hides_right_cells else top + 1)
        if start <= bottom and any(first <= position <= last for position in positions):
            merges.add((start, bottom, merge))
    return deque(sorted(merges))


def _iter_merges(path: Path, sheet: Any) -> Iterator[str]:
    """Yield a sheet's merged cells, such as "A2:A5"; openpyxl does not have those of sheets that it reads by row."""
    worksheet_path = getattr(sheet, "_worksheet_path", None)  # without it, the whole workbook is read
    if not isinstance(worksheet_path, str):
        from openpyxl import load_workbook

        yield from map(str, load_workbook(path)[sheet.title].merged_cells.ranges)
        return
    with zipfile.ZipFile(path) as archive, archive.open(worksheet_path) as member:
        end = b""
        while block := member.read(_BLOCK_BYTES):
            for match in _MERGED_CELLS.finditer(end + block):
                yield match.group(1).decode()
            end = block[-100:]


def _reject_hidden_cells(
    path: Path, number: int, cells: Sequence[Any], hidden_cells: deque[tuple[int, int, str]]
) -> None:
    """Raise ImportFileError for a row with data that merged cells hide a value of; forget the merges above it."""
    while hidden_cells and hidden_cells[0][1] < number:
        hidden_cells.popleft()
    if hidden_cells and hidden_cells[0][0] <= number and any(cell is not None for cell in cells):
        raise ImportFileError(
            f"{path}: the cells {hidden_cells[0][2]} are merged, so only the first one has a value.",
            "Unmerge them, and write the value in each row that it is for.",
        )


def _has_formulas(path: Path) -> bool:
    """Whether a sheet of a spreadsheet has a formula, or a text that looks like one in the file."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with archive.open(name) as member:
                    end = b""
                    while block := member.read(_BLOCK_BYTES):
                        if _FORMULA.search(end + block):
                            return True
                        end = block[-2:]
    return False


def _is_uncomputed(path: Path) -> bool:
    """Whether a spreadsheet asks the program that opens it for the results of its formulas: XlsxWriter stores 0."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"xl/workbook\d*\.xml", name)]
        return any(_COMPUTE_WHEN_OPENED.search(archive.read(name)) for name in names)


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
    missing: Collection[StoredValue] = ()
    """Those of the values that the file declares as missing."""


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
        values_by_column, metadata = read(  # without `user_missing`, no values are declared as missing
            str(path), usecols=list(dict.fromkeys(names)), user_missing=keep_missing, output_format="dict",
            disable_datetime_conversion=True, row_limit=max_rows + 1,
        )  # fmt: skip
        _require_rows(path, max(map(len, values_by_column.values()), default=0), max_rows)
    except (pyreadstat.ReadstatError, UnicodeDecodeError) as error:
        raise ImportFileError(
            f"{path}: is not {article} {program} file: {error}.", "Check that the suffix matches the format."
        ) from None
    return [_make_column(name, values_by_column[name], metadata, program, shortens=not keep_missing) for name in names]


def _make_column(name: str, values: list[Any], metadata: Any, program: str, *, shortens: bool) -> LabelledColumn:
    """Build a column from values and pyreadstat's metadata; `shortens` reads a float of 32 bits as it is shown."""
    value_labels = metadata.variable_value_labels.get(name, {})
    labels = {value: text for value, label in value_labels.items() if (text := label.strip())}
    if shortens and metadata.readstat_variable_types[name] == "float" and not any(isinstance(v, str) for v in values):
        values = shorten_floats(values)
    if metadata.readstat_variable_types[name] == "string":
        return LabelledColumn(name, [text or None for text in values], labels)
    missing_letters = program == "Stata"
    ranges = [] if missing_letters else metadata.missing_ranges.get(name, [])
    stored = [_to_stored_value(value) for value in values]
    return LabelledColumn(
        name,
        stored,
        {_to_stored_value(value) if missing_letters else value: label for value, label in labels.items()},
        {value for value in set(stored) if value is not None and any(r["lo"] <= value <= r["hi"] for r in ranges)},
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
