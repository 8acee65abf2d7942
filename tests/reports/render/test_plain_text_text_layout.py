"""Text is laid out by the columns that it takes on a terminal."""

from __future__ import annotations

import pytest

from auditor.reports.document import Code, Link, Name, Strong
from auditor.reports.render.plain_text import flatten_text, indent_text, pad_text, wrap_text


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("a bb ccc", 5, ["a bb", "ccc"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("a abcdef b", 4, ["a", "abcd", "ef b"]),
        ("日本語", 4, ["日本", "語"]),
        ("1\u202f254 1\u202f254", 5, ["1\u202f254", "1\u202f254"]),
    ],
)
def test_wrapping(text: str, width: int, lines: list[str]) -> None:
    assert wrap_text(text, width) == lines


def test_padding_counts_wide_characters_twice() -> None:
    assert pad_text("日", 4) == "日  "
    assert pad_text("日", 4, is_right_aligned=True) == "  日"


def test_indentation_leaves_empty_lines_empty() -> None:
    assert indent_text("a\n\nb", "- ") == "- a\n\n  b"


def test_markup_is_dropped_and_invisible_characters_are_shown() -> None:
    assert flatten_text([Strong(Name("a\x1b")), "\n b ", Code("c"), Link(" d", "e")]) == "a␛ b c d"
