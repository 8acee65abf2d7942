"""A review with the mouse only: each key has a place to click."""

from __future__ import annotations

from dataclasses import replace

from auditor.domain import Decision
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.tui.conflict import ConflictScreen
from auditor.tui.dialogs import FilterDialog, KeysWindow, ScoreDialog, TextDialog
from auditor.tui.home import HomeScreen
from auditor.tui.queue import QueueScreen
from tests.tui.app_driver import Driver
from tests.tui.conftest import Run


async def click(driver: Driver, text: str, times: int = 1) -> None:
    """Click a text on the screen, where it is shown last."""
    lines = driver.text.split("\n")
    assert text in driver.text, driver.text
    row = max(number for number, line in enumerate(lines) if text in line)
    await driver.pilot.click(offset=(lines[row].rindex(text) + 1, row), times=times)
    await driver.settle()


async def test_a_conflict_is_opened_decided_and_left_by_mouse(run: Run) -> None:
    async with run() as driver:
        await click(driver, "Nigeria", times=2)
        assert isinstance(driver.app.screen, ConflictScreen)
        await click(driver, "2 right")
        await click(driver, "5 score")
        assert isinstance(driver.app.screen, ScoreDialog)
        await click(driver, "┼")
        await click(driver, "↑ more")
        await click(driver, "↓ less")
        await click(driver, "enter saves")
        item = driver.conflict.item
        assert item is not None
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
