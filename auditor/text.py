"""Texts of unknown origin, made safe to look at: what would act or hide on a screen is shown instead."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t\u200c\u200d")  # the joiners shape words in Persian, Indic scripts and emoji
_PICTURES = 0x2400
_DELETE, _DELETE_PICTURE = 0x7F, "\u2421"


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
