"""Read a user's files: type, size, encoding and nesting are checked, and every error names the file.

Functions raise errors of the class `error_class`, which say what is wrong, where, and how to fix it. They also convert
what parsers raise for extreme input: a `RecursionError`, or a `ValueError` for an integer of 5,000 digits.

A small file may unpack to more than the memory of this computer, so whatever is unpacked is counted while it is read:
`open_binary` and `open_text` unpack `.gz`; `auditor.packed_files` reads archives and Parquet files.
"""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import json
import math
import re
import tomllib
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO

from auditor.errors import AuditorError, did_you_mean
from auditor.text_safety import LONE_SURROGATE

LIMIT_OPTION = "--input-limit-factor"
"""The program's option that multiplies all limits of `InputLimits`."""


@dataclass(frozen=True, slots=True)
class InputLimits:
    """Limits of what is read from files that other people may have written.

    Attributes:
        unpacked_bytes: an archive or packed file in all.
        member_bytes: a part that is read whole, such as a JSON document of an archive, or a line of a table.
        ratio: unpacked bytes for each packed byte; counted from `RATIO_FREE_BYTES` on.
        members: files in an archive.
        columns: columns of a table, or keys of an object of JSON Lines.
        json_values: values, objects and lists in a JSON document.
        cells: cells of a spreadsheet, with the empty ones to the left of a full one.
    """

    unpacked_bytes: int = 1_000_000_000
    member_bytes: int = 64_000_000
    ratio: int = 200
    members: int = 100_000
    columns: int = 10_000
    json_values: int = 5_000_000
    cells: int = 20_000_000

    def multiply(self, factor: float) -> InputLimits:
        """All limits, multiplied by a factor and rounded up."""
        return InputLimits(*(math.ceil(getattr(self, name) * factor) for name in self.__slots__))


DEFAULT_LIMITS = InputLimits()
RATIO_FREE_BYTES = 16_000_000
"""What unpacks to fewer bytes is harmless at any ratio."""
MAX_WHOLE_FILE_BYTES = 256_000_000
"""Size limit of a file that is not packed and read whole, such as a JSON document; multiplied by `LIMIT_OPTION` too."""
BLOCK_BYTES = 1 << 20

_limit_factor = 1.0
_on_read: ContextVar[Callable[[int, int], None] | None] = ContextVar("on_read", default=None)
_inputs: set[tuple[int, int]] | None = None
"""Device and inode of each file that `require_file` saw within `remember_inputs`; None outside."""

MAX_SETTINGS_BYTES = 1_000_000
"""Size limit of a file of settings or questions; data files have none."""
MAX_SIBLINGS = 1_000
"""Number of files of a folder among which a missing one is looked for."""
MAX_DEPTH = 40
"""Limit of nested tables and lists; pydantic, JSON and `repr` recurse over parsed data."""
MAX_INTEGER = 2**63 - 1
"""Limit of an integer in TOML, and in a database column."""
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SAVE_AS_UTF8 = "Save it as UTF-8 text."
_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_KEY_PART}\.[ \t]*+){{{MAX_DEPTH}}}", re.MULTILINE)
"""A dotted key of `MAX_DEPTH` parts or more: tomllib's memory is quadratic in them (40 GB for a key of 200 kB)."""
_TUPLE_REPR = re.compile(r"\((?:'[^']*',? ?)+\)")
"""A tuple of strings as `repr` shows it, such as `('a', 'b')`."""
_PATH_HINT = r": write a path with backslashes in single quotes, such as 'C:\data\survey.csv'"
_TOML_HINTS = {
    "Invalid value": ': write text in straight double quotes, such as "peers", true or false in small letters, '
    "and a number with a digit before its point, such as 0.38",
    "Unescaped": _PATH_HINT,
    "Invalid hex value": _PATH_HINT,
    "Cannot declare": ": write the name of a table that is repeated in double brackets, such as [[models]]",
    "Expected '='": ": write key = value, and a number with a decimal point, such as 0.38",
    "Expected newline": ": write one key in a line, and a number with a decimal point, such as 0.38",
}
"""How to correct what people often write, by the beginning of tomllib's message."""


def set_limit_factor(factor: float) -> None:
    """Multiply the limits of this process by a factor from 1; `LIMIT_OPTION` sets it."""
    global _limit_factor
    _limit_factor = max(1.0, factor)


def get_limits() -> InputLimits:
    """The limits in this process."""
    return DEFAULT_LIMITS.multiply(_limit_factor)


