"""Tests of printing: tables, JSON and CSV on terminals and in pipes."""

from __future__ import annotations

import io
import json

import pytest

from auditor.console.output import format_command, print_data, print_json, print_json_text, print_table


def test_right_to_left_cells_keep_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["country", "topic", "score"], [["مصر", "الطلاق", "-0.35"], ["Japan", "divorce", None]])
    lines = capsys.readouterr().out.splitlines()
    arabic, plain = (next(line for line in lines if word in line) for word in ("مصر", "Japan"))
    assert "\u200eمصر\u200e" in arabic
    assert "\u200eالطلاق\u200e" in arabic
    assert "\u200e" not in plain
    # Direction marks have no width: without them, the scores of both rows start in the same column.
    assert arabic.replace("\u200e", "").index("-0.35") == plain.index("–")


def test_a_suggested_command_names_a_storage_other_than_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUDITOR_STORAGE", raising=False)
    assert format_command("report", "a") == "auditor report a"
    assert format_command("report", "a", storage="sqlite:///auditor.db") == "auditor report a"
    assert format_command("report", "a", storage="sqlite:///x y.db") == "auditor report a --storage 'sqlite:///x y.db'"
    assert "secret" not in format_command("report", "a", storage="postgresql+psycopg://u:secret@h/d")


class Stream(io.TextIOWrapper):
    """Standard output with a given encoding, which is a terminal or a pipe."""

    def __init__(self, encoding: str = "utf-8", *, is_terminal: bool) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding, "backslashreplace", newline="\n", write_through=True)
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    @property
    def text(self) -> str:
        return self.bytes.getvalue().decode(self.encoding)


ODD = {"a\x9b31m": "\u202eevil\u2066\x7f\u061c", "plain": "é 日本 😀"}


def test_json_on_a_terminal_has_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    for write in (print_json, lambda value: print_json_text(json.dumps(value, ensure_ascii=False))):
        screen = Stream(is_terminal=True)
        monkeypatch.setattr("sys.stdout", screen)
        write(ODD)
        assert json.loads(screen.text) == ODD
        assert not set("\x9b\u202e\u2066\x7f\u061c") & set(screen.text)
        assert "é 日本 😀" in screen.text


def test_json_in_a_pipe_is_unchanged_and_ascii_in_an_ascii_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Stream(is_terminal=False)
    monkeypatch.setattr("sys.stdout", pipe)
    print_json(ODD)
    assert "\x9b" in pipe.text
    for write in (print_json, lambda value: print_json_text(json.dumps(value, ensure_ascii=False))):
        ascii_only = Stream("ascii", is_terminal=False)
        monkeypatch.setattr("sys.stdout", ascii_only)
        write(ODD)
        assert json.loads(ascii_only.text) == ODD


def test_csv_on_a_terminal_has_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, pipe = Stream(is_terminal=True), Stream(is_terminal=False)
    for stream in (screen, pipe):
        monkeypatch.setattr("sys.stdout", stream)
        print_data("a,\x1b]0;x\x07\n")
    assert screen.text == "a,␛]0;x␇\n"
    assert pipe.text == "a,\x1b]0;x\x07\n"


def test_column_names_are_not_read_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["[bold]x[/]", "[/nothing]", "\x1b[31m"], [["1", "2", "3"]])
    out = capsys.readouterr().out
    for words in ("[bold]x[/]", "[/nothing]", "␛[31m"):
        assert words in out
