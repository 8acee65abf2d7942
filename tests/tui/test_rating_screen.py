"""After a decision the next conflict opens by itself, and what the decision would reveal stays hidden."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from auditor.domain import Decision
from auditor.storage import audits, results
from auditor.storage.conflict_status import ConflictKey, ConflictStatus
from auditor.storage.database import Database
from auditor.storage.rating_log import load_entries
from auditor.tui import rating_screen
from auditor.tui.conflict import ANSWERS_CHANGED
from auditor.tui.rating_screen import DECISION_DELAY_S
from tests.support.known import known
from tests.support.patience import PATIENCE_S
from tests.support.review_audit import MODELS, save_review_audit
from tests.tui.conftest import Run, open_conflict


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.tui.rating_screen.DECISION_DELAY_S", 0.0)


async def test_the_next_conflict_opens_and_the_decided_one_stays_hidden_until_it_is_revealed(run: Run) -> None:
    async with open_conflict(run, open_next=True, size=(200, 50)) as driver:
        first = driver.conflict.conflict_key
        await driver.press("1")
        assert driver.conflict.conflict_key != first
        assert "not decided by you" in driver.text
        assert "✓ saved, u undoes: left answer chosen" in driver.text
        assert not any(name in driver.text for name in MODELS)
        assert "VALID" not in driver.text
        [entry] = driver.log
        assert (entry.rating.shown, entry.rating.withheld) == ("", True)
        driver.conflict.open_conflict(first)
        await driver.settle()
        assert "Your decision is saved. v shows authors" in " ".join(driver.text.split())
        assert "alder" not in driver.text
        await driver.press("2")
        driver.conflict.open_conflict(first)
        await driver.press("v")
        assert "alder" in driver.text
        assert [entry.rating.shown for entry in driver.log][:2] == ["", ""], "a revision of a hidden conflict is blind"


async def test_a_second_key_press_decides_nothing_unseen(
    run: Run, monkeypatch: pytest.MonkeyPatch, db: Database
) -> None:
    monkeypatch.setattr(rating_screen, "DECISION_DELAY_S", 3600.0)
    async with open_conflict(run, open_next=True) as driver:
        gate = threading.Event()
        blocked = db.writer.submit(lambda connection: gate.wait(PATIENCE_S))
        await driver.pilot.press("1")
        await driver.pilot.press("2")
        gate.set()
        blocked.result()
        assert await driver.reaches(lambda d: d.conflict.last_saved != "")
        await driver.press("3", "s")
        assert len(driver.log) == 1
        assert await driver.reaches(lambda d: 0 < d.conflict.accepts_decisions_at - time.monotonic() <= 3600)
        driver.conflict.accepts_decisions_at = time.monotonic()
        await driver.press("3")
        assert driver.log[1].rating.decision is Decision.BOTH


def test_decision_keys_wait_for_400_ms() -> None:
    assert DECISION_DELAY_S == 0.4


async def test_a_failed_save_opens_nothing_and_says_so(run: Run, db: Database) -> None:
    async with open_conflict(run, open_next=True) as driver:
        first = driver.conflict.conflict_key
        results.replace_conflicts(db, driver.conflict.session.audit.id, [])
        await driver.press("1")
        assert driver.conflict.conflict_key == first
        assert "not saved" in driver.messages[-1]
        assert "✓ saved" not in driver.text
        assert driver.log == []


async def test_a_failed_save_keeps_what_was_typed(run: Run, db: Database) -> None:
    async with open_conflict(run, open_next=True) as driver:
        audit_id = driver.conflict.session.audit.id
        conflicts = results.load_conflicts(db, audit_id)
        await driver.press("n")
        await driver.type("a long remark")
        results.replace_conflicts(db, audit_id, [])
        await driver.press("enter")
        assert "a long remark" in driver.text
        assert "not saved" in driver.text
        results.replace_conflicts(db, audit_id, conflicts)
        await driver.press("enter")
        assert [entry.rating.note for entry in driver.log] == ["a long remark"]

        await driver.press("5", "end", *["backspace"] * 6)
        await driver.type("-0.4")
        results.replace_conflicts(db, audit_id, [])
        await driver.press("enter")
        assert "-0.4" in driver.text
        results.replace_conflicts(db, audit_id, conflicts)
        await driver.press("enter")
        assert driver.log[-1].rating.score == -0.4


async def test_one_key_undoes_the_last_decision_and_another_keeps_the_conflict_open(run: Run) -> None:
    async with open_conflict(run, open_next=True) as driver:
        first = driver.conflict.conflict_key
        await driver.press("1", "u")
        assert driver.conflict.conflict_key == first
        assert "not decided by you" in driver.text
        assert "alder" not in driver.text
        await driver.press("r")
        assert "✓ saved: ◀ left answer chosen" in driver.text
        assert driver.log[0].rating.withheld is True
        await driver.press("N", "space")
        assert "this conflict stays open" in driver.messages[-1]
        second = driver.conflict.conflict_key
        await driver.press("1")
        assert driver.conflict.conflict_key == second != first
        assert "alder" in driver.text
        assert driver.log[-1].rating.withheld is None
        assert not driver.app.settings.open_next


async def test_the_last_conflict_stays_and_a_message_says_that_nothing_is_left(run: Run, db: Database) -> None:
    audit = save_review_audit(db, name="one", conflicts=1)
    async with run("one", open_next=True) as driver:
        await driver.press("enter", "1")
        assert driver.messages[-1] == "No conflict of this list is left for you to decide."
        assert "✓ saved: ◀ left answer chosen" in driver.text
        assert "0 left" in driver.text
        assert len(load_entries(db, audit.id)) == 1


async def test_the_next_conflict_is_one_of_the_filtered_list(run: Run) -> None:
    async with run(open_next=True) as driver:
        await driver.press("slash")
        await driver.type("country:japan sort:gap")
        await driver.press("enter", "space")
        keys = []
        for _ in range(4):
            keys.append(driver.conflict.conflict_key)
            await driver.press("1")
        assert {key.country for key in keys} == {"Japan"}
        assert len(set(keys)) == 4
        assert driver.messages[-1] == "No conflict of this list is left for you to decide."
        await driver.press("space")
        assert len(driver.messages) == 2


async def test_another_raters_decision_shows_on_the_open_conflict(run: Run, db: Database) -> None:
    async with open_conflict(run, open_next=True) as driver:
        session = driver.conflict.session
        other = type(session)(db, session.audit, "grace")
        item = other.load_item(driver.conflict.conflict_key)
        other.decide(item, Decision.LEFT)
        driver.conflict._check_for_changes()
        assert await driver.reaches(lambda d: "decided by people" in d.text)
        assert known(driver.conflict.item).row.status is ConflictStatus.PERSON
        assert "Another rater has decided this conflict" in driver.messages[-1]
        assert not any(name in driver.text for name in MODELS)


async def test_answers_that_a_run_changes_are_shown_before_they_can_be_decided(
    run: Run, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rating_screen, "DECISION_DELAY_S", 60.0)
    async with open_conflict(run, open_next=True) as driver:
        session, key = driver.conflict.session, driver.conflict.conflict_key
        conflicts = results.load_conflicts(db, session.audit.id)
        changed = [
            replace(c, score_left=-0.9) if ConflictKey(*c.cell, c.left, c.right) == key else c for c in conflicts
        ]
        results.replace_conflicts(db, session.audit.id, changed)
        await driver.press("1")
        assert "not saved: the answers of this conflict have changed" in driver.messages[-1]
        driver.conflict._check_for_changes()
        assert await driver.reaches(lambda d: "−0.90" in d.text)
        assert driver.messages[-1] == ANSWERS_CHANGED
        await driver.press("1")
        assert driver.log == [], "the new answers have not been visible for long enough"


async def test_a_score_previews_what_it_settles_in_the_cell(run: Run, db: Database) -> None:
    save_cell(db)
    async with run(open_next=True, size=(120, 40)) as driver:
        await driver.press("enter", "5", "end", *["backspace"] * 6)
        await driver.type("0.5")
        await driver.press("enter")
        text = " ".join(driver.text.replace("│", " ").split())
        assert "Settle the whole cell?" in text
        assert "Your score +0.50 for divorce in Egypt also answers 1 other conflict." in text
        assert "custom score +0.50" in text or "answer chosen" in text
        assert not any(name in text for name in MODELS)
        assert driver.log == []
        await driver.press("escape")
        assert "0.50" in driver.text
        await driver.press("enter", "y")
        assert len(driver.log) == 2
        await driver.press("u")
        assert driver.messages[-1].endswith("This includes 1 other conflict of the cell.")
        assert "○ open" in driver.text


async def test_a_score_can_settle_only_the_open_conflict(run: Run, db: Database) -> None:
    save_cell(db)
    async with run(open_next=True) as driver:
        await driver.press("enter", "5", *"0.5", "enter")
        assert "Settle the whole cell?" in driver.text
        await driver.press("n")
        assert len(driver.log) == 1


async def test_the_order_by_effect_shows_its_reason(run: Run) -> None:
    async with run(size=(200, 50)) as driver:
        assert await driver.reaches(lambda d: "not decided by you" in d.text), "the preview is shown before the key"
        await driver.press("o")
        assert "by effect on the conclusions" in driver.text
        assert await driver.reaches(lambda d: "Both sides have been right" in d.text)
        await driver.press("enter")
        assert "can change who is ahead" in driver.text


def save_cell(db: Database) -> None:
    """Leave two conflicts, on one cell."""
    audit_id = audits.get_audit(db, "moral").id
    conflict = next(c for c in results.load_conflicts(db, audit_id) if c.cell == ("Egypt", "divorce"))
    results.replace_conflicts(db, audit_id, [conflict, replace(conflict, right="cedar", score_right=0.05)])
