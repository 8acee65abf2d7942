"""Model texts are shown as plain text: on every screen, in a real terminal, and by a check of the source."""

from __future__ import annotations

import ast
import os
import pty
import re
import select
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.cells import cell_len
from sqlalchemy import text as sql

import auditor.tui
from auditor.domain import Cell, Decision, Rating, RatingAction, Survey
from auditor.review.session import ReviewSession
from auditor.storage import audits, results
from auditor.storage.audits import Audit, _save_survey, _serialize_survey
from auditor.storage.database import Database, open_database
from auditor.storage.rating_log import RatingEntry
from auditor.storage.records import save_records
from auditor.tui.formatting import describe_undo, fit_width, highlight_spans, to_content, to_multiline, to_single_line
from tests.support.patience import PATIENCE_S
from tests.support.review_audit import HOSTILE, save_review_audit
from tests.tui.conftest import Run

STARTS_EMPTY = True

ATTACKS = [
    "[/INST]",
    "[@click=app.quit]q[/]",
    "[$primary]x",
    "[B]x",
    "see [1]",
    "[score=5]",
    "[bold red]x[/]",
    "[/]",
    "[[x]]",
    "\\[x]",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil\x1b\\link",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b[2J\x1b[31m",
    "\x9b31m\x9d0;x\x9c",
    "\u202eevil\u202c\u2066x\u2069",
    "over\rwritten",
    "a\x08b\x7f\x00",
    "\ud800 lone",
    "\u200bzero\ufeff",
]
CONTROL_CHARACTERS = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def is_plain(text: str) -> bool:
    return CONTROL_CHARACTERS.search(text) is None


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_formatter_removes_control_characters(attack: str) -> None:
    for sanitized in (
        to_multiline(attack),
        to_single_line(attack),
        fit_width(attack, 30),
        to_content(attack).plain,
        highlight_spans(attack, [(0, 2)], "b").plain,
    ):
        assert is_plain(sanitized)
    if attack.isprintable():
        assert to_content(attack).plain == attack
        assert to_single_line(attack) == attack
    assert cell_len(fit_width(attack, 12)) == 12


def save_hostile_audit(db: Database, attack: str) -> Audit:
    """Save an audit in which all external text is an attack: reasoning, verdicts, names and survey."""
    audit = save_review_audit(db, conflicts=2, hostile=True)
    text = attack.encode("utf-8", "replace").decode()  # a lone surrogate cannot be stored
    new_cells = {
        cell: Cell(text + cell.country, text + cell.topic)
        for cell in {conflict.cell for conflict in results.load_conflicts(db, audit.id)}
    }
    save_records(db, audit.id, [
        replace(trace, cell=new_cells[trace.cell], model=text + trace.model, text=text)
        for trace in results.load_traces(db, audit.id)
    ])  # fmt: skip
    save_records(db, audit.id, [
        replace(
            verdict, cell=new_cells[verdict.cell], model=text + verdict.model, judge=text + verdict.judge,
            justification=text,
        )
        for verdict in results.load_verdicts(db, audit.id)
    ])  # fmt: skip
    results.replace_conflicts(db, audit.id, [
        replace(conflict, cell=new_cells[conflict.cell], left=text + conflict.left, right=text + conflict.right)
        for conflict in results.load_conflicts(db, audit.id)
    ])  # fmt: skip
    survey = audits.load_audit_survey(db, audit)
    hostile = Survey(
        name=text, title=text, source=text, wording=text + " {topic} {country}", scale=(text, text),
        cells=tuple(replace(c, cell=new_cells[c.cell]) for c in survey.cells),
    )  # fmt: skip
    db.write(lambda connection: _save_survey(connection, audit.id, hostile))
    db.write(
        lambda connection: connection.execute(sql("update audit set survey = :s"), {"s": _serialize_survey(hostile)})
    )
    return audits.get_audit(db, "moral")


async def test_no_screen_shows_control_characters(run: Run, db: Database) -> None:
    attack = " ".join([HOSTILE, *ATTACKS])
    audit = save_hostile_audit(db, attack)
    for rater in (attack + "ada", "grace"):
        session = ReviewSession(db, audit, rater)
        for key in list(session.conflict_keys()):
            item = session.load_item(key)
            session.decide(item, Decision.LEFT, note=attack)
    async with run(size=(130, 40), rater=rater) as driver:
        texts = [driver.text]
        for keys in (("enter",), ("h",), ("escape", "n"), ("escape", "escape", "a"), ("escape", "slash")):
            await driver.press(*keys)
            texts.append(driver.text)
        await driver.press("escape", "F", "s", "escape", "escape", "q")
        texts.append(driver.text)
        await driver.press("u")
        for text in (*texts, driver.text, *driver.messages):
            assert is_plain(text)
            assert max(map(cell_len, text.splitlines()), default=0) <= 130