def make_limit_error(
    source: str, problem: str, amount: float, limit: float, error_class: type[AuditorError]
) -> AuditorError:
    """Build the error for a file that exceeds a limit; it is not raised here.

    Args:
        problem: what the file exceeds, with the limit, as in `unpacks to more than 1 GB`.
        amount: the amount that was found, or the part of it that was read.
        limit: the limit in the same unit.
    """
    factor = max(2, math.ceil(_limit_factor * amount / limit))
    return error_class(
        f"{source}: {problem}, the limit for imported files.",
        f"Check that it is the right file. If you trust it, raise the limits: {LIMIT_OPTION} {factor}.",
    )


def require_columns(columns: Sequence[str] | int, source: str, error_class: type[AuditorError]) -> None:
    """Raise an error of class `error_class` if a table has more columns than `InputLimits.columns`."""
    n_columns, limit = columns if isinstance(columns, int) else len(columns), get_limits().columns
    if n_columns > limit:
        raise make_limit_error(source, f"has more than {limit:,} columns", n_columns, limit, error_class)


@contextmanager
def remember_inputs() -> Iterator[None]:
    """Remember the files that are read within the context, which is a command, so that it replaces none of them."""
    global _inputs
    _inputs = set()
    try:
        yield
    finally:
        _inputs = None


def is_remembered_input(path: Path) -> bool:
    """Whether a path leads to a file that was read within `remember_inputs`."""
    try:
        status = path.stat()
    except OSError:
        return False
    return _inputs is not None and (status.st_dev, status.st_ino) in _inputs


def require_file(path: Path, error_class: type[AuditorError], how_to_fix: str = "Check the name.") -> None:
    """Check that a path is a regular file: reading a pipe or a device may never end.

    Raises:
        AuditorError: of class `error_class`; with the advice `how_to_fix` if no file has that name.
    """
    try:
        is_file, is_folder, exists = path.is_file(), path.is_dir(), path.exists()
    except OSError as error:
        raise error_class(f"{path}: cannot be opened: {error.strerror}.", how_to_fix) from None
    if is_folder:
        raise error_class(f"{path}: is a folder, not a file.", "Name a file in it.")
    if not exists:
        raise error_class(f"{path}: there is no such file.", f"{_suggest_path(path)}{how_to_fix}")
    if not is_file:
        raise error_class(
            f"{path}: is a pipe or a device, not a file.", "Save its content to a file, and use that file."
        )
    if _inputs is not None:
        status = path.stat()
        _inputs.add((status.st_dev, status.st_ino))


def _suggest_path(path: Path) -> str:
    """A question that names the file of the folder whose name is closest to a missing one; empty if none is close."""
    try:
        siblings = [entry.name for entry in itertools.islice(path.parent.iterdir(), MAX_SIBLINGS) if entry.is_file()]
    except OSError:
        return ""
    hint = did_you_mean(path.name, siblings, "", cutoff=0.8)
    return f"{hint} " if hint else ""


def read_text(path: Path, error_class: type[AuditorError], *, max_bytes: int | None = None) -> str:
    """The content of a UTF-8 file, with or without a byte order mark.

    A file whose name ends in `.gz` is unpacked.

    Raises:
        AuditorError: of class `error_class`: no regular file, larger than `max_bytes` or the limit for files that are
            read whole, not readable, or not UTF-8 text; the message names the line.
    """
    return decode_utf8(_read_bytes(path, error_class, max_bytes), str(path), error_class)


def _read_bytes(path: Path, error_class: type[AuditorError], max_bytes: int | None) -> bytes:
    """The content of a file that is read whole; arguments and errors as for `read_text`."""
    require_file(path, error_class)
    try:
        if max_bytes is not None and path.stat().st_size > max_bytes:
            size = f"{max_bytes // 1_000_000} MB"
            raise error_class(
                f"{path}: is larger than {size}, the maximum for such a file.", "Check that it is the right file."
            )
        with open_binary(path, error_class) as file:
            limit = (
                get_limits().member_bytes
                if path.suffix.lower() == ".gz"
                else math.ceil(MAX_WHOLE_FILE_BYTES * _limit_factor)
            )
            data = file.read(limit + 1)
    except OSError as error:
        raise error_class(f"{path}: cannot be read: {error.strerror}.", "Check that you may read it.") from None
    if len(data) > limit:
        raise _whole_limit_error(path, limit, error_class)
    return data


