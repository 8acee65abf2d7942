"""Features of every screen: keys, help, palette, themes, callbacks and exit."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
from pathlib import Path

import pytest
from textual.color import Color
from textual.command import Command, CommandList
from textual.theme import Theme

from auditor.errors import StorageError
from auditor.storage.database import Database
from auditor.tui import key_bindings
from auditor.tui.app import ReviewApp, idle_garbage_collection
from auditor.tui.conflict import ConflictScreen
from auditor.tui.home import HomeScreen
from auditor.tui.key_bindings import ACTIONS
from auditor.tui.label_screen import LabelScreen
from auditor.tui.queue import QueueScreen
from auditor.tui.settings import DARK, LIGHT, THEMES, ReviewSettings
from auditor.tui.text_screens import AgreementScreen, ErrorsScreen
from tests.support.review_audit import save_review_audit
from tests.tui.app_driver import Driver
from tests.tui.conftest import Run

PAGES = {
    "home": HomeScreen,
    "queue": QueueScreen,
    "conflict": ConflictScreen,
    "people": AgreementScreen,
    "errors": ErrorsScreen,
}
KEYS_TO_SCREEN = {"home": ("q",), "queue": (), "conflict": ("enter",), "people": ("a",), "errors": ("E",)}


def test_every_action_has_its_method() -> None:
    for action in ACTIONS:
        if action.screen != "everywhere":
            method = action.method.partition("(")[0].removeprefix("app.")
            owner = ReviewApp if action.method.startswith("app.") else {**PAGES, "label": LabelScreen}[action.screen]
            assert callable(getattr(owner, f"action_{method}")), action.id


def test_no_key_of_the_terminal_or_its_multiplexer_is_used() -> None:
    keys = {key for action in ACTIONS for key in action.keys.split(",")}
    assert not keys & {"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+z", "ctrl+c"}
    assert not any(key.startswith("alt+") for key in keys)


@pytest.mark.parametrize("screen", PAGES)
async def test_help_and_palette_have_every_action_of_the_screen(run: Run, screen: str) -> None:
    async with run(size=(120, 60)) as driver:
        await driver.press(*KEYS_TO_SCREEN[screen])
        assert isinstance(driver.page, PAGES[screen])
        commands = {command.title: command for command in driver.app.get_system_commands(driver.app.screen)}
        await driver.press("question_mark")
        for action in key_bindings.actions_for(driver.page.screen_name):
            assert commands[action.label.capitalize()].help == action.help
            assert action.help in driver.text
            assert action.id in driver.text
        await driver.press("escape")
        assert isinstance(driver.app.screen, PAGES[screen])


async def test_help_scrolls_in_a_small_terminal(run: Run) -> None:
    async with run() as driver:
        await driver.press("question_mark")
        visible_text = driver.text
        await driver.press(*["j"] * 12)
        visible_text += driver.text
        await driver.press(*["down"] * 12)
        visible_text += driver.text
        for action in (*key_bindings.actions_for("queue"), *key_bindings.actions_for("everywhere")):
            assert action.help in visible_text, action.id
            assert action.id in visible_text
        await driver.press("k", "escape")
        assert isinstance(driver.app.screen, QueueScreen)


def palette_entries(driver: Driver) -> list[str]:
    """The entries that the command palette lists."""
    options = driver.app.screen.query_one(CommandList).options
    return [str(command.hit.text) for command in options if isinstance(command, Command)]


async def test_the_palette_does_what_it_says(run: Run) -> None:
    async with run() as driver:
        await driver.press("enter", "ctrl+p")
        await driver.type("neither")
        assert await driver.reaches(lambda d: palette_entries(d)[:1] == ["Neither"])
        await driver.press("enter")
        assert await driver.reaches(lambda d: "✓ saved: ✕ both answers rejected" in d.text)
        await driver.press("ctrl+p")
        await driver.type("dark or light")
        assert await driver.reaches(lambda d: palette_entries(d)[:1] == ["Dark or light"])
        await driver.press("enter")
        assert await driver.reaches(lambda d: d.app.theme == LIGHT.name)


async def test_keys_can_be_changed(run: Run, tmp_path: Path) -> None:
    settings = ReviewSettings(
        tmp_path, open_next=False, keys={"conflict.left": "z", "queue.open": "e", "everywhere.help": "H"}
    )
    async with run(settings=settings) as driver:
        assert "e open" in driver.text
        assert "H keys" in driver.text
        await driver.press("enter")
        assert isinstance(driver.page, QueueScreen)
        await driver.press("e")
        assert "z left" in driver.text
        await driver.press("1")
        assert "not decided" in driver.text
        await driver.press("z")
        assert "left answer chosen" in driver.text
        await driver.press("H")
        assert "z  Choose the answer on the left." in driver.text


async def test_themes_change_and_are_remembered(run: Run, tmp_path: Path) -> None:
    settings = ReviewSettings(tmp_path, open_next=False)
    async with run(settings=settings) as driver:
        assert driver.app.theme == DARK.name
        await driver.press("T")
        assert driver.app.theme == LIGHT.name
        assert settings.theme == LIGHT.name
        await driver.press("T")
        assert driver.app.theme == DARK.name


async def test_an_unknown_theme_is_the_default(run: Run, tmp_path: Path) -> None:
    async with run(settings=ReviewSettings(tmp_path, open_next=False, theme="no such")) as driver:
        assert driver.app.theme == DARK.name


FOREGROUND_COLORS = (
    "foreground",
    *(f"text-{n}" for n in ("muted", "success", "warning", "error", "primary", "secondary")),
)
BACKGROUND_COLORS = ("background", "surface", "panel", "block-cursor-background")


def luminance(color: Color) -> float:
    """WCAG 2.1, relative luminance."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: str(theme.name))
