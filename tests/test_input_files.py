"""Input that a parser cannot handle is an error with the file's name, raised quickly and in little memory."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from auditor import input_files
from auditor.errors import AuditorError, ImportFileError, SurveyError
from auditor.input_files import (
    MAX_DEPTH,
    decode_utf8,
    parse_json,
    parse_toml,
    read_json,
    read_numbered_lines,
    read_text,
    require_file,
)
from tests.support.hang_limit import hang_limit


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 100_000, "nested too deeply"),
        (".".join("a" * 1_000_000) + " = 1", "nested too deeply"),
        ("\n".join(f"{'a.' * 38}x{n} = 1" for n in range(1000)), ""),
        ("a = " + "9" * 100_000, "too large"),
        (f"a = {-(2**63)}", "too large"),
        ("a = 1\n\na = 2", "a key is used twice"),
        ("[a.b]\n[a.b]", "Cannot declare a.b twice (at line 2"),
        ('a = "\\u0000"', "NUL"),
    ],
)
def test_unusual_toml_is_an_error_or_parsed(text: str, message: str) -> None:
    with hang_limit():
        if message:
            with pytest.raises(SurveyError, match="F: ") as caught:
                parse_toml(text, "F", SurveyError)
            assert message in caught.value.message
            assert caught.value.how_to_fix
        else:
            assert parse_toml(text, "F", SurveyError)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("judges = peers", 'write text in straight double quotes, such as "peers"'),
        ("name = “mine”", "write text in straight double quotes"),
        (r'source = "C:\Users\ada\survey.csv"', r"in single quotes, such as 'C:\data\survey.csv'"),
        (r'source = "data\survey.csv"', "write a path with backslashes in single quotes"),
        ("[models]\nname = 'a'\n[models]\nname = 'b'", "in double brackets, such as [[models]]"),
        ("limits = { budget_usd = 0,5 }", "a number with a decimal point"),
        ("judges: 'peers'", "write key = value"),
        ("threshold = 0,38", "a number with a decimal point, such as 0.38"),
        ("threshold = .38", "a number with a digit before its point"),
        ("stream = True", "true or false in small letters"),
    ],
)
def test_advice_on_frequent_mistakes_in_toml_names_the_correction(text: str, advice: str) -> None:
    with pytest.raises(SurveyError, match=r"F: not valid TOML: .* line") as caught:
        parse_toml(text, "F", SurveyError)
    assert advice in caught.value.how_to_fix


def test_nesting_depth_is_limited_without_recursion() -> None:
    for text, is_allowed in (("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1), True), ("[" * 60 + "]" * 60, False)):
        if is_allowed:
            assert parse_json(text, "F", SurveyError)
        else:
            with pytest.raises(SurveyError, match="nested too deeply"):
                parse_json(text, "F", SurveyError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "F: the key 'c' is used twice"),
        ("[1,\n}", r"F is not valid JSON: Expecting value \(line 2, column 1\)"),
        ("[1,", r"F is not valid JSON: Expecting value \(column 4\)"),
        ("1" * 5000, "F: a whole number is too large"),
    ],
)
def test_invalid_json_is_an_error(text: str, message: str) -> None:
    with pytest.raises(SurveyError, match=message):
        parse_json(text, "F", SurveyError)


def test_text_is_utf_8_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a"
    for data in ("é".encode(), "é".encode("utf-8-sig")):
        file.write_bytes(data)
        assert read_text(file, SurveyError) == "é"
    file.write_bytes(b"x" * 1_000_001)
    with pytest.raises(SurveyError, match="is larger than 1 MB"):
        read_text(file, SurveyError, max_bytes=1_000_000)
    for data, message in (
        ("é".encode("utf-16"), "UTF-16"),
        (b"a\n\n\xff", "line 3 is not UTF-8"),
        (b"a\n\0", "line 2 contains a NUL"),
    ):
        with pytest.raises(SurveyError, match=message):
            decode_utf8(data, "F", SurveyError)


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match="cannot be opened: File name too long"):
        require_file(tmp_path / ("x" * 300), SurveyError)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_json_is_read_in_the_encodings_that_have_a_mark(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.json").write_text('{"a": "ü"}', encoding=encoding)
    assert read_json(tmp_path / "a.json", ImportFileError) == {"a": "ü"}
    (tmp_path / "a.jsonl").write_text('{"a": "ü"}\n\n{"b": 1}\n', encoding=encoding)
    lines = list(read_numbered_lines(tmp_path / "a.jsonl", ImportFileError))
    assert [line for _, line in lines] == ['{"a": "ü"}', '{"b": 1}']
    assert lines[1][0].endswith("line 3")


def test_damaged_utf_16_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(ImportFileError, match="damaged text in UTF-16"):
        read_json(tmp_path / "a.json", ImportFileError)


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_lines_are_those_of_readline_wherever_a_block_ends(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "BLOCK_BYTES", block)
    for text in ("", "a", "a\n", "a\r\nbb\r\n\r\nc", "a\rb\r\r", "a\u2028b\x0bc\n\nd", "\r\n", "\n\r"):
        expected = io.StringIO(text, newline="").readlines()
        assert list(input_files.iterate_lines(io.StringIO(text, newline=""), "x", AuditorError)) == expected, text