def decode_utf8(data: bytes, source: str, error_class: type[AuditorError]) -> str:
    """Decode UTF-8 text, with or without a byte order mark.

    Raises:
        AuditorError: of class `error_class`: the data has another encoding, or is no text; the message names the line.
    """
    if data.startswith(UTF_16_MARKS):
        raise error_class(f"{source}: is text in UTF-16.", SAVE_AS_UTF8)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise error_class(f"{source}: line {line} is not UTF-8 text.", SAVE_AS_UTF8) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise error_class(f"{source}: line {line} contains a NUL character, so it is not a text file.", SAVE_AS_UTF8)
    return text


def read_toml(path: Path, error_class: type[AuditorError]) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        AuditorError: of class `error_class`, as `read_text` and `parse_toml`.
    """
    return parse_toml(read_text(path, error_class, max_bytes=MAX_SETTINGS_BYTES), str(path), error_class)


def parse_toml(text: str, source: str, error_class: type[AuditorError]) -> dict[str, Any]:
    """Parse a TOML document.

    Raises:
        AuditorError: of class `error_class`: not TOML, or a value that cannot be stored (see `require_storable`).
    """
    if _LONG_KEY.search(text):
        raise_parse_error(RecursionError(), source, error_class)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # tomllib shows a key as a tuple, "('a', 'b')"; it is shown as in the file, "a.b".
        message = _TUPLE_REPR.sub(lambda match: ".".join(re.findall(r"'([^']*)'", match[0])), str(error))
        message = message.replace("Cannot overwrite a value", "a key is used twice")
        hint = next((hint for start, hint in _TOML_HINTS.items() if message.startswith(start)), "")
        raise error_class(f"{source}: not valid TOML: {message}.", f"Correct that line{hint}.") from None
    except (RecursionError, ValueError) as error:
        raise_parse_error(error, source, error_class)
    require_storable(data, source, error_class)
    return data


def read_json(path: Path, error_class: type[AuditorError], *, max_bytes: int | None = None) -> Any:
    """The value in a JSON file, in UTF-8 or, with a byte order mark, in UTF-16.

    Raises:
        AuditorError: of class `error_class`, as `read_text` and `parse_json`.
    """
    data = _read_bytes(path, error_class, max_bytes)
    if data.startswith(UTF_16_MARKS):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError:
            raise error_class(f"{path}: is damaged text in UTF-16.", SAVE_AS_UTF8) from None
    else:
        text = decode_utf8(data, str(path), error_class)
    return parse_json(text, str(path), error_class)


def parse_json(
    text: str, source: str, error_class: type[AuditorError], how_to_fix: str = "Check that it is complete."
) -> Any:
    """Parse a JSON document; a duplicate key is an error, since one of its values would be lost.

    Raises:
        AuditorError: of class `error_class`: not JSON, a duplicate key, nested too deeply, or too many values.
    """

    def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Build an object from its pairs, as `object_pairs_hook`; raises an error for a duplicate key."""
        table = dict(pairs)
        if len(table) < len(pairs):
            keys = [key for key, _ in pairs]
            duplicate_key = next(key for key in keys if keys.count(key) > 1)
            raise error_class(f"{source}: the key '{duplicate_key[:40]}' is used twice.", "Remove one of them.")
        return table

    limit = get_limits().json_values
    # A value stands after each comma and each opening bracket; those within texts are counted too.
    if len(text) > limit and (n_values := sum(map(text.count, ",[{"))) > limit:
        raise make_limit_error(source, f"has more than {limit:,} values", n_values, limit, error_class)
    try:
        data = json.loads(text, object_pairs_hook=reject_duplicate_keys)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}" if "\n" in text else f"column {error.colno}"
        raise error_class(f"{source} is not valid JSON: {error.msg} ({position}).", how_to_fix) from None
    except (RecursionError, ValueError) as error:
        raise_parse_error(error, source, error_class)
    require_limited_depth(data, source, error_class)
    return data


def raise_parse_error(problem: Exception, source: str, error_class: type[AuditorError]) -> NoReturn:
    """Convert an error that a TOML, YAML or JSON parser raised besides its own error class, and raise it."""
    if isinstance(problem, RecursionError):
        raise error_class(
            f"{source}: tables or lists are nested too deeply.", f"Use at most {MAX_DEPTH} levels."
        ) from None
    if "digits" in str(problem):
        raise _integer_too_large(source, error_class) from None
    raise error_class(f"{source}: a value cannot be read: {problem}.", "Correct that value.") from None


