"""Every key of every screen: its effect and what the screen shows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from auditor.domain import Decision
from auditor.domain.decisions import ReviewAspect
from auditor.review.session import ReviewSession
from auditor.storage import audits, results
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database
from auditor.tui import key_bindings
from auditor.tui.conflict import ConflictScreen
from auditor.tui.dialogs import FilterDialog, HistoryWindow, KeysWindow, ScoreDialog, TextDialog, TextWindow
from auditor.tui.home import HomeScreen
from auditor.tui.key_bindings import ACTIONS
from auditor.tui.label_screen import LabelApp, LabelScreen
from auditor.tui.queue import QueueScreen
from auditor.tui.settings import DARK, LIGHT, ReviewSettings
from auditor.tui.text_screens import AgreementScreen, ErrorsScreen
from tests.support.known import known
from tests.support.label_sample import open_session, save_labelling_audit
from tests.support.review_audit import save_review_audit
from tests.tui.app_driver import Driver
from tests.tui.conftest import Run

THEMES = [DARK.name, LIGHT.name]
Check = Callable[[Driver], bool]


class Step(NamedTuple):
    """A key, the text that must be visible after it, and a condition that must hold."""

    key: str
    shows: str = ""
    holds: Check = lambda driver: True


def is_on_screen(page: type) -> Check:
    return lambda driver: isinstance(driver.app.screen, page)


def cursor_at(place: int) -> Check:
    return lambda driver: driver.queue.queue_table.cursor == place


def gaps_rise(is_rising: bool) -> Check:
    """Whether the gaps of the first two rows of the queue rise."""

    def check(driver: Driver) -> bool:
        rows = [row for row in driver.text.splitlines() if "┼" in row and "open" in row]
        first, second = (float(row.split()[-2]) for row in rows[:2])
        return (first < second) is is_rising

    return check


def scrolled_to(*rows: int) -> Check:
    """Whether both sides and the evidence are scrolled to one of these rows."""
    panels = ("#left", "#right", "#evidence")
    return lambda driver: {driver.conflict.query_one(panel).scroll_offset.y for panel in panels} <= set(rows)


def decided(decision: Decision | None) -> Check:
    return lambda driver: driver.conflict.item is not None and driver.conflict.item.decision is decision


def chosen(value: str | None) -> Check:
    def check(driver: Driver) -> bool:
        assert isinstance(driver.page, LabelScreen)
        choice = driver.page.item and driver.page.item.choice
        return (choice and choice.value) == value

    return check


STEPS_BY_SCREEN: dict[str, list[Step]] = {
    "home": [
        Step("down", holds=lambda d: d.app.screen.selected_audit == "moral"),  # type: ignore[attr-defined]
        Step("up", holds=lambda d: d.app.screen.selected_audit == "second"),  # type: ignore[attr-defined]
        Step("j", holds=lambda d: d.app.screen.selected_audit == "moral"),  # type: ignore[attr-defined]
        Step("k", "2 audits", lambda d: d.app.screen.selected_audit == "second"),  # type: ignore[attr-defined]
        Step("j"),
        Step("a", "moral › agreement", is_on_screen(AgreementScreen)),
        Step("escape", "not settled", is_on_screen(HomeScreen)),
        Step("E", "moral › errors", is_on_screen(ErrorsScreen)),
        Step("escape", "not settled", is_on_screen(HomeScreen)),
        Step("enter", "moral › conflicts", is_on_screen(QueueScreen)),
        Step("escape", "auditor › audits", is_on_screen(HomeScreen)),
        Step("q", holds=lambda d: bool(d.app._exit)),
    ],
    "queue": [
        Step("j", holds=cursor_at(1)),
        Step("down", "3 of 20", cursor_at(2)),
        Step("k", "2 of 20", cursor_at(1)),
        Step("up", "1 of 20", cursor_at(0)),
        Step("G", "20 of 20", cursor_at(19)),
        Step("g", "1 of 20", cursor_at(0)),
        Step("end", "20 of 20", cursor_at(19)),
        Step("home", "1 of 20", cursor_at(0)),
        Step("pagedown", holds=cursor_at(17)),
        Step("pageup", "1 of 20", cursor_at(0)),
        Step("ctrl+d", holds=cursor_at(17)),
        Step("ctrl+u", "1 of 20", cursor_at(0)),
        Step("o", "by effect on the conclusions"),
        Step("o", "by gap", gaps_rise(False)),
        Step("O", "by gap (reversed)", gaps_rise(True)),
        Step("x", "by information", lambda d: d.queue.queue_filter == QueueFilter()),
        Step("g", "1 of 20", cursor_at(0)),
        Step("slash", "enter applies it", is_on_screen(TextDialog)),
        Step("escape", "1 of 20", is_on_screen(QueueScreen)),
        Step("F", "No filter is saved yet", is_on_screen(FilterDialog)),
        Step("escape", "1 of 20", is_on_screen(QueueScreen)),
        Step("R", "○ 20 open", is_on_screen(QueueScreen)),
        Step("end", "20 of 20"),
        Step("space", "1 of 20", is_on_screen(ConflictScreen)),
        Step("q", "○ 20 open", is_on_screen(QueueScreen)),
        Step("g", "1 of 20", cursor_at(0)),
        Step("space", "not decided by you", is_on_screen(ConflictScreen)),
        Step("1", "saved", decided(Decision.LEFT)),
        Step("q", "◀ left", is_on_screen(QueueScreen)),
        Step("u", "○ 20 open", lambda d: len(d.log) == 2),
        Step("r", "◀ left", lambda d: len(d.log) == 3),
        Step("enter", "saved", is_on_screen(ConflictScreen)),
        Step("escape", "1 of 20", is_on_screen(QueueScreen)),
        Step("a", "moral › agreement", is_on_screen(AgreementScreen)),
        Step("q", "moral › conflicts", is_on_screen(QueueScreen)),
        Step("E", "moral › errors", is_on_screen(ErrorsScreen)),
        Step("q", "moral › conflicts", is_on_screen(QueueScreen)),
        Step("escape", "auditor › audits", is_on_screen(HomeScreen)),
    ],
    "conflict": [
        Step("1", "◀ left answer chosen", decided(Decision.LEFT)),
        Step("2", "▶ right answer chosen", decided(Decision.RIGHT)),
        Step("3", "◆ both answers accepted", decided(Decision.BOTH)),
        Step("4", "✕ both answers rejected", decided(Decision.NEITHER)),
        Step("u", "◆ both answers accepted", decided(Decision.BOTH)),
        Step("r", "✕ both answers rejected", decided(Decision.NEITHER)),
        Step("5", "Custom score", is_on_screen(ScoreDialog)),
        Step("escape", "✕ both answers rejected", is_on_screen(ConflictScreen)),
        Step("equals_sign", "Custom score", is_on_screen(ScoreDialog)),
        Step("0", "Custom score", is_on_screen(ScoreDialog)),
        Step("enter", "saved: ±", decided(Decision.SCORE)),
        Step("i", "Question", is_on_screen(TextWindow)),
        Step("escape", "saved: ±", is_on_screen(ConflictScreen)),
        Step("n", "enter saves", is_on_screen(TextDialog)),
        Step("escape", "Survey", is_on_screen(ConflictScreen)),
        Step("f", "⚑ flagged", lambda d: d.conflict.item is not None and d.conflict.item.row.flagged),
        Step("h", "Your actions", is_on_screen(HistoryWindow)),
        Step("escape", "⚑ flagged", is_on_screen(ConflictScreen)),
        Step("full_stop", "text 2 of 3", lambda d: d.text.count("text 2 of 3") == 2),
        Step("comma", "text 1 of 3", lambda d: d.text.count("text 1 of 3") == 2),
        Step("comma", "text 3 of 3", lambda d: d.text.count("text 3 of 3") == 2),
        Step("d", holds=lambda d: not d.conflict.highlight_differences),
        Step("d", holds=lambda d: d.conflict.highlight_differences),
        Step("j", holds=scrolled_to(1)),
        Step("k", holds=scrolled_to(0)),
        Step("down", holds=scrolled_to(1)),
        Step("up", holds=scrolled_to(0)),
        Step("pagedown", holds=scrolled_to(*range(2, 30))),
        Step("pageup", holds=scrolled_to(0)),
        Step("right_square_bracket", "2 of 20", decided(None)),
        Step("v", "Survey", lambda d: d.conflict.item is not None and d.conflict.item.revealed),
        Step("left_square_bracket", "1 of 20", decided(Decision.SCORE)),
        Step("left_square_bracket", "1 of 20", lambda d: d.messages[-1] == "This is the end of the list."),
        Step("space", "not decided by you", decided(None)),
        Step("s", "not decided by you", decided(None)),
        Step("enter", "the rest is hidden until you decide", decided(None)),
        Step("escape", "– skipped", is_on_screen(QueueScreen)),
        Step("enter", holds=is_on_screen(ConflictScreen)),
        Step("q", "moral › conflicts", is_on_screen(QueueScreen)),
    ],
    "people": [
        *(
            Step(key, holds=is_on_screen(AgreementScreen))
            for key in ("j", "down", "k", "up", "pagedown", "pageup", "space", "pageup")
        ),
        Step("enter", "state:contested", lambda d: "1 of 3" in d.text),
        Step("q", "Raters", is_on_screen(AgreementScreen)),
        Step("escape", "moral › conflicts", is_on_screen(QueueScreen)),
        Step("a", "Raters", is_on_screen(AgreementScreen)),
        Step("q", "moral › conflicts", is_on_screen(QueueScreen)),
    ],
    "errors": [
        *(
            Step(key, "No request failed.", is_on_screen(ErrorsScreen))
            for key in ("j", "down", "k", "up", "pagedown", "pageup", "space", "pageup")
        ),
        Step("q", "moral › conflicts", is_on_screen(QueueScreen)),
        Step("E", "moral › errors", is_on_screen(ErrorsScreen)),
        Step("escape", "moral › conflicts", is_on_screen(QueueScreen)),
    ],
    "label": [
        Step("1", "✓ saved: valid", chosen("VALID")),
        Step("2", "✓ saved: invalid", chosen("INVALID")),
        Step("3", "✓ saved: unsure", chosen("unsure")),
        Step("4", "✓ saved: unsure", chosen("unsure")),
        Step("u", "✓ saved: invalid", chosen("INVALID")),
        Step("x", "✓ saved: invalid (culture yes)", chosen("INVALID")),
        Step("x", "x culture: no"),
        Step("x", "x culture: –"),
        Step("y", "y logic: yes"),
        Step("z", "z score: yes"),
        Step("n", "enter saves", is_on_screen(TextDialog)),
        Step("escape", "✓ saved: invalid", is_on_screen(LabelScreen)),
        *(Step(key, "Score of") for key in ("j", "k", "down", "up")),
        *(Step(key, "Can the reasoning stand") for key in ("pagedown", "pageup")),
        Step("right_square_bracket", "2 of 30", chosen(None)),
        Step("left_square_bracket", "1 of 30", chosen("INVALID")),
        Step("space", "2 of 30", chosen(None)),
        Step("enter", "3 of 30", chosen(None)),
        Step("s", "2 of 30", chosen(None)),
        Step("q", holds=lambda d: bool(d.app._exit)),
        Step("escape", holds=lambda d: bool(d.app._exit)),
    ],
    "everywhere": [
        Step("question_mark", "Keys · queue", is_on_screen(KeysWindow)),
        Step("escape", "1 of 20", is_on_screen(QueueScreen)),
        Step("f1", "Keys · queue", is_on_screen(KeysWindow)),
        Step("escape", "1 of 20", is_on_screen(QueueScreen)),
        Step("ctrl+p", "Search for commands", lambda d: not isinstance(d.app.screen, QueueScreen)),
        Step("escape", "1 of 20", is_on_screen(QueueScreen)),
        Step("T", "1 of 20", lambda d: d.app.theme in THEMES),
        Step("N", "1 of 20", lambda d: d.app.settings.open_next),
        Step("ctrl+q", holds=lambda d: bool(d.app._exit)),
    ],
}
KEYS_TO_SCREEN = {
    "home": (),
    "queue": (),
    "conflict": ("enter",),
    "people": ("a",),
    "errors": ("E",),
    "label": (),
    "everywhere": (),
}


def test_every_key_is_pressed() -> None:
    for action in ACTIONS:
        pressed_keys = {step.key for step in STEPS_BY_SCREEN[action.screen]}
        assert set(action.keys.split(",")) <= pressed_keys, action.id


@pytest.mark.parametrize("screen", list(STEPS_BY_SCREEN))
async def test_every_key_does_what_its_help_says(run: Run, db: Database, screen: str, tmp_path: Path) -> None:
    if screen == "home":
        save_review_audit(db, name="second", conflicts=2)
    if screen == "people":
        _disagree(db)
    labelling = run_labelling(db, ReviewSettings(tmp_path, open_next=False)) if screen == "label" else None
    async with labelling or run(None if screen == "home" else "moral") as driver:
        await driver.press(*KEYS_TO_SCREEN.get(screen, ()))
        for step in STEPS_BY_SCREEN[screen]:
            await driver.press(step.key)
            assert await driver.reaches(step.holds, 20), (step.key, driver.text)
            if not driver.app._exit:
                assert await driver.reaches(partial(_shows, step.shows), 20), (step.key, driver.text)
                assert max(map(len, driver.text.splitlines())) <= 80


@asynccontextmanager
async def run_labelling(db: Database, settings: ReviewSettings) -> AsyncIterator[Driver]:
    app = LabelApp(open_session(db, save_labelling_audit(db)), settings)
    async with app.run_test(size=(80, 24)) as pilot:
        driver = Driver(app, pilot)
        await driver.settle()
        yield driver


def _shows(text: str, driver: Driver) -> bool:
    return text in driver.text


def _disagree(db: Database) -> None:
    for rater, decision in (("grace", Decision.BOTH), ("mary", Decision.NEITHER)):
        session = ReviewSession(db, audits.get_audit(db, "moral"), rater, second_rater_share=1.0)
        for key in sorted(session.conflict_keys())[:3]:
            session.decide(session.load_item(key), decision)


def test_every_aspect_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [action for action in ACTIONS if not action.name.startswith("aspect(")]
    taken = [key for action in others if action.screen in ("label", "everywhere") for key in action.keys.split(",")]
    aspects = [ReviewAspect(f"aspect_{number}", f"label {number}") for number in range(12)]
    monkeypatch.setattr(key_bindings, "REVIEW_ASPECTS", aspects)
    keys = [action.keys for action in key_bindings.make_aspect_actions(others)]
    assert keys[:4] == ["x", "y", "z", "w"]
    assert len({*keys, *taken}) == len(aspects) + len(taken)


async def click(driver: Driver, text: str, times: int = 1) -> None:
    """Click a text on the screen, where it is shown last."""
    lines = driver.text.split("\n")
    assert text in driver.text, driver.text
    row = max(number for number, line in enumerate(lines) if text in line)
    await driver.pilot.click(offset=(lines[row].rindex(text) + 1, row), times=times)
    await driver.settle()


async def test_a_conflict_is_opened_decided_and_left_by_mouse(run: Run) -> None:
    async with run() as driver:
        await click(driver, "Nigeria")
        assert driver.queue.queue_table.cursor > 0
        await click(driver, "Nigeria", times=2)
        assert isinstance(driver.app.screen, ConflictScreen)
        await click(driver, "2 right")
        await click(driver, "5 score")
        assert isinstance(driver.app.screen, ScoreDialog)
        await click(driver, "┼")
        await click(driver, "↑ more")
        await click(driver, "↓ less")
        await click(driver, "enter saves")
        item = known(driver.conflict.item)
        assert (item.decision, item.row.score) == (Decision.SCORE, 0.0)
        await click(driver, "5 score")
        await click(driver, "esc cancels")
        await click(driver, "moral ›")
        assert isinstance(driver.app.screen, QueueScreen)
        await click(driver, "moral ›")
        assert isinstance(driver.app.screen, HomeScreen)
        await click(driver, "moral")
        assert isinstance(driver.app.screen, QueueScreen)


async def test_every_action_can_be_clicked_in_the_list_of_keys(run: Run) -> None:
    async with run(size=(120, 40)) as driver:
        await driver.press("enter")
        await click(driver, "? keys")
        assert isinstance(driver.app.screen, KeysWindow)
        await click(driver, "Write a note on this conflict.")
        assert isinstance(driver.app.screen, TextDialog)
        await driver.type("unsure")
        await click(driver, "enter saves")
        assert "✎ unsure" in driver.text
        await click(driver, "? keys")
        await click(driver, "esc closes")
        assert isinstance(driver.app.screen, ConflictScreen)


async def test_a_whole_cell_and_filters_by_mouse(run: Run, db: Database) -> None:
    audit_id = audits.get_audit(db, "moral").id
    conflict = next(c for c in results.load_conflicts(db, audit_id) if c.cell == ("Egypt", "divorce"))
    results.replace_conflicts(db, audit_id, [conflict, replace(conflict, right="cedar", score_right=0.05)])
    async with run() as driver:
        await click(driver, "/ filter")
        await driver.type("country:egypt")
        await click(driver, "enter applies it")
        assert "country:egypt" in driver.text
        await driver.press("F")
        await click(driver, "s saves the current filter")
        await driver.type("mine")
        await click(driver, "enter saves")
        assert isinstance(driver.app.screen, FilterDialog), driver.text
        await click(driver, "enter uses")
        assert isinstance(driver.app.screen, QueueScreen), driver.text
        await driver.press("enter", "5", *"0.5", "enter")
        await click(driver, "y saves all 2")
        assert len(driver.log) == 2
