"""The labelling screen: one key a text, the next opens by itself, and nothing that a judge does not see is shown."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Outcome, Trace
from auditor.domain.labels import UNSURE, Label, LabelKind
from auditor.review.label_sampling import LabelItemLoader, draw_label_sample
from auditor.review.labelling import LabellingSession
from auditor.storage import audits, labels, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from auditor.tui import key_bindings, rating_screen
from auditor.tui.dialogs import KeysWindow, TextDialog
from auditor.tui.label_screen import LabelApp, LabelScreen
from auditor.tui.settings import LIGHT, ReviewSettings
from tests.support.label_audits import (
    PAIR_AUDIT,
    SURVEY_AUDIT,
    TASK_AUDIT,
    run_pair_audit,
    run_survey_audit,
    run_task_audit,
)
from tests.support.label_sample import open_session, save_labelling_audit
from tests.support.patience import PATIENCE_S
from tests.support.review_audit import COUNTRIES, MODELS, TOPICS
from tests.tui.app_driver import Driver

N_UNITS = 30
StartLabelling = Callable[..., AbstractAsyncContextManager[Driver]]


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rating_screen, "DECISION_DELAY_S", 0.0)


@pytest.fixture
def audit(db: Database) -> Audit:
    return save_labelling_audit(db, N_UNITS)


@pytest.fixture
def start(db: Database, audit: Audit, tmp_path: Path) -> StartLabelling:
    @asynccontextmanager
    async def run(
        *, size: tuple[int, int] = (80, 24), rater: str = "ada", share: float = 0.0, **settings: Any
    ) -> AsyncIterator[Driver]:
        app = LabelApp(open_session(db, audit, rater, share), ReviewSettings(tmp_path / "settings", **settings))
        async with app.run_test(size=size) as pilot:
            driver = Driver(app, pilot)
            await driver.settle()
            yield driver

    return run


def screen_of(driver: Driver) -> LabelScreen:
    assert isinstance(driver.page, LabelScreen)
    return driver.page


def stored(db: Database, audit: Audit) -> list[Label]:
    return labels.load_labels(db, audit.id, LabelKind.TRACE)


async def test_one_key_labels_a_text_and_opens_the_next(start: StartLabelling, db: Database, audit: Audit) -> None:
    async with start() as driver:
        first = screen_of(driver).open_key
        assert "1 of 30" in driver.text
        assert "Can the reasoning stand as a whole?   1 valid   2 invalid   3 unsure" in driver.text
        await driver.press("2")
        assert screen_of(driver).open_key != first
        for words in ("2 of 30", "29 left", "not labelled by you  ·  ✓ saved, u undoes: invalid"):
            assert words in driver.text
        [label] = stored(db, audit)
        assert (label.unit, label.value, label.rater, label.source) == (first, "INVALID", "ada", "review")
        assert label.duration_s is not None
        assert label.text_hash == LabelItemLoader(db, audit, "ada").load(label.unit).text_hash


async def test_all_answers_are_stored_by_their_keys(start: StartLabelling, db: Database, audit: Audit) -> None:
    async with start() as driver:
        await driver.press("1", "2", "3", "4")
        assert [label.value for label in stored(db, audit)] == ["VALID", "INVALID", UNSURE], "there is no fourth answer"
        assert re.search(r" \d+ (s|min) each · ", driver.text), "the pace is shown from three labels on"


async def test_nothing_that_is_hidden_from_judges_is_shown(start: StartLabelling) -> None:
    hidden = re.compile("|".join([*COUNTRIES, *TOPICS, *MODELS]), re.IGNORECASE)
    async with start(size=(140, 60), theme=LIGHT.name) as driver:
        for number in range(6):
            assert not hidden.search(driver.text)
            assert "not labelled by you" in driver.text
            assert not re.search(r"\bINVALID\b", screen_of(driver).item.item.material)  # type: ignore[union-attr]
            await driver.press("1" if number % 2 else "2")


async def test_undo_shows_the_text_again_and_takes_the_label_back(
    start: StartLabelling, db: Database, audit: Audit
) -> None:
    async with start() as driver:
        first = screen_of(driver).open_key
        await driver.press("1", "1", "u", "u")
        assert screen_of(driver).open_key == first
        assert stored(db, audit) == []
        assert "30 left" in driver.text
        await driver.press("u")
        assert driver.messages[-1] == "There is nothing to undo."
        assert "1 valid   2 invalid   3 unsure" in driver.text, "no message hides the answers"
        await driver.press("2")
        assert [(label.unit, label.value) for label in stored(db, audit)] == [(first, "INVALID")]


async def test_a_second_key_press_labels_nothing_unseen(
    start: StartLabelling, db: Database, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rating_screen, "DECISION_DELAY_S", 3600.0)
    async with start() as driver:
        gate = threading.Event()
        blocked = db.writer.submit(lambda connection: gate.wait(PATIENCE_S))
        await driver.pilot.press("1")
        await driver.pilot.press("2", "s", "space", "right_square_bracket")
        assert "… saving" in driver.text
        gate.set()
        blocked.result()
        assert await driver.reaches(lambda d: "u undoes: valid" in d.text)
        await driver.press("3")
        assert [label.value for label in stored(db, audit)] == ["VALID"]
        assert "2 of 30" in driver.text
        await driver.press("space", "2")
        assert len(stored(db, audit)) == 2, "a text that the rater opened is accepted at once"


async def test_a_failed_save_stays_and_says_so(
    start: StartLabelling, db: Database, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start() as driver:
        first = screen_of(driver).open_key
        await driver.press("n")
        await driver.type("odd")
        await driver.press("enter", "x")
        traces = results.load_traces(db, audit.id)
        results.delete_traces(db, audit.id, [(t.model, t.cell, t.sample) for t in traces])
        await driver.press("1")
        assert "not saved" in driver.messages[-1]
        assert screen_of(driver).open_key == first
        assert "✓ saved" not in driver.text
        save_records(db, audit.id, traces)
        await driver.press("2")
        [label] = stored(db, audit)
        assert (label.value, label.note, label.aspects) == ("INVALID", "odd", {"cultural_accuracy": True})


async def test_aspects_and_notes_are_optional_and_saved_with_the_label(
    start: StartLabelling, db: Database, audit: Audit
) -> None:
    async with start() as driver:
        await driver.press("x", "y", "y", "z", "z", "z")
        assert "x culture: yes   y logic: no   z score: –" in driver.text
        assert "aspects and note are saved with your label" in driver.text
        await driver.press("n")
        assert isinstance(driver.app.screen, TextDialog)
        await driver.type("a remark")
        await driver.press("enter")
        assert "not labelled by you  ·  saved with your label: ✎ a remark" in driver.text
        await driver.press("1")
        [label] = stored(db, audit)
        assert label.aspects == {"cultural_accuracy": True, "logical_consistency": False}
        assert label.note == "a remark"
        assert "u undoes: valid (culture yes, logic no)" in driver.text


async def test_aspects_and_notes_can_be_added_to_a_saved_label(
    start: StartLabelling, db: Database, audit: Audit
) -> None:
    async with start() as driver:
        await driver.press("1")
        [first] = stored(db, audit)
        await driver.press("left_square_bracket")
        assert "● valid" in driver.text
        await driver.press("x", "n")
        await driver.type("late")
        await driver.press("enter")
        [label] = stored(db, audit)
        assert (label.value, label.aspects, label.note) == ("VALID", {"cultural_accuracy": True}, "late")
        assert label.duration_s == first.duration_s, "the pace counts the label once"
        assert "✓ saved: valid (culture yes)" in driver.text
        await driver.press("2")
        assert [(label.value, label.note) for label in stored(db, audit)] == [("INVALID", "late")]


async def test_a_note_is_not_taken_while_a_label_is_being_saved(
    start: StartLabelling, db: Database, audit: Audit
) -> None:
    async with start(open_next=False) as driver:
        gate = threading.Event()
        blocked = db.writer.submit(lambda connection: gate.wait(PATIENCE_S))
        await driver.pilot.press("1")
        await driver.pilot.press("n")
        await driver.pilot.press("x")
        assert not isinstance(driver.app.screen, TextDialog), "what is typed would be lost"
        gate.set()
        blocked.result()
        await driver.settle()
        assert "● valid" in driver.text
        assert "✓ saved: valid" in driver.text
        await driver.press("n")
        await driver.type("late")
        await driver.press("enter", "x")
        [label] = stored(db, audit)
        assert (label.value, label.note, label.aspects) == ("VALID", "late", {"cultural_accuracy": True})


def label_all_but(db: Database, audit: Audit, n: int) -> None:
    """Label all units but the first ones."""
    session = open_session(db, audit)
    for sampled in session.sample[n:]:
        session.save(sampled.unit, "VALID")


async def test_a_skipped_text_comes_again_at_the_end(start: StartLabelling, db: Database, audit: Audit) -> None:
    label_all_but(db, audit, 2)
    async with start() as driver:
        first = screen_of(driver).open_key
        await driver.press("s")
        assert screen_of(driver).open_key != first
        await driver.press("1")
        assert screen_of(driver).open_key == first
        assert "1 left" in driver.text
        await driver.press("1")
        assert driver.messages[-1] == "You have labelled every text of the sample that is left to you."
        assert "0 left" in driver.text


async def test_a_text_that_is_gone_is_passed_over_and_stays_in_the_sample(
    start: StartLabelling, db: Database, audit: Audit
) -> None:
    first, second, third = [sampled.unit for sampled in open_session(db, audit).sample[:3]]
    traces: dict[tuple[str, ...], Trace] = {
        (t.model, *t.cell, str(t.sample)): t for t in results.load_traces(db, audit.id)
    }
    changed = [
        replace(traces[first.parts], outcome=Outcome.TRUNCATED, score=None),
        replace(traces[second.parts], text=""),
    ]
    label_all_but(db, audit, 3)
    save_records(db, audit.id, changed)
    async with start() as driver:
        assert screen_of(driver).open_key == third
        assert driver.messages == [
            "2 texts of the sample cannot be shown, and stay unlabelled. "
            "It has no text to judge (outcome: truncated). It has no text to judge (outcome: ok)."
        ]
        await driver.press("1")
        assert len(stored(db, audit)) == N_UNITS - 2
        await driver.press("left_square_bracket", "left_square_bracket")
        assert screen_of(driver).open_key == first
        assert "It has no text to judge" in driver.text
        await driver.press("1")
        assert driver.messages[-1].startswith("There is nothing to label.")
        assert len(stored(db, audit)) == N_UNITS - 2


async def test_the_agreement_with_another_rater_grows(start: StartLabelling, db: Database, audit: Audit) -> None:
    bob = open_session(db, audit, "bob", 1.0)
    for sampled in bob.sample:
        bob.save(sampled.unit, "VALID")
    async with start(share=1.0) as driver:
        await driver.press("1", "1", "1", "1")
        assert "you agree" not in driver.text
        await driver.press("2")
        assert re.search(r"you agree with bob on 80% \(95% CI \d+% to \d+%, 5 texts\)", driver.text)
        await driver.press("1")
        assert "you agree with bob on 83% (" in driver.text


async def test_with_the_setting_off_a_labelled_text_stays(start: StartLabelling) -> None:
    async with start(open_next=False) as driver:
        first = screen_of(driver).open_key
        await driver.press("1")
        assert screen_of(driver).open_key == first
        assert "✓ saved: valid" in driver.text
        await driver.press("space")
        assert screen_of(driver).open_key != first
        await driver.press("N")
        assert driver.messages[-1] == "After a label, the next text opens."


async def test_keys_are_in_help_and_palette_and_the_sample_has_ends(start: StartLabelling) -> None:
    async with start(size=(140, 40)) as driver:
        commands = {command.title: command for command in driver.app.get_system_commands(driver.app.screen)}
        await driver.press("question_mark")
        assert isinstance(driver.app.screen, KeysWindow)
        for action in key_bindings.actions_for("label"):
            is_offered = action.id != "label.choose.4"  # a trace has three answers
            assert (action.help in driver.text) == (action.id in driver.text) == is_offered
            assert (action.label.capitalize() in commands) == is_offered
        await driver.press("escape", "left_square_bracket")
        assert driver.messages[-1] == "This is the end of the sample."


async def test_a_long_text_scrolls(start: StartLabelling) -> None:
    async with start(size=(80, 16)) as driver:
        top = driver.text
        await driver.press("pagedown", "j", "k")
        assert driver.text != top
        await driver.press("pageup")
        assert driver.text == top


async def test_configured_keys_are_shown_and_act(start: StartLabelling, db: Database, audit: Audit) -> None:
    async with start(keys={"label.choose.1": "v", "label.aspect.score_fit": "e"}) as driver:
        assert "v valid   2 invalid" in driver.text
        assert "e score: –" in driver.text
        await driver.press("e", "v")
        assert [label.aspects for label in stored(db, audit)] == [{"score_fit": True}]


async def test_a_finished_sample_shows_its_last_text(start: StartLabelling, db: Database, audit: Audit) -> None:
    label_all_but(db, audit, 0)
    async with start() as driver:
        assert driver.messages == ["You have labelled every text of the sample that is left to you."]
        assert "30 of 30" in driver.text
        assert "✓ saved: valid" in driver.text


async def test_texts_with_markup_and_escapes_are_shown_as_they_are(
    db: Database, audit: Audit, start: StartLabelling
) -> None:
    first = open_session(db, audit).sample[0].unit
    [trace] = [t for t in results.load_traces(db, audit.id) if (t.model, *t.cell, str(t.sample)) == first.parts]
    save_records(db, audit.id, [replace(trace, text="[bold red]gotcha[/] \u202e [@click=app.quit]x[/]")])
    async with start() as driver:
        assert "[bold red]gotcha[/]" in driver.text
        assert "\u202e" not in driver.text


@pytest.fixture(scope="module")
def shared_db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder: Path = tmp_path_factory.mktemp("label-kinds")
    url = f"sqlite:///{folder}/audits.db"
    run_survey_audit(url, samples=1)
    run_task_audit(url, folder)
    run_pair_audit(url, folder)
    with open_database(url) as db:
        yield db


@pytest.mark.parametrize(
    ("audit_name", "kind", "values", "words"),
    [
        (PAIR_AUDIT, "answer_pair", "yes no unsure", ("   1 yes   2 no   3 unsure", "First answer:", "Second answer:")),
        (SURVEY_AUDIT, "comparison", "A B TIE unsure",
         ("question?   1 A   2 B   3 neither   4 unsure", "Country: ", "A: ", "B: ")),
        (TASK_AUDIT, "trace", "VALID INVALID unsure",
         ("Can reasoning and answer stand?   1 valid   2 invalid   3 unsure", "What is ", "y logic: –   z score: –")),
    ],
)  # fmt: skip
async def test_each_kind_has_its_text_and_its_keys(
    shared_db: Database, tmp_path: Path, audit_name: str, kind: str, values: str, words: tuple[str, ...]
) -> None:
    audit = audits.get_audit(shared_db, audit_name)
    draw_label_sample(shared_db, audit, LabelKind(kind), 6)
    app = LabelApp(LabellingSession(shared_db, audit, "ada", LabelKind(kind)), ReviewSettings(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        driver = Driver(app, pilot)
        await driver.settle()
        assert [word for word in words if word not in driver.text] == []
        assert max(map(len, driver.text.splitlines())) <= 80
        assert ("optional:" in driver.text) == (kind == "trace")
        await driver.press(*"1234"[: len(values.split())], *"4" * (kind == "answer_pair"))
    stored = labels.load_labels(shared_db, audit.id, LabelKind(kind))
    assert [label.value for label in stored] == values.split()
    assert all(label.text_hash for label in stored)


async def test_no_label_is_saved_in_a_window_that_is_too_small_to_read_it(
    start: StartLabelling, db: Database, audit: Audit
) -> None:
    async with start(size=(80, 16)) as driver:
        await driver.press("1")
        assert stored(db, audit) == []
        assert driver.messages[-1].startswith("Nothing is saved: the window has 80 × 16 characters")


async def test_an_undone_label_leaves_its_note_and_aspects(start: StartLabelling, db: Database, audit: Audit) -> None:
    async with start() as driver:
        await driver.press("x", "n")
        await driver.type("a note")
        await driver.press("enter", "1", "u")
        assert stored(db, audit) == []
        assert screen_of(driver).item.draft.note == "a note"  # type: ignore[union-attr]
        await driver.press("2")
        assert [(label.value, label.note, len(label.aspects)) for label in stored(db, audit)] == [
            ("INVALID", "a note", 1)
        ]


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_quitting_with_a_note_that_no_label_has_saved_shows_its_text_once(
    start: StartLabelling, db: Database, audit: Audit, key: str
) -> None:
    async with start() as driver:
        first = screen_of(driver).open_key
        await driver.press("n")
        await driver.type("a note")
        await driver.press("enter", "right_square_bracket", key)
        assert driver.app.is_running
        assert screen_of(driver).open_key == first
        assert driver.messages[-1].startswith("Not saved: the aspects or the note of 1 text without a label.")
        await driver.press("1")
        assert [(label.value, label.note) for label in stored(db, audit)] == [("VALID", "a note")]
        await driver.press("x", key, key)
        assert driver.app.is_ending


async def test_answers_and_aspects_can_be_clicked(start: StartLabelling, db: Database, audit: Audit) -> None:
    async with start() as driver:
        for text in ("x culture", "z score", "z score", "2 invalid"):
            [(row, line)] = [pair for pair in enumerate(driver.text.splitlines()) if text in pair[1]]
            await driver.pilot.click(offset=(line.index(text) + 3, row))
            await driver.settle()
        assert [(label.value, label.aspects) for label in stored(db, audit)] == [
            ("INVALID", {"cultural_accuracy": True, "score_fit": False})
        ]
