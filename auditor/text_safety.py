"""Texts of unknown origin, made safe to look at: what would act or hide on a screen is shown instead."""

from __future__ import annotations

import dataclasses
import json
import operator
import unicodedata
from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")
_ATOMS = frozenset((int, float, bool, bytes, type(None)))
_KEPT = frozenset("\n\t\u200c\u200d")  # the joiners shape words in Persian, Indic scripts and emoji
_PICTURES = 0x2400
_DELETE, _DELETE_PICTURE = 0x7F, "\u2421"
_FORMULA = frozenset("=+-@\t\r")
MAX_SHOWN = 60
"""Characters of a name or a value that a message shows."""


def defused(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula: a text that looks like one gets a quote in front.

    What cannot be seen at its start is skipped, as a spreadsheet does. Anything but a text is returned as it is.
    """
    if not isinstance(value, str):
        return value
    seen = next((char for char in value if char in _FORMULA or (char.isprintable() and not char.isspace())), "")
    return f"'{value}" if seen in _FORMULA else value


LEFT_OUT = " characters left out …]"
"""End of the mark that stands where a text was cut."""


def cut_middle(text: str, max_chars: int) -> str:
    """The text, or its beginning and its end with a mark between them that says how many characters were left out.

    Args:
        text: any text.
        max_chars: of what is returned, the mark included.
    """
    return text if len(text) <= max_chars else join_ends(text, text, max_chars, len(text))


def join_ends(beginning: str, end: str, max_chars: int, length: int) -> str:
    """The beginning and the end of a text of `length` characters, with a mark between them, in `max_chars`."""
    room = max_chars - len(_mark(length))
    first, last = beginning[: (room + 1) // 2], end[len(end) - min(len(end), room // 2) :]
    return f"{first}{_mark(length - len(first) - len(last))}{last}"


def _mark(left_out: int) -> str:
    return f"\n[… {left_out:,}{LEFT_OUT}\n"


def slug(text: str) -> str:
    """A name as part of a file's name: letters, digits, dot, dash and underscore, never empty, hidden or a path.

    Different names may become one; whoever writes several files keeps them apart.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    kept = "".join(char if char.isalnum() or char in "-_." else "-" for char in plain)
    return kept.strip("-._")[:80] or "unnamed"


def visible(text: str) -> str:
    """A text in which every control, bidi, invisible or broken character is spelled out.

    Kept are printable characters, spaces of every width, line feed, tab and the zero-width joiners; CR LF becomes a
    line feed. C0 controls become their pictures (ESC is shown as U+241B), all others their escapes (`\\u202e`).

    Args:
        text: any string, lone surrogates included.

    Returns:
        A string that can be encoded as UTF-8 and that a terminal or a browser shows as it stands. It is not escaped
        for HTML or Markdown.
    """
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_SHOWN)


def shortened(text: str, length: int = MAX_SHOWN) -> str:
    """A text for a message: its beginning where it has more than `length` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def plain_json(text: str) -> str:
    """A document in JSON whose bytes do not act on a terminal: what `visible` would spell out becomes an escape.

    Outside of strings JSON has nothing but ASCII, and `json.dumps` escapes all before U+0020, so that the document
    keeps its meaning.
    """
    return text if text.isprintable() else text.translate(_ESCAPED)


def map_strings(value: T, change: Callable[[str], str]) -> T:
    """A copy of a dataclass instance or of decoded JSON with every string changed; the same object if none changes."""
    kind, new = type(value), cast(Any, value)
    if kind is str:  # a StrEnum's member is not a text
        new = change(new)
        return value if new == value else cast(T, new)
    if kind in _ATOMS:
        return value
    if isinstance(value, (tuple, list)):
        items = [map_strings(item, change) for item in value]
        return value if all(map(operator.is_, items, value)) else cast(T, type(value)(items))
    if isinstance(value, dict):
        return cast(T, {map_strings(name, change): map_strings(item, change) for name, item in value.items()})
    if isinstance(value, type) or not dataclasses.is_dataclass(value):
        return value
    old = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    changed = {name: item for name, before in old.items() if (item := map_strings(before, change)) is not before}
    return cast(T, dataclasses.replace(cast(Any, value), **changed)) if changed else value


class _Escaped(dict[int, str]):
    """Code point to what JSON has for it: itself, or `\\uXXXX`."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        is_kept = code == 0x0A or (code != _DELETE and _show(code) == char)
        shown = self[code] = char if is_kept else json.dumps(char)[1:-1] if code > _DELETE else f"\\u{code:04x}"
        return shown


class _Shown(dict[int, str]):
    """Code point to what is shown for it, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _show(code)
        return shown


def _show(code: int) -> str:
    char = chr(code)
    if char.isprintable() or char in _KEPT or unicodedata.category(char) == "Zs":
        return char
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return _DELETE_PICTURE
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_SHOWN = _Shown()
_ESCAPED = _Escaped()
