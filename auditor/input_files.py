"""Read a user's files: type, size, encoding and nesting are checked, and every error names the file.

Functions raise errors of the class `error_class`, which say what is wrong, where, and how to fix it. They also convert
what parsers raise for extreme input: a `RecursionError`, or a `ValueError` for an integer of 5,000 digits.
"""

from __future__ import annotations

import codecs
import json
import re
import tomllib
from pathlib import Path
from typing import Any, NoReturn

from auditor.errors import AuditorError

MAX_SETTINGS_BYTES = 1_000_000
"""Size limit of a file of settings or questions; data files have none."""
MAX_DEPTH = 40
"""Limit of nested tables and lists; pydantic, JSON and `repr` recurse over parsed data."""
MAX_INTEGER = 2**63 - 1
"""Limit of an integer in TOML, and in a database column."""
SAVE_AS_UTF8 = "Save it as UTF-8 text."
_SURROGATE = re.compile("[\ud800-\udfff]")
_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_KEY_PART}\.[ \t]*+){{{MAX_DEPTH}}}", re.MULTILINE)
"""A dotted key of `MAX_DEPTH` parts or more: tomllib's memory is quadratic in them (40 GB for a key of 200 kB)."""
_TUPLE_REPR = re.compile(r"\((?:'[^']*',? ?)+\)")
"""A tuple of strings as `repr` shows it, such as `('a', 'b')`."""


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
        raise error_class(f"{path}: there is no such file.", how_to_fix)
    if not is_file:
        raise error_class(
            f"{path}: is a pipe or a device, not a file.", "Save its content to a file, and use that file."
        )


def read_text(path: Path, error_class: type[AuditorError], *, max_bytes: int | None = None) -> str:
    """The content of a UTF-8 file, with or without a byte order mark.

    Raises:
        AuditorError: of class `error_class`: no regular file, larger than `max_bytes`, not readable, or not UTF-8
            text; the message names the line.
    """
    require_file(path, error_class)
    try:
        if max_bytes is not None and path.stat().st_size > max_bytes:
            size = f"{max_bytes // 1_000_000} MB"
            raise error_class(
                f"{path}: is larger than {size}, the maximum for such a file.", "Check that it is the right file."
            )
        data = path.read_bytes()
    except OSError as error:
        raise error_class(f"{path}: cannot be read: {error.strerror}.", "Check that you may read it.") from None
    return decode_utf8(data, str(path), error_class)


def decode_utf8(data: bytes, source: str, error_class: type[AuditorError]) -> str:
    """Decode UTF-8 text, with or without a byte order mark.

    Raises:
        AuditorError: of class `error_class`: the data has another encoding, or is no text; the message names the line.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
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
        raise error_class(f"{source}: not valid TOML: {message}.", "Correct that line.") from None
    except (RecursionError, ValueError) as error:
        raise_parse_error(error, source, error_class)
    require_storable(data, source, error_class)
    return data


def read_json(path: Path, error_class: type[AuditorError], *, max_bytes: int | None = None) -> Any:
    """The value in a JSON file.

    Raises:
        AuditorError: of class `error_class`, as `read_text` and `parse_json`.
    """
    return parse_json(read_text(path, error_class, max_bytes=max_bytes), str(path), error_class)


def parse_json(
    text: str, source: str, error_class: type[AuditorError], how_to_fix: str = "Check that it is complete."
) -> Any:
    """Parse a JSON document; a duplicate key is an error, since one of its values would be lost.

    Raises:
        AuditorError: of class `error_class`: not JSON, a duplicate key, or nested too deeply.
    """

    def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Build an object from its pairs, as `object_pairs_hook`; raises an error for a duplicate key."""
        table = dict(pairs)
        if len(table) < len(pairs):
            keys = [key for key, _ in pairs]
            duplicate_key = next(key for key in keys if keys.count(key) > 1)
            raise error_class(f"{source}: the key '{duplicate_key[:40]}' is used twice.", "Remove one of them.")
        return table

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
                if isinstance(text, str) and ("\0" in text or _SURROGATE.search(text)):
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