def test_every_text_colour_has_enough_contrast(theme: Theme) -> None:
    """WCAG 2.1: a contrast of 4.5 to 1 for text."""
    colors = theme.to_color_system().generate()
    low_contrasts = {}
    for foreground, background in itertools.product(FOREGROUND_COLORS, BACKGROUND_COLORS):
        low, high = sorted(luminance(Color.parse(colors[name])) for name in (foreground, background))
        ratio = (high + 0.05) / (low + 0.05)
        if ratio < 4.5:
            low_contrasts[foreground, background] = round(ratio, 2)
    assert not low_contrasts


async def test_an_unknown_audit_opens_home_with_a_message(run: Run) -> None:
    async with run("morl") as driver:
        assert isinstance(driver.page, HomeScreen)
        assert "has no audit 'morl'. Did you mean 'moral'?" in driver.messages[0]


async def test_the_callback_gets_audits_with_decisions(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.tui.rating_screen.DECISION_DELAY_S", 0.0)  # the test's keys come at once
    notified_audits: list[str] = []
    async with run(on_decided=notified_audits.append) as driver:
        await driver.press("enter", "s", "f", "n", "escape")
        driver.review_app.notify_decided_audits()
        assert notified_audits == []
        await driver.press("1")
        driver.review_app.notify_decided_audits()
        assert notified_audits == ["moral"]


async def test_the_callback_runs_at_once_when_all_is_resolved(run: Run, db: Database) -> None:
    save_review_audit(db, name="one", conflicts=1)
    notified = threading.Event()
    async with run("one", on_decided=lambda name: notified.set()) as driver:
        await driver.press("enter", "1")
        assert await asyncio.to_thread(notified.wait, 60)


async def test_an_error_of_the_callback_is_shown(run: Run, db: Database) -> None:
    def fail(name: str) -> None:
        raise StorageError(f"audit '{name}' is already being run.", "Wait for it.")

    save_review_audit(db, name="one", conflicts=1)
    async with run("one", on_decided=fail) as driver:
        await driver.press("enter", "1")
        await asyncio.to_thread(driver.app._prefetch_executor.submit(lambda: None).result)
        await driver.settle()
        assert driver.messages == ["audit 'one' is already being run. Wait for it."]
        assert "✓ saved" in driver.text


async def test_a_crash_prints_no_values(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database's URL may hold a password, and frames hold the URL."""

    def crash(self: object) -> None:
        secret = "hunter" + "2"
        raise RuntimeError(len(secret))

    monkeypatch.setattr(ReviewApp, "action_theme", crash)
    monkeypatch.setattr(ReviewApp, "_print_error_renderables", lambda self: None)
    apps: list[ReviewApp] = []

    async def crash_the_app() -> None:
        async with run() as driver:
            apps.append(driver.review_app)
            await driver.pilot.press("T")

    with pytest.raises(RuntimeError):
        await crash_the_app()
    assert apps[0]._exit_renderables == []  # the command prints one line instead


async def test_a_resized_terminal_is_used(run: Run) -> None:
    async with run() as driver:
        await driver.pilot.resize_terminal(160, 40)
        await driver.press("enter")
        assert await driver.reaches(lambda d: "Hidden until you decide" in d.text)
        await driver.pilot.resize_terminal(60, 20)
        assert await driver.reaches(lambda d: "Hidden until you decide" not in d.text)
        assert "1 left" in driver.text
        assert max(map(len, driver.text.splitlines())) <= 60


async def test_garbage_is_collected_only_at_rest(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    collections: list[bool] = []
    monkeypatch.setattr("auditor.tui.rater_app.IDLE_BEFORE_GC_S", 600.0)
    async with run() as driver:
        with idle_garbage_collection(driver.app):
            assert not gc.isenabled()
            monkeypatch.setattr(gc, "collect", lambda: collections.append(True))
            await driver.press("j")
            driver.app._collect_garbage()
            assert collections == []
            driver.app._last_input_time -= 601
            driver.app._collect_garbage()
            assert collections == [True]
        assert gc.isenabled()
