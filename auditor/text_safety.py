"""Texts of unknown origin, made safe to look at: what would act or hide on a screen is shown instead."""

from __future__ import annotations

import dataclasses
import json
import operator
import unicodedata
from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")
_ATOMIC_TYPES = frozenset((int, float, bool, bytes, type(None)))
_ALLOWED_CHARACTERS = frozenset("\n\t\u200c\u200d")  # the joiners shape words in Persian, Indic scripts and emoji
_CONTROL_PICTURES_START = 0x2400
_DELETE, _DELETE_PICTURE = 0x7F, "\u2421"
_FORMULA_STARTS = frozenset("=+-@\t\r")
MAX_SHOWN_LENGTH = 60
"""Characters of a name or a value that a message shows."""


def escape_formula(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula: a text that looks like one gets a quote in front.

    What cannot be seen at its start is skipped, as a spreadsheet does. Anything but a text is returned as it is.
    """
    if not isinstance(value, str):
        return value
    seen = next((char for char in value if char in _FORMULA_STARTS or (char.isprintable() and not char.isspace())), "")
    return f"'{value}" if seen in _FORMULA_STARTS else value


OMISSION_MARK_END = " characters left out …]"
"""End of the mark that stands where a text was cut."""


def truncate_middle(text: str, max_chars: int) -> str:
    """The text, or its beginning and its end with a mark between them that says how many characters were left out.

    Args:
        text: any text.
        max_chars: of what is returned, the mark included.
    """
    return text if len(text) <= max_chars else join_ends(text, text, max_chars, len(text))


def join_ends(beginning: str, end: str, max_chars: int, length: int) -> str:
    """The beginning and the end of a text of `length` characters, with a mark between them, in `max_chars`."""
    room = max_chars - len(_omission_mark(length))
    first, last = beginning[: (room + 1) // 2], end[len(end) - min(len(end), room // 2) :]
    return f"{first}{_omission_mark(length - len(first) - len(last))}{last}"


def _omission_mark(n_omitted: int) -> str:
    return f"\n[… {n_omitted:,}{OMISSION_MARK_END}\n"


def slugify(text: str) -> str:
    """A name as part of a file's name: letters, digits, dot, dash and underscore, never empty, hidden or a path.

    Different names may become one; whoever writes several files keeps them apart.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    kept = "".join(char if char.isalnum() or char in "-_." else "-" for char in plain)
    return kept.strip("-._")[:80] or "unnamed"


def escape_invisible(text: str) -> str:
    """A text in which every control, bidi, invisible or broken character is spelled out.

    Kept are printable characters, spaces of every width, line feed, tab and the zero-width joiners; CR LF becomes a
    line feed. C0 controls become their pictures (ESC is shown as U+241B), all others their escapes (`\\u202e`).

    Args:
        text: any string, lone surrogates included.

    Returns:
        A string that can be encoded as UTF-8 and that a terminal or a browser shows as it stands. It is not escaped
        for HTML or Markdown.
    """
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_VISIBLE_TABLE)


def truncate_text(text: str, max_length: int = MAX_SHOWN_LENGTH) -> str:
    """A text for a message: its beginning where it has more than `length` characters."""
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def escape_json_controls(text: str) -> str:
    """A document in JSON whose bytes do not act on a terminal: what `visible` would spell out becomes an escape.

    Outside of strings JSON has nothing but ASCII, and `json.dumps` escapes all before U+0020, so that the document
    keeps its meaning.
    """
    return text if text.isprintable() else text.translate(_JSON_ESCAPE_TABLE)


def map_strings(value: T, transform: Callable[[str], str]) -> T:
    """A copy of a dataclass instance or of decoded JSON with every string changed; the same object if none changes."""
    kind, new = type(value), cast(Any, value)
    if kind is str:  # a StrEnum's member is not a text
        new = transform(new)
        return value if new == value else cast(T, new)
    if kind in _ATOMIC_TYPES:
        return value
    if isinstance(value, (tuple, list)):
        items = [map_strings(item, transform) for item in value]
        return value if all(map(operator.is_, items, value)) else cast(T, type(value)(items))
    if isinstance(value, dict):
        return cast(T, {map_strings(name, transform): map_strings(item, transform) for name, item in value.items()})
    if isinstance(value, type) or not dataclasses.is_dataclass(value):
        return value
    old = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    changed = {name: item for name, before in old.items() if (item := map_strings(before, transform)) is not before}
    return cast(T, dataclasses.replace(cast(Any, value), **changed)) if changed else value


class _JsonEscapeTable(dict[int, str]):
    """Code point to what JSON has for it: itself, or `\\uXXXX`."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        is_kept = code == 0x0A or (code != _DELETE and _visible_form(code) == char)
        shown = self[code] = char if is_kept else json.dumps(char)[1:-1] if code > _DELETE else f"\\u{code:04x}"
        return shown


class _VisibleTable(dict[int, str]):
    """Code point to what is shown for it, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _visible_form(code)
        return shown


def _visible_form(code: int) -> str:
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
