"""Labelling in plain text stores the same as the screen, and shows the same to the rater."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Outcome
from auditor.domain.labels import UNSURE, Label, LabelKind
from auditor.errors import ReviewError, StorageError
from auditor.review.label_sampling import LabelItemLoader
from auditor.storage import audits, labels, results, sqlite_file
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from auditor.tui import rating_screen
from auditor.tui.app import run_labelling
from auditor.tui.label_screen import LabelApp
from auditor.tui.plain_text_app import run_plain_text_labelling
from auditor.tui.settings import ReviewSettings
from tests.support.label_sample import open_session, save_labelling_audit
from tests.support.review_audit import COUNTRIES, MODELS, TOPICS, save_review_audit
from tests.tui.app_driver import Driver

STARTS_EMPTY = True
RunLabelling = Callable[..., str]


@pytest.fixture
def label(tmp_path: Path, db: Database) -> RunLabelling:
    save_labelling_audit(db)

    def run(*commands: str, rater: str = "ada", share: float = 0.0, **more: Any) -> str:
        out, lines = io.StringIO(), io.StringIO("\n".join(commands))
        run_plain_text_labelling(
            f"sqlite:///{tmp_path}/audits.db",
            "moral",
            rater=rater,
            second_rater_share=share,
            stdin=lines,
            stdout=out,
            **more,
        )
        return out.getvalue()

    return run


def stored(db: Database) -> list[Label]:
    return labels.load_labels(db, 1, LabelKind.TRACE)


def test_a_few_labels(label: RunLabelling, db: Database) -> None:
    transcript = label("1", "aspect culture yes", "note odd one", "2", "undo", "3", "todo", "quit")
    assert transcript.startswith("You label as ada. 'help' lists the commands.\n30 of 30 left")
    assert "Text 1 of 30.\nWhat the judge was told:\n  You review the work of an anonymous analyst" in transcript
    assert transcript.count("What the judge was told:") == 1, "it is the same for all texts"
    assert "Can the reasoning stand as a whole? 1 valid, 2 invalid, 3 unsure." in transcript
    assert "Saved: valid.\n29 of 30 left" in transcript
    assert "culture (are the norms plausible and no stereotype): yes. It will be saved with your label." in transcript
    assert "Saved: invalid (culture yes)." in transcript
    assert "Undone.\nText 2 of 30." in transcript
    assert [(entry.value, entry.note, dict(entry.aspects)) for entry in stored(db)] == [
        ("VALID", "", {}),
        (UNSURE, "", {}),
    ]


def test_nothing_that_is_hidden_from_judges_is_printed(label: RunLabelling) -> None:
    transcript = label(*["1"] * 31)
    assert not re.search("|".join([*COUNTRIES, *TOPICS, *MODELS]), transcript, re.IGNORECASE)
    assert "You have labelled every text of the sample that is left to you." in transcript


async def test_screen_and_plain_text_store_the_same(
    label: RunLabelling, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rating_screen, "DECISION_DELAY_S", 0.0)
    sqlite_file.copy_database(tmp_path / "audits.db", tmp_path / "copy.db")
    label("1", "aspect logic no", "note hm", "2", "skip", "undo", "3", "1")
    with open_database(f"sqlite:///{tmp_path}/copy.db") as copy:
        app = LabelApp(open_session(copy, audits.get_audit(copy, "moral")), ReviewSettings(tmp_path / "settings"))
        async with app.run_test(size=(80, 24)) as pilot:
            driver = Driver(app, pilot)
            await driver.settle()
            await driver.press("1", "y", "y", "n")
            await driver.type("hm")
            await driver.press("enter", "2", "s", "u", "3", "1")
        by_screen, in_plain_text = load_facts(copy), load_facts(db)
    assert by_screen == in_plain_text
    assert [value for _, value, *_ in by_screen] == ["VALID", UNSURE, "VALID"]


def load_facts(db: Database) -> list[tuple[Any, ...]]:
    """What is stored of each label but times."""
    return [
        (entry.unit, entry.value, dict(entry.aspects), entry.note, entry.text_hash, entry.rater, entry.source)
        for entry in stored(db)
    ]


def test_the_hash_is_of_the_printed_text(label: RunLabelling, db: Database) -> None:
    label("1")
    [entry] = stored(db)
    item = LabelItemLoader(db, audits.get_audit(db, "moral"), "ada").load(entry.unit)
    assert entry.text_hash == item.text_hash


def test_open_show_skip_and_settings(label: RunLabelling, db: Database) -> None:
    transcript = label("open 12", "show", "skip", "open-next off", "2", "open-next on", "open 99", "open-next x")
    assert transcript.count("Text 12 of 30.") == 2
    assert "After a label, this text stays open." in transcript
    assert transcript.count("Text 1 of 30.") == 2, "at the start, and after skipping"
    assert "'99' is not a number of the list. Enter a number from 1 to 30." in transcript
    assert "'x' is not a value of open-next." in transcript
    assert [entry.value for entry in stored(db)] == ["INVALID"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("4", "there is no answer 4. Enter a number from 1 to 3."),
        ("aspect cult yes", "there is no aspect 'cult'. Did you mean 'culture'?"),
        ("aspect culture perhaps", "'perhaps' is no answer. Enter: aspect culture yes, no or none."),
        ("nxt", "Unknown command 'nxt'. Did you mean 'next'?"),
        ("undo", "There is nothing to undo."),
    ],
)
def test_a_wrong_command_is_explained(label: RunLabelling, db: Database, command: str, message: str) -> None:
    assert message in label(command)
    assert stored(db) == []


def test_aspects_are_removed_by_none(label: RunLabelling, db: Database) -> None:
    label("aspect culture yes", "aspect logic no", "aspect culture none", "1")
    assert [dict(entry.aspects) for entry in stored(db)] == [{"logical_consistency": False}]


def test_a_text_that_is_gone_is_passed_over(label: RunLabelling, db: Database) -> None:
    session = open_session(db, audits.get_audit(db, "moral"))
    [trace] = [
        t for t in results.load_traces(db, 1) if (t.model, *t.cell, str(t.sample)) == session.sample[0].unit.parts
    ]
    save_records(db, 1, [replace(trace, outcome=Outcome.TRUNCATED, score=None)])
    transcript = label("open 1", "1", "next", "1")
    assert "1 text of the sample cannot be shown, and stay" in transcript
    assert "It cannot be labelled. It has no text to judge (outcome: truncated)." in transcript
    assert "there is nothing to label." in transcript
    assert [entry.unit for entry in stored(db)] == [session.sample[1].unit]


def test_the_agreement_is_printed(label: RunLabelling, db: Database) -> None:
    label(*["1"] * 30, rater="bob", share=1.0)
    transcript = label(*["1"] * 4, "2", share=1.0)
    assert re.search(r"You agree with bob on 80% \(95% CI \d+% to \d+%, 5 texts\)\.", transcript)


def test_help_lists_the_commands(label: RunLabelling) -> None:
    transcript = label("help")
    for command in ("1", "aspect", "undo", "todo", "help", "quit"):
        assert f"\n{command}: " in transcript


@pytest.mark.parametrize("run_app", [run_plain_text_labelling, run_labelling])
def test_without_a_sample_the_error_says_how_to_draw_one(
    run_app: Callable[..., None], tmp_path: Path, db: Database
) -> None:
    save_review_audit(db)
    url = f"sqlite:///{tmp_path}/audits.db"
    with pytest.raises(ReviewError, match="has no label sample of traces to label") as error:
        run_app(url, "moral", rater="ada")
    assert error.value.how_to_fix == "Draw one: auditor review moral --sample 200"
    with pytest.raises(StorageError, match="no audit 'morl'"):
        run_app(url, "morl", rater="ada")


def test_a_kind_without_sample_is_named(tmp_path: Path, db: Database) -> None:
    save_labelling_audit(db)
    with pytest.raises(ReviewError, match=r"no label sample of answer pairs.*--sample 200 --kind answer_pair"):
        run_plain_text_labelling(f"sqlite:///{tmp_path}/audits.db", "moral", rater="ada", kind=LabelKind("answer_pair"))