def require_storable(data: Any, source: str, error_class: type[AuditorError]) -> None:
    """Check that parsed settings can be stored, shown and sent.

    Raises:
        AuditorError: of class `error_class`: nested too deeply, an integer of more than 64 bits, a NUL character or a
            lone surrogate.
    """
    require_limited_depth(data, source, error_class)
    level = [data]
    while level:
        for value in level:
            if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
                raise _integer_too_large(source, error_class)
            for text in value if isinstance(value, dict) else (value,):
                if isinstance(text, str) and ("\0" in text or LONE_SURROGATE.search(text)):
                    defect = "a NUL character" if "\0" in text else "an incomplete character (a lone surrogate)"
                    raise error_class(f"{source}: a string contains {defect}.", "Remove its escape sequence.")
        level = _nested_values(level)


def require_limited_depth(data: Any, source: str, error_class: type[AuditorError]) -> None:
    """Check that recursive functions can traverse parsed data.

    Raises:
        AuditorError: of class `error_class`: nested deeper than `MAX_DEPTH`.
    """
    level = [data]
    for _ in range(MAX_DEPTH):
        level = _nested_values(level)
        if not level:
            return
    raise_parse_error(RecursionError(), source, error_class)


def _nested_values(level: list[Any]) -> list[Any]:
    """The values inside the tables and lists of one level, which are the next level."""
    return [
        child
        for value in level
        if isinstance(value, (dict, list))
        for child in (value.values() if isinstance(value, dict) else value)
    ]


def _integer_too_large(source: str, error_class: type[AuditorError]) -> AuditorError:
    """The error for an integer of more than 64 bits; it is not raised here."""
    return error_class(f"{source}: a whole number is too large.", "Use at most 9,223,372,036,854,775,807.")


# --- packed files -----------------------------------------------------------------------------------------------


def open_binary(path: Path, error_class: type[AuditorError]) -> BinaryIO:
    """Open a file for reading; a file whose name ends in `.gz` is unpacked while it is read, within the limits.

    Raises:
        OSError: the file cannot be opened.
        AuditorError: of class `error_class`, while it is read: it exceeds a limit, or is not a gzip file.
    """
    if path.suffix.lower() != ".gz":
        return _open_file(path)
    return io.BufferedReader(_GzipReader(path, error_class), BLOCK_BYTES)


def open_text(
    path: Path, error_class: type[AuditorError], encoding: str = "utf-8-sig", errors: str = "strict"
) -> TextIO:
    """Open a text file for reading, as `open_binary`; line ends are kept, a byte order mark is not."""
    return io.TextIOWrapper(open_binary(path, error_class), encoding=encoding, errors=errors, newline="")


def iterate_lines(file: TextIO, source: str, error_class: type[AuditorError]) -> Iterator[str]:
    """Yield the lines of a text file with their ends; an error for one longer than `InputLimits.member_bytes`."""
    return itertools.chain.from_iterable(iterate_line_blocks(file, source, error_class))


def iterate_line_blocks(file: TextIO, source: str, error_class: type[AuditorError]) -> Iterator[list[str]]:
    """Yield the lines of a text file as `iterate_lines`, many at a time: one by one takes several times as long."""
    limit = get_limits().member_bytes
    parts: list[str] = []  # the beginning of a line that goes on
    n_chars = 0
    while True:
        text = file.read(min(BLOCK_BYTES, limit + 1))
        # A line ends after its last character only if no line feed can follow.
        end = max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1 if text else 0
        if text and not end:
            parts.append(text)
            n_chars += len(text)
            longest = n_chars
            lines = []
        else:
            complete = "".join((*parts, text[:end]))
            lines = io.StringIO(complete, newline="").readlines()
            longest = max(map(len, lines), default=0)
            parts, n_chars = [text[end:]], len(text) - end
        if longest > limit:
            size = format_bytes(limit)
            raise make_limit_error(source, f"has a line of more than {size}", longest, limit, error_class)
        if lines:
            yield lines
        if not text:
            return


