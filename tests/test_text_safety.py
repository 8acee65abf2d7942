"""Control characters and invisible characters are made visible."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass

import pytest

from auditor.text_safety import (
    escape_csv_cell,
    escape_invisible,
    escape_json_controls,
    make_name_speller,
    map_strings,
    slugify,
    truncate_middle,
    truncate_text,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, naïve, 日本語, عربي", "plain, naïve, 日本語, عربي"),
        ("a\nb\tc", "a\nb\tc"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a␍b"),
        ("\x1b[2J\x07", "␛[2J␇"),
        ("\x00\x7f\x9b", "␀␡\\u009b"),
        ("safe\u202egpj.exe", "safe\\u202egpj.exe"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("a\u2028b\u2029", "a\\u2028b\\u2029"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("می\u200cخواهم 👩\u200d🚀", "می\u200cخواهم 👩\u200d🚀"),
        ("wide\u3000and\u00a0narrow\u202f", "wide\u3000and\u00a0narrow\u202f"),
        ("half \ud800 pair", "half \\ud800 pair"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("", ""),
    ],
)
def test_invisible_characters_are_escaped(text: str, shown: str) -> None:
    assert escape_invisible(text) == shown


def test_every_escaped_character_is_encodable_and_visible() -> None:
    escaped_characters = escape_invisible("".join(map(chr, range(sys.maxunicode + 1))))
    escaped_characters.encode("utf-8")
    assert not set(escaped_characters) & set(
        map(chr, [*range(0x9), *range(0xB, 0x20), *range(0x7F, 0xA0), 0x200E, 0x200F])
    )
    assert not set(escaped_characters) & set(
        map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x61C, 0x2028, 0x2029])
    )


def test_escaped_json_has_no_control_characters_and_stays_the_same_document() -> None:
    all_characters = "".join(chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF)
    document = {all_characters[:0x3000]: [all_characters]}
    text = escape_json_controls(json.dumps(document, ensure_ascii=False, indent=1))
    assert json.loads(text) == document
    assert escape_invisible(text) == text
    assert escape_json_controls('"é 日本 \x9b"') == '"é 日本 \\u009b"'


def test_a_long_name_is_shortened() -> None:
    assert truncate_text("a" * 60) == "a" * 60
    assert truncate_text("a" * 61) == "a" * 59 + "…"


def test_escaping_is_idempotent() -> None:
    escaped_once = escape_invisible("\x1b\u202e\ud800")
    assert escape_invisible(escaped_once) == escaped_once


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("gpt-4o", "gpt-4o"),
        ("../../etc/passwd", "etc-passwd"),
        ("C:\\x|y", "C--x-y"),
        ("Émile 3", "Emile-3"),
        ("..", "unnamed"),
        ("模型", "unnamed"),
        ("a" * 200, "a" * 80),
    ],
)
def test_a_slug_is_a_file_name_and_no_path(name: str, file: str) -> None:
    assert slugify(name) == file


@pytest.mark.parametrize("length", [0, 1, 499, 500, 501, 502, 600, 5_000, 1_600_000])
def test_a_long_text_is_cut_in_the_middle_and_says_how_much_is_left_out(length: int) -> None:
    text = "".join(chr(ord("a") + i % 26) for i in range(length))
    cut = truncate_middle(text, 500)
    assert len(cut) <= 500
    if length <= 500:
        assert cut == text
        return
    beginning, number, end = re.split(r"\n\[… ([\d,]+) characters left out …\]\n", cut)
    assert text.startswith(beginning)
    assert text.endswith(end)
    assert len(beginning) + len(end) + int(number.replace(",", "")) == length
    assert min(len(beginning), len(end)) > 200


def test_every_string_is_changed_at_any_depth_and_what_is_unchanged_stays_the_same() -> None:
    @dataclass(frozen=True)
    class Inner:
        error: str | None
        body: bytes

    @dataclass(frozen=True)
    class Outer:
        text: str
        number: int
        inner: tuple[Inner, ...]

    record = Outer("a", 3, (Inner("b", b"c"), Inner(None, b"")))
    assert map_strings(record, str.upper) == Outer("A", 3, (Inner("B", b"c"), Inner(None, b"")))
    assert map_strings(record, str.lower) is record
    assert map_strings({"a": ["b", 1, None]}, str.upper) == {"A": ["B", 1, None]}


@pytest.mark.parametrize("start", "=+-@\uff1d\uff0b\uff0d\uff20")
def test_a_cell_that_a_spreadsheet_would_compute_is_quoted(start: str) -> None:
    for text in (f"{start}1+1", f"  {start}1+1", f"\u202e{start}1+1"):
        cell = escape_csv_cell(text)
        assert cell.startswith("'")
        assert cell.isprintable()
    assert escape_csv_cell(f"1{start}1") == f"1{start}1"


def test_a_name_is_spelled_as_the_known_one_that_looks_like_it() -> None:
    composed, decomposed = "mod\u00e8le", "mode\u0300le"
    assert make_name_speller([decomposed])(composed) == decomposed
    assert [make_name_speller([composed, decomposed])(name) for name in (composed, decomposed)] == [
        composed,
        decomposed,
    ]
    assert make_name_speller([])(f"{decomposed}\u200b") == composed
