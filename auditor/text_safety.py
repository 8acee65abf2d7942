"""Make texts of unknown origin safe to display: control and invisible characters are replaced by visible ones."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar, cast

T = TypeVar("T")
_ATOMIC_TYPES = frozenset((int, float, bool, bytes, type(None)))
_ALLOWED_CHARACTERS = frozenset("\n\t\u200c\u200d")  # Persian, Indic scripts and emoji need the joiners
_CONTROL_PICTURES_START = 0x2400
_DELETE, _DELETE_PICTURE = 0x7F, "\u2421"
_FORMULA_STARTS = frozenset("=+-@\t\r＝＋－＠")
"""The full-width forms are formulas in East Asian editions of spreadsheets."""
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a pair in UTF-16, which UTF-8 cannot hold: no database or request takes it."""
MAX_SHOWN_LENGTH = 60
"""Number of characters of a name or a value that a message shows."""


def escape_csv_cell(value: Any) -> Any:
    """Make a text safe to open in a spreadsheet: control and invisible characters are shown, formulas are quoted.

    Spaces at its start are skipped to see whether it is a formula, as a spreadsheet skips them. A value that is no
    string is returned unchanged.
    """
    if not isinstance(value, str):
        return value
    first_visible = next(
        (char for char in value if char in _FORMULA_STARTS or (char.isprintable() and not char.isspace())), ""
    )
    visible_text = escape_invisible(value)
    return f"'{visible_text}" if first_visible in _FORMULA_STARTS else visible_text


def unescape_csv_cell(text: str) -> str:
    """Remove the quote that `escape_csv_cell` puts before a formula; other texts are returned unchanged."""
    return text[1:] if text.startswith("'") and escape_csv_cell(text[1:]) == text else text


_INVISIBLE_AT_ENDS = " \t\r\n\u00a0\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u2060\ufeff"
"""White space, marks of direction and of byte order, and characters without width."""


def clean_name(name: str) -> str:
    """A name from a file as it is compared: composed (NFC), without invisible characters at its ends.

    Otherwise one model is two that look alike, such as the name that follows a byte order mark within a file.
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name).strip(_INVISIBLE_AT_ENDS) or name


def fold_name(name: str) -> str:
    """A name in the form in which those are equal that readers take for one: without capitals, and spaces once."""
    return " ".join(unicodedata.normalize("NFKC", clean_name(name)).casefold().split())


def find_lookalike(name: str, names: Collection[str]) -> str | None:
    """The one of `names` that readers take for this name; None if it is one of them, or none looks like it."""
    if name in names:
        return None
    return min((other for other in names if fold_name(other) == fold_name(name)), default=None)


def make_name_speller(names: Iterable[str]) -> Callable[[str], str]:
    """Build a function that gives a name as one of `names` spells it, or else as `clean_name` does, without spaces.

    Names that differ in white space only are one, since tables and messages change it. A name that is one of `names`
    stays, even if another one looks like it.
    """
    known = set(names)
    spellings = {_normalize_spaces(name): name for name in sorted(known, reverse=True)}
    return lambda name: name if name in known else spellings.get(_normalize_spaces(name), clean_name(name).strip())


def _normalize_spaces(name: str) -> str:
    """A name as `clean_name` gives it, with single spaces between its words."""
    return " ".join(clean_name(name).split())


OMISSION_MARK_END = " characters left out …]"
"""End of the mark that replaces the omitted part of a text."""


def truncate_middle(text: str, max_chars: int) -> str:
    """Replace the middle of a text that is too long by a mark with the number of omitted characters.

    Args:
        text: any text.
        max_chars: the length of the returned text at most, with the mark.
    """
    return text if len(text) <= max_chars else join_ends(text, text, max_chars, len(text))


def join_ends(beginning: str, end: str, max_chars: int, length: int) -> str:
    """Join the beginning and the end of a text of `length` characters by an omission mark, in `max_chars`."""
    available_chars = max_chars - len(_omission_mark(length))
    head, tail = beginning[: (available_chars + 1) // 2], end[len(end) - min(len(end), available_chars // 2) :]
    return f"{head}{_omission_mark(length - len(head) - len(tail))}{tail}"


def _omission_mark(n_omitted: int) -> str:
    """The mark that replaces the middle of a text, with the number of omitted characters."""
    return f"\n[… {n_omitted:,}{OMISSION_MARK_END}\n"


def slugify(text: str) -> str:
    """Turn a name into a part of a file name: ASCII letters, digits, dot, dash and underscore, never empty.

    It never starts with a dot, and is no path. Different names may get the same slug: a caller that writes several
    files makes them unique.
    """
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    slug = "".join(char if char.isalnum() or char in "-_." else "-" for char in ascii_text)
    return slug.strip("-._")[:80] or "unnamed"


def escape_invisible(text: str) -> str:
    """Replace every control, bidirectional, invisible or broken character by a visible form.

    Printable characters, spaces of every width, line feed, tab and the zero-width joiners stay; CR LF becomes a line
    feed. C0 controls become their pictures (ESC is shown as U+241B), all others their escapes (`\\u202e`).

    Args:
        text: any string, lone surrogates included.

    Returns:
        A string that can be encoded as UTF-8, and that a terminal or a browser shows character by character. It is
        not escaped for HTML or Markdown.
    """
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_VISIBLE_TABLE)


def escape_for_storage(text: str) -> str:
    """Replace lone surrogates and NUL by visible escapes, so that any database accepts the text."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def truncate_text(text: str, max_length: int = MAX_SHOWN_LENGTH) -> str:
    """Truncate a text to `max_length` characters; the last one is an ellipsis then."""
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def escape_json_controls(text: str) -> str:
    """Escape, in a JSON document, the characters that `escape_invisible` would replace, so that it is safe to print.

    The document keeps its meaning: outside of strings JSON is ASCII, and `json.dumps` escapes all before U+0020.
    """
    return text if text.isprintable() else text.translate(_JSON_ESCAPE_TABLE)