def read_numbered_lines(path: Path, error_class: type[AuditorError]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text file that are not blank, each after its location for error messages.

    Raises:
        AuditorError: of class `error_class`: the file cannot be read, is neither UTF-8 nor marked UTF-16, or exceeds a
            limit.
    """
    require_file(path, error_class)
    try:
        with open_binary(path, error_class) as start:
            encoding = "utf-16" if start.read(2) in UTF_16_MARKS else "utf-8-sig"
        with open_text(path, error_class, encoding) as file:
            # Not `splitlines`: it also splits at characters that occur within a text, such as U+2028.
            for number, line in enumerate(iterate_lines(file, str(path), error_class), start=1):
                if "\0" in line:
                    raise error_class(f"{path}: line {number} contains a NUL character.", SAVE_AS_UTF8)
                if line.strip():
                    yield f"{path}: line {number}", line.rstrip("\r\n")
    except UnicodeDecodeError:
        line_number = find_non_utf8_line(path, error_class)
        raise error_class(f"{path}: line {line_number} is not UTF-8 text.", SAVE_AS_UTF8) from None


def find_non_utf8_line(path: Path, error_class: type[AuditorError]) -> int:
    """The number of the first line that is not UTF-8, from 1; 0 if there is none, or for a Parquet file."""
    if path.suffix.lower() == ".parquet":
        return 0
    with open_binary(path, error_class) as file:
        for line_number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return line_number
    return 0


@contextmanager
def report_reading(on_read: Callable[[int, int], None]) -> Iterator[None]:
    """Within the context, call a function with the position in a file and its size in bytes whenever it is read."""
    token = _on_read.set(on_read)
    try:
        yield
    finally:
        _on_read.reset(token)


def _open_file(path: Path) -> BinaryIO:
    """Open a file for reading, whose progress is reported if somebody wants to know."""
    on_read = _on_read.get()
    return path.open("rb") if on_read is None else io.BufferedReader(_ReportedFile(path, on_read), BLOCK_BYTES)


class _ReportedFile(io.FileIO):
    """A file that reports how far it was read."""

    def __init__(self, path: Path, on_read: Callable[[int, int], None]) -> None:
        super().__init__(path)
        self._on_read, self._size = on_read, path.stat().st_size

    def readinto(self, buffer: Any) -> int | None:
        """Read into a buffer, and report the position."""
        n_bytes = super().readinto(buffer)
        self._on_read(self.tell(), self._size)
        return n_bytes


class _GzipReader(io.RawIOBase):
    """The content of a gzip file, of which no more is unpacked than the limits allow."""

    def __init__(self, path: Path, error_class: type[AuditorError]) -> None:
        self._path, self._error_class = path, error_class
        self._packed = _open_file(path)
        self._unpacked = gzip.GzipFile(fileobj=self._packed)
        self._n_bytes = 0

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack into a buffer and return the number of bytes; raises an error of the reader's class."""
        try:
            n_bytes = self._unpacked.readinto(buffer)
        except (OSError, EOFError, zlib.error) as error:
            reason = str(error).rstrip(".")
            raise self._error_class(
                f"{self._path}: is not a complete gzip file: {reason}.", "Download the file again."
            ) from None
        self._n_bytes += n_bytes
        check_unpacked_size(str(self._path), self._n_bytes, self._packed.tell(), self._error_class)
        return n_bytes

    def close(self) -> None:
        """Close the file."""
        self._unpacked.close()
        self._packed.close()
        super().close()


def check_unpacked_size(source: str, unpacked: int, packed: int, error_class: type[AuditorError]) -> None:
    """Raise an error of class `error_class` if what is unpacked exceeds the limit in bytes, or the ratio to the file.

    Args:
        unpacked, packed: bytes that were unpacked so far, and the packed bytes that they came from.
    """
    limits = get_limits()
    if unpacked > limits.unpacked_bytes:
        problem = f"unpacks to more than {format_bytes(limits.unpacked_bytes)}"
        raise make_limit_error(source, problem, unpacked, limits.unpacked_bytes, error_class)
    if unpacked > RATIO_FREE_BYTES and unpacked > limits.ratio * packed:
        problem = f"unpacks to more than {limits.ratio:,} times its size"
        raise make_limit_error(source, problem, unpacked, limits.ratio * max(packed, 1), error_class)


def _whole_limit_error(path: Path, limit: int, error_class: type[AuditorError]) -> AuditorError:
    """Build the error for a file that is too large to be read whole; it is not raised here."""
    amount = max(path.stat().st_size, limit + 1)
    return make_limit_error(str(path), f"has more than {format_bytes(limit)}", amount, limit, error_class)


def format_bytes(n_bytes: int) -> str:
    """A number of bytes as text, such as `64 MB` or `1 GB`."""
    return f"{n_bytes / 1e9:g} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:g} MB"
