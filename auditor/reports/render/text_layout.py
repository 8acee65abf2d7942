"""Lay out plain text by the columns that it takes on a terminal, where a wide character takes two."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells

from auditor.reports.document import Text
from auditor.reports.render.escaping import collapse_spaces
from auditor.reports.render.inline_text import InlineMarkup, render_inline
from auditor.text_safety import escape_invisible


def _clean(text: str) -> str:
    """Make a text safe for terminals, on one line."""
    return collapse_spaces(escape_invisible(text))


_MARKUP = InlineMarkup(_clean, _clean, str, _clean, lambda text, _: _clean(text))


def flatten_text(text: Text) -> str:
    """The text without markup, on one line."""
    return render_inline(text, _MARKUP).strip()


def wrap_text(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` columns, at spaces if possible; at least one line."""
    lines = [""]
    for word in text.split(" "):
        if cell_len(lines[-1]) + bool(lines[-1]) + cell_len(word) <= width:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
        else:
            pieces = chop_cells(word, width) if cell_len(word) > width else [word]
            lines[-1:] = [lines[-1], *pieces] if lines[-1] else pieces
    return lines


def pad_text(text: str, width: int, *, is_right_aligned: bool = False) -> str:
    """Fill up a text with spaces to `width` columns."""
    padding = " " * (width - cell_len(text))
    return padding + text if is_right_aligned else text + padding


def indent_text(text: str, prefix: str) -> str:
    """Put `prefix` before the first line of a text, and as many spaces before the others, but not before empty ones."""
    first, *other_lines = text.split("\n")
    indentation = " " * cell_len(prefix)
    return "\n".join([f"{prefix}{first}", *(f"{indentation}{line}" if line else "" for line in other_lines)])