@functools.cache
def _field_names(dataclass_type: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(dataclass_type))


def map_strings(value: T, transform: Callable[[str], str]) -> T:
    """Apply a function to every string in a dataclass instance or in decoded JSON.

    Returns a copy, or the same object if no string changes.
    """
    value_type: type = type(value)
    mapped = cast(Any, value)
    if value_type is str:  # a StrEnum's member is not a text
        mapped = transform(mapped)
        return value if mapped == value else cast(T, mapped)
    if value_type in _ATOMIC_TYPES:
        return value
    if isinstance(value, (tuple, list)):
        mapped_items = [map_strings(item, transform) for item in value]
        return value if all(map(operator.is_, mapped_items, value)) else cast(T, type(value)(mapped_items))
    if isinstance(value, dict):
        return cast(T, {map_strings(name, transform): map_strings(item, transform) for name, item in value.items()})
    if isinstance(value, type) or not dataclasses.is_dataclass(value):
        return value
    changed_fields = {
        name: item
        for name in _field_names(value_type)
        if type(original := getattr(value, name)) not in _ATOMIC_TYPES  # as most fields
        and (item := map_strings(original, transform)) is not original
    }
    return cast(T, dataclasses.replace(cast(Any, value), **changed_fields)) if changed_fields else value


class _JsonEscapeTable(dict[int, str]):
    """Map a code point to itself or to its escape `\\uXXXX`, filled on first use."""

    def __missing__(self, code: int) -> str:
        """The character or escape for a code point that is looked up for the first time."""
        char = chr(code)
        is_kept = code == 0x0A or (code != _DELETE and _visible_form(code) == char)
        escaped = self[code] = char if is_kept else json.dumps(char)[1:-1] if code > _DELETE else f"\\u{code:04x}"
        return escaped


class _VisibleTable(dict[int, str]):
    """Map a code point to its visible form, filled on first use."""

    def __missing__(self, code: int) -> str:
        """The visible form of a code point that is looked up for the first time."""
        visible = self[code] = _visible_form(code)
        return visible


def _visible_form(code: int) -> str:
    """The character itself if it is visible or allowed, else its control picture or escape."""
    char = chr(code)
    if char.isprintable() or char in _ALLOWED_CHARACTERS or unicodedata.category(char) == "Zs":
        return char
    if code < 0x20:
        return chr(_CONTROL_PICTURES_START + code)
    if code == _DELETE:
        return _DELETE_PICTURE
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_VISIBLE_TABLE = _VisibleTable()
_JSON_ESCAPE_TABLE = _JsonEscapeTable()