def test_escapes_do_not_reach_a_real_terminal(tmp_path: Path) -> None:
    """The tests above check the compositor's text; this one checks the bytes written to a terminal."""
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        save_hostile_audit(db, HOSTILE)
    code = f"from auditor.tui.app import run_review; run_review({url!r}, 'moral', rater='ada')"
    (tmp_path / "review.toml").write_text("open_next = false")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", AUDITOR_REVIEW_DIR=str(tmp_path), COLUMNS="120", LINES="40")
        os.execv(sys.executable, [sys.executable, "-c", code])
    terminal_output = b""

    def read_until(words: bytes) -> None:
        nonlocal terminal_output
        end = time.monotonic() + PATIENCE_S
        while words not in terminal_output and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                terminal_output += os.read(terminal, 65536)
        assert words in terminal_output, terminal_output[-2000:]

    try:
        read_until(b"gotcha")
        os.write(terminal, b"\r")
        read_until(b"1 left")
        os.write(terminal, b"1")
        read_until(b"saved:")
        os.write(terminal, b"\x11")
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                terminal_output += os.read(terminal, 65536)
            except OSError:
                break
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert "␛]0;owned␇".encode() in terminal_output
    for sequence in (
        b"\x1b]0;owned",
        b"\x1b[2J\x1b[31mred",
        "\x9b31m".encode(),
        "\u202e".encode(),
        b"\x1b]52",
        b"\x08 end",
    ):
        assert sequence not in terminal_output


# --- a check of the source: widgets get sanitized content or the app's own words --------------------------------------

WIDGETS = {"Static", "Label", "Button", "Option", "add_option", "update", "replace_option_prompt"}
CONTENT_MAKERS = {"Content", "styled"}
"""Functions that make content of a string without markup, but do not remove control characters."""
BORDER_MAKERS = ("Content", "to_content", "format_hints")
SANITIZERS = {
    "to_content", "to_single_line", "to_multiline", "fit_width", "highlight_spans", "format_score", "draw_score_axis",
    "draw_progress_bar", "draw_interval", "format_header", "with_text",
}  # fmt: skip


def unsafe_widget_texts(tree: ast.AST) -> list[str]:
    """Places in a source file that pass possibly external text to a widget without a function of `SANITIZERS`."""
    unsafe_nodes = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(_name(target).startswith("border_") for target in node.targets):
            unsafe_nodes += [] if _name(getattr(node.value, "func", node.value)) in BORDER_MAKERS else [node.value]
        if not isinstance(node, ast.Call) or not node.args:
            continue
        text = node.args[0]
        if _name(node.func) in CONTENT_MAKERS and not _is_safe(text):
            unsafe_nodes.append(text)
        if _name(node.func) in WIDGETS and isinstance(text, ast.JoinedStr) and not _is_safe(text):
            unsafe_nodes.append(text)
    return [f"line {node.lineno}: {ast.unparse(node)}" for node in unsafe_nodes]


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_safe(node: ast.expr) -> bool:
    """Whether an expression is a literal, a constant, a call of a sanitizer, or composed of these."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name.isupper()
        case ast.JoinedStr(values=values):
            return all(_is_safe(v.value) if isinstance(v, ast.FormattedValue) else True for v in values)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return _is_safe(one) and _is_safe(other)
        case ast.Call(func=func):
            return _name(func) in SANITIZERS
        case _:
            return False


def test_every_string_shown_in_a_widget_is_sanitized() -> None:
    folder = Path(auditor.tui.__file__).parent
    problems_by_file = {
        path.name: unsafe_widget_texts(ast.parse(path.read_text())) for path in sorted(folder.glob("*.py"))
    }
    assert {name: problems for name, problems in problems_by_file.items() if problems} == {}


def test_the_source_check_finds_unsanitized_texts() -> None:
    assert unsafe_widget_texts(ast.parse("Static(f'{trace.text}')"))
    assert unsafe_widget_texts(ast.parse("panel.border_title = name"))
    assert unsafe_widget_texts(ast.parse("Content.styled(f'by {row.author}', 'bold')"))
    assert unsafe_widget_texts(ast.parse("Content(note)"))
    assert not unsafe_widget_texts(ast.parse("Static(f'{to_single_line(trace.text)}')"))


def test_messages_are_shown_without_markup() -> None:
    """Textual's `notify` parses markup unless `markup=False`."""
    folder = Path(auditor.tui.__file__).parent
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _name(node.func) == "notify":
                assert "markup=False" in ast.unparse(node), f"{path.name}, line {node.lineno}"


@pytest.mark.parametrize(
    ("cell", "subject"),
    [(Cell("Japan", "divorce"), "divorce in Japan"), (Cell("", "What is 1 + 1?"), "What is 1 + 1?")],
)
def test_an_undo_names_the_cell_or_the_item_of_the_task(cell: Cell, subject: str) -> None:
    rating = Rating(cell, "m", "n", 0.5, -0.5, "ada", Decision.BOTH, datetime(2026, 1, 2, tzinfo=UTC), note="odd")
    message = describe_undo(RatingAction.UNDO, RatingEntry(1, rating))
    assert message == f"Undone. {subject} is now: {Decision.BOTH.spec.phrase}, with a note."


def test_a_redo_of_nothing_is_named() -> None:
    assert describe_undo(RatingAction.REDO, None) == "There is nothing to redo."
