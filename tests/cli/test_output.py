from __future__ import annotations

import pytest

from auditor.cli.output import command, table


def test_right_to_left_cells_keep_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    table(["country", "topic", "score"], [["مصر", "الطلاق", "-0.35"], ["Japan", "divorce", None]])
    lines = capsys.readouterr().out.splitlines()
    arabic, plain = (next(line for line in lines if word in line) for word in ("مصر", "Japan"))
    assert "\u200eمصر\u200e" in arabic
    assert "\u200eالطلاق\u200e" in arabic
    assert "\u200e" not in plain
    # Marks have no width: what stands behind them is where it is in the other row.
    assert arabic.replace("\u200e", "").index("-0.35") == plain.index("–")


def test_a_command_to_give_next_names_a_storage_that_is_not_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUDITOR_STORAGE", raising=False)
    assert command("report", "a") == "auditor report a"
    assert command("report", "a", storage="sqlite:///auditor.db") == "auditor report a"
    assert command("report", "a", storage="sqlite:///x y.db") == "auditor report a --storage 'sqlite:///x y.db'"
    assert "secret" not in command("report", "a", storage="postgresql+psycopg://u:secret@h/d")
