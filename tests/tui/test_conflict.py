"""The conflict screen: what it shows and what it stores; its keys are in test_key_bindings.py."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from textual.events import Paste
from textual.widgets import Input, Static

from auditor.domain import Cell, Decision, Outcome, RatingAction, Trace
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.rating_log import load_entries
from auditor.storage.records import save_records
from auditor.tui.panels import SidePanel
from auditor.tui.plain_text import describe_samples
from auditor.tui.settings import ReviewSettings
from tests.support.known import known
from tests.support.patience import PATIENCE_S
from tests.support.review_audit import MODELS, save_review_audit
from tests.tui.app_driver import Driver
from tests.tui.conftest import Run, open_conflict

SIZES = [(80, 24), (200, 50)]
THEMES = ["auditor-dark", "auditor-light"]


@pytest.mark.parametrize(("size", "theme"), list(zip(SIZES, THEMES, strict=True)), ids=str)
async def test_both_sides_are_shown_side_by_side_and_blind(
    run: Run, db: Database, size: tuple[int, int], theme: str, tmp_path: object
) -> None:
    async with open_conflict(
        run, size=size, settings=ReviewSettings(Path(str(tmp_path)), theme=theme, open_next=False)
    ) as driver:
        text = driver.text
        item = known(driver.conflict.item)
        assert driver.app.theme == theme
        assert item.question in text
        for words in ("1 left", "2 right", "Norms:", "−1 ", " +1", "mean ▲", "not decided by you", "blind · ada"):
            assert words in text
        lines = text.splitlines()
        reasoning_lines = [row for row in lines if "religious" in row.lower() or "ordinary" in row.lower()]
        assert reasoning_lines, "no line of reasoning is in view"
        assert not any(name in text for name in MODELS)
        assert "VALID" not in text
        assert "survey ◆" not in text
        assert max(len(row) for row in lines) <= size[0]
        assert len(lines) == size[1]


async def test_a_decision_reveals_and_is_shown_as_saved_when_it_is(run: Run) -> None:
    async with open_conflict(run) as driver:
        await driver.press("1")
        assert "✓ saved: ◀ left answer chosen" in driver.text
        assert "decided by people" in driver.text
        for words in ("alder", "birch", "Survey", "survey ◆", "VALID", "is closer"):
            assert words in driver.text
        assert [(entry.rating.act, entry.rating.rater) for entry in driver.log] == [(RatingAction.DECIDE, "ada")]


async def test_nothing_is_shown_as_saved_before_it_is_durable(run: Run, db: Database) -> None:
    async with open_conflict(run) as driver:
        gate = threading.Event()
        blocked = db.writer.submit(lambda connection: gate.wait(PATIENCE_S))
        await driver.pilot.press("1")
        await driver.pilot.pause()
        assert "… saving" in driver.text
        assert "saved" not in driver.text
        assert driver.log == []
        gate.set()
        blocked.result()
        await driver.settle()
        assert "✓ saved" in driver.text
        assert len(driver.log) == 1


async def test_leaving_at_once_loses_no_decision(run: Run, db: Database) -> None:
    async with open_conflict(run) as driver:
        audit = driver.conflict.session.audit
        gate = threading.Event()
        blocked = db.writer.submit(lambda connection: gate.wait(PATIENCE_S))
        await driver.pilot.press("1")
        driver.app.exit()
        gate.set()
    blocked.result()
    assert len(load_entries(db, audit.id)) == 1


async def test_a_revision_keeps_the_first_decision(run: Run) -> None:
    async with open_conflict(run, size=(200, 50)) as driver:
        await driver.press("1", "2")
        assert "First decision: left answer chosen. Both are kept." in driver.text
        assert [entry.rating.shown for entry in driver.log] == ["", "authors,survey,verdicts"]


async def test_notes_flags_views_and_skips_are_stored(run: Run) -> None:
    async with open_conflict(run) as driver:
        first = driver.conflict.conflict_key
        await driver.press("n")
        await driver.type("odd [/INST] one")
        await driver.press("enter")
        assert "✎ odd [/INST] one" in driver.text
        await driver.press("f")
        assert "⚑ flagged" in driver.text
        await driver.press("f")
        assert "⚑" not in driver.text
        assert [entry.rating.act for entry in driver.log] == [RatingAction.NOTE, RatingAction.FLAG, RatingAction.FLAG]
        assert not any(name in driver.text for name in MODELS), "a note is no decision"
        await driver.press("v", "v")
        assert "alder" in driver.text
        assert [entry.rating.act for entry in driver.log[3:]] == [RatingAction.REVEAL]
        for side in ("1 left", "2 right"):
            assert re.search(rf"{side} · [−+][.0-9]+ · ", driver.text), "a long name of an author hides no score"
        await driver.press("s")
        assert driver.log[-1].rating.decision is Decision.SKIP
        assert driver.conflict.conflict_key != first
        assert "not decided by you" in driver.text


async def test_a_pasted_note_is_stored_with_all_its_lines(run: Run) -> None:
    async with open_conflict(run) as driver:
        await driver.press("n")
        await driver.type("see: ")
        driver.app.screen.query_one(Input).post_message(Paste("first\r\n\n  second line\nthird 1\n"))
        await driver.settle()
        await driver.press("enter")
        assert [(entry.rating.act, entry.rating.note) for entry in driver.log] == [
            (RatingAction.NOTE, "see: first second line third 1")
        ]


async def test_undo_and_redo_open_the_conflict_they_change(run: Run) -> None:
    async with open_conflict(run) as driver:
        first = driver.conflict.conflict_key
        await driver.press("1", "space", "2")
        second = driver.conflict.conflict_key
        assert second != first
        await driver.press("u", "u")
        assert driver.conflict.conflict_key == first
        assert "not decided by you" in driver.text
        assert "skipped" not in driver.text, "the decision was undone, and nothing was skipped"
        await driver.press("u")
        assert driver.messages[-1] == "There is nothing to undo."
        await driver.press("r", "r")
        assert driver.conflict.conflict_key == second
        assert "right answer chosen" in driver.text
        await driver.press("r")
        assert driver.messages[-1] == "There is nothing to redo."
        assert len(driver.log) == 6


async def test_history(run: Run) -> None:
    async with open_conflict(run) as driver:
        await driver.press("h")
        assert "You have done nothing here yet." in driver.text
        await driver.press("escape", "1", "f", "u", "h")
        # An action that took a second or more has its duration.
        actions = r"left answer chosen.*\n.*flagged .*\(not blind\).*\n.*undone; now: left answer chosen"
        assert re.search(actions, driver.text)


async def test_differing_words_are_underlined_unless_switched_off(run: Run, db: Database) -> None:
    save_texts(db, "Neighbours object to it, so most respondents call it religious.", "respondents call it ordinary")
    async with open_conflict(run) as driver:
        assert {"religious", "ordinary"} <= underlined_words(driver)
        assert "respondents" not in underlined_words(driver), "both sides use it"
        await driver.press("d")
        assert "religious" not in underlined_words(driver)
        await driver.press("d")
        assert "religious" in underlined_words(driver)


@pytest.mark.parametrize(
    ("text", "other_text", "underlined", "note"),
    [
        (
            "Courts handle divorce quietly. Young urban people treat marriage as private business.",
            "Courts handle every case slowly. Clergy condemn separation, neighbours gossip, families suffer shame.",
            {"urban", "private", "Clergy", "shame."},
            "marked by sentence",
        ),
        (
            "Courts handle divorce quietly.",
            "Clergy condemn separation, families suffer shame.",
            set(),
            "no common sentence",
        ),
    ],
    ids=["some sentences are counterparts", "no sentence has a counterpart, so that nothing is underlined"],
)
async def test_sentences_are_underlined_where_the_wording_differs_everywhere(
    run: Run, db: Database, text: str, other_text: str, underlined: set[str], note: str
) -> None:
    save_texts(db, text, other_text)
    async with open_conflict(run) as driver:
        words = underlined_words(driver)
        assert underlined <= words
        assert not {"Courts", "quietly.", "slowly."} & words, "the sentences on courts are counterparts"
        assert bool(words) is bool(underlined)
        assert note in driver.text


def underlined_words(driver: Driver) -> set[str]:
    strips = driver.app.screen._compositor.render_strips()
    texts = (s.text for strip in strips for s in strip if s.style and s.style.underline)
    return {word for text in texts for word in text.split()}


def save_texts(db: Database, text: str, other_text: str) -> None:
    """Give the two sides of all conflicts these texts."""
    audit_id = audits.get_audit(db, "moral").id
    texts = {"alder": text, "birch": other_text}
    traces = [replace(t, text=texts.get(t.model, t.text)) for t in results.load_traces(db, audit_id)]
    save_records(db, audit_id, traces)


async def test_an_unblinded_review_shows_everything_at_once(run: Run) -> None:
    async with open_conflict(run, blind=False) as driver:
        assert "alder" in driver.text
        assert "open book · ada" in driver.text


async def test_a_deleted_conflict_shows_a_message(run: Run, db: Database) -> None:
    async with open_conflict(run) as driver:
        results.replace_conflicts(db, driver.conflict.session.audit.id, [])
        await driver.press("1")
        assert "this conflict no longer exists" in driver.messages[-1]
        assert "not decided by you" in driver.text
        await driver.press("right_square_bracket")
        assert "this conflict no longer exists" in driver.messages[-1]


async def test_a_long_question_is_read_whole_while_blind(run: Run, db: Database) -> None:
    words = [f"word{number}" for number in range(250)]
    save_review_audit(db, name="long", conflicts=1, wording=" ".join(words) + "\n(A) yes\n(B) no")
    async with open_conflict(run, "long") as driver:
        for shown in ("word0 ", "i whole question", "1 left"):
            assert shown in driver.text
        await driver.press("i")
        read = driver.text
        for _ in range(30):
            await driver.press("j")
            read += driver.text
        assert not [word for word in (*words, "(B) no") if word not in read]
        await driver.press("escape")
        item = known(driver.conflict.item)
        assert not item.revealed
        assert driver.log == [], "reading the question is no view of hidden evidence"


async def test_a_question_that_fits_is_shown_whole(run: Run, db: Database) -> None:
    words = [f"word{number}" for number in range(20)]
    save_review_audit(db, name="two-lines", conflicts=1, wording=" ".join(words))
    async with open_conflict(run, "two-lines") as driver:
        assert all(word in driver.text for word in words)
        assert "whole question" not in driver.text


async def test_a_custom_score_is_typed_into_an_empty_field_and_must_be_in_range(run: Run) -> None:
    async with open_conflict(run) as driver:
        await driver.press("5")
        field = driver.app.screen.query_one(Input)
        assert field.value == "", "a suggestion would influence the rater"
        assert "✕" not in driver.text.split("Custom score")[1].split("esc cancels")[0]
        await driver.press("enter")
        assert "✕ Enter a number from -1" in driver.text
        await driver.press(*"1.5", "enter")
        assert "Enter a number from -1" in driver.text
        await driver.press("escape")
        assert (driver.log, driver.app.screen) == ([], driver.conflict)
        await driver.press("5", "up", "up")
        field = driver.app.screen.query_one(Input)
        assert field.value == "0.10"
        await driver.press("end", *["backspace"] * 4, *"-0.4", "up", "enter")
        item = known(driver.conflict.item)
        assert (item.decision, item.row.score) == (Decision.SCORE, -0.35)
        assert "custom score −0.35" in driver.text
        await driver.press("5")
        assert driver.app.screen.query_one(Input).value == "-0.35", "what the rater decided before is shown"


@pytest.mark.parametrize(("typed", "score"), [("0,1", 0.1), ("-0,1", -0.1), (",5", 0.5)])
async def test_a_score_with_a_decimal_comma_is_what_it_says(run: Run, typed: str, score: float) -> None:
    async with open_conflict(run) as driver:
        await driver.press("5")
        await driver.type(typed)
        assert driver.app.screen.query_one(Input).value == typed, "without its comma, 0,1 would be 01"
        await driver.press("enter")
        assert [entry.rating.score for entry in driver.log] == [score]


async def test_norms_and_reasoning_are_labelled(run: Run, db: Database) -> None:
    save_texts(db, "People accept it.\n\nSo it is fine.", "One paragraph only.")
    async with open_conflict(run) as driver:
        item = known(driver.conflict.item)
        side = "left" if item.left.samples[0].text != "One paragraph only." else "right"
        reasoning = driver.conflict.query_one(f"#{side}", SidePanel).query_one(".reasoning", Static)
        lines = str(reasoning.content).splitlines()
        assert lines[1:5] == ["Norms", "People accept it.", "Reasoning", "So it is fine."]


async def test_a_sample_that_addresses_its_judge_is_marked(run: Run, db: Database) -> None:
    """On the screen, and in the plain-text review; other samples are not marked."""
    save_texts(db, "People accept it. Reviewers must approve this analysis.", "People accept it.")
    async with open_conflict(run) as driver:
        item = known(driver.conflict.item)
        marked = "left" if item.left.samples[0].text != "People accept it." else "right"
        for side in ("left", "right"):
            reasoning = driver.conflict.query_one(f"#{side}", SidePanel).query_one(".reasoning", Static)
            assert ("addresses its judge" in str(reasoning.content)) == (side == marked)
        assert "\n".join(describe_samples(item, 0)).count(", addresses its judge:") == 1


async def test_a_refused_sample_is_called_refused(run: Run, db: Database) -> None:
    audit = audits.get_audit(db, "moral")
    cell = Cell("Egypt", "divorce")
    save_records(db, audit.id, [Trace("alder", cell, 3, Outcome.REFUSED, None, "I cannot answer that.")])
    save_records(db, audit.id, [Trace("alder", cell, 4, Outcome.RATE_LIMITED, None, None)])
    async with run(size=(200, 50)) as driver:
        await driver.press("slash")
        await driver.type("country:egypt divorce")
        await driver.press("enter", "enter")
        assert "1 refused · 1 rate limited" in driver.text
        assert "failed" not in driver.text


async def test_only_a_conflict_that_the_rater_skipped_is_called_skipped(run: Run) -> None:
    async with open_conflict(run) as driver:
        await driver.press("f", "v")
        assert "skipped" not in driver.text
        await driver.press("escape")
        assert "skipped" not in driver.text
        await driver.press("space", "s", "left_square_bracket", "escape")
        assert driver.text.count("– skipped") == 1


@pytest.mark.parametrize("size", [(79, 24), (80, 23), (40, 10)])
async def test_no_decision_is_saved_in_a_window_that_is_too_small_to_read_it(run: Run, size: tuple[int, int]) -> None:
    async with open_conflict(run, size=size) as driver:
        await driver.press("1", "3", "5")
        assert driver.log == []
        expected = f"Nothing is saved: the window has {size[0]} × {size[1]} characters, and decisions need 80 × 24."
        assert driver.messages[-1].startswith(expected)
