"""The plain-text review: every action of the screen as a typed command."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Decision, Outcome
from auditor.domain.labels import UNSURE, Label, LabelKind
from auditor.errors import ReviewError, StorageError
from auditor.review.label_sampling import LabelItemLoader
from auditor.storage import audits, labels, rating_log, results, sqlite_file
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from auditor.tui import rating_screen
from auditor.tui.app import run_labelling
from auditor.tui.formatting import format_cell
from auditor.tui.key_bindings import ACTIONS
from auditor.tui.label_screen import LabelApp
from auditor.tui.plain_text import COMMON_COMMANDS
from auditor.tui.plain_text_app import COMMANDS, needs_plain_text, run_plain_text_labelling, run_plain_text_review
from auditor.tui.plain_text_labelling import LABEL_COMMANDS
from auditor.tui.settings import ReviewSettings
from tests.support.label_sample import open_session, save_labelling_audit
from tests.support.review_audit import COUNTRIES, MODELS, TOPICS, save_review_audit
from tests.tui.app_driver import Driver

SCROLLED = ("queue", "conflict", "people", "errors", "label")
ONLY_ON_A_SCREEN = {
    "everywhere.theme", "everywhere.command_palette", "conflict.differences",
    *(f"{screen}.{move}" for screen in (*SCROLLED, "home") for move in ("up", "down")),
    *(f"{screen}.{move}" for screen in SCROLLED for move in ("page_up", "page_down")),
    "queue.first", "queue.last",
}  # fmt: skip
"""Actions without a command: colours, cursors and scrolling."""

Review = Callable[..., str]


@pytest.fixture
def review(tmp_path: Path, db: Database) -> Review:
    def run(*commands: str, audit: str | None = "moral", **more: Any) -> str:
        out = io.StringIO()
        rater = more.pop("rater", "ada")
        lines = io.StringIO("\n".join(commands))
        run_plain_text_review(db.url, audit, rater=rater, stdin=lines, stdout=out, **more)
        return out.getvalue()

    return run


def test_every_action_has_a_plain_text_command() -> None:
    actions_without_command = {action.id for action in ACTIONS if action.plain_text_command is None}
    assert actions_without_command == ONLY_ON_A_SCREEN
    review_commands, label_commands = {*COMMANDS, *COMMON_COMMANDS}, {*LABEL_COMMANDS, *COMMON_COMMANDS}
    for action in ACTIONS:
        if action.plain_text_command is not None:
            assert action.screen == "label" or action.plain_text_command in review_commands
            assert action.screen not in ("label", "everywhere") or action.plain_text_command in label_commands


def test_a_complete_review(review: Review, db: Database) -> None:
    transcript = review(
        "open-next off", "next", "left", "next", "score -0.4", "next", "skip", "both", "note odd one", "flag", "history"
    )
    assert "You rate as ada, blind." in transcript
    assert "Audit moral: 20 open." in transcript
    assert transcript.count("hidden until you decide") == 4
    for words in (
        "Saved: left answer chosen.", "Saved: custom score -0.40.", "Left is by ", "The survey's score", "Skipped.",
        "Note saved.", "Flagged.",
    ):  # fmt: skip
        assert words in transcript
    log = rating_log.load_entries(db, 1)
    assert [e.rating.decision.resolves_conflict for e in log] == [True, True, False, True, True, True]
    assert log[1].rating.score == -0.4
    assert (log[-1].rating.note, log[-1].rating.flagged) == ("odd one", True)


def test_next_after_a_decision_stays_at_the_conflict_that_it_opened(review: Review, db: Database) -> None:
    transcript = review("next", "left", "next", "right")
    assert "Your decision opened the next conflict: " in transcript
    first, second = rating_log.load_entries(db, 1)
    opened = transcript.split("Your decision opened the next conflict: ")[1].split(". Decide it")[0]
    assert first.key != second.key
    assert opened == format_cell(second.key.country, second.key.topic)
    assert transcript.count("hidden until you decide") == 3
    skipping = review("next", "next", rater="grace")
    assert "Your decision opened" not in skipping


def test_hidden_details_are_not_printed_before_the_decision(review: Review) -> None:
    transcript = review("next", "sample", "sample 2", "list", "filter model:alder", "list").replace("model:alder", "")
    assert not any(name in transcript for name in MODELS)
    assert "VALID" not in transcript
    assert "survey's score" not in transcript
    assert "0 conflicts match" in transcript


def test_reveal_is_logged(review: Review, db: Database) -> None:
    transcript = review("next", "reveal")
    assert "VALID" in transcript
    assert rating_log.load_entries(db, 1)[-1].rating.act == "reveal"
    assert review("next", "quit", blind=False, rater="grace").count("Left is by") == 1


def test_undo_and_redo(review: Review) -> None:
    transcript = review("undo", "next", "right", "undo", "redo", "undo", "redo", "redo")
    undo_messages = [
        row for row in transcript.splitlines() if row.startswith(("Undone", "Redone", "There is nothing to"))
    ]
    assert [re.sub(r"\. .* is now", ". x is now", row) for row in undo_messages] == [
        "There is nothing to undo.",
        "Undone. x is now: undecided.",
        "Redone. x is now: right answer chosen.",
        "Undone. x is now: undecided.",
        "Redone. x is now: right answer chosen.",
        "There is nothing to redo.",
    ]


def test_lists_filters_and_orders(review: Review) -> None:
    transcript = review("list", "filter kind:binary", "list", "sort gap", "reverse", "open 1", "clear", "disputed")
    for words in (
        "20 in total: 20 open.", "7 conflicts match.", "Sorted by gap.", "Order reversed.", "0 conflicts match.",
    ):  # fmt: skip
        assert words in transcript
    numbers = [int(n) for n in re.findall(r"^(\d+)\. ", transcript, re.MULTILINE)]
    assert numbers == [*range(1, 21), *range(1, 8)]


def test_long_lists_come_in_pages(db: Database, review: Review) -> None:
    save_review_audit(db, name="long", conflicts=45, topics=[f"t{i}" for i in range(9)], samples=1)
    transcript = review("list", "list", "list", "list", audit="long")
    assert "25 more. 'list' shows the next page." in transcript
    assert "5 more. 'list' shows the next page." in transcript
    numbers = [int(n) for n in re.findall(r"^(\d+)\. ", transcript, re.MULTILINE)]
    assert numbers == [*range(1, 46), *range(1, 21)]


def test_saved_filters(review: Review) -> None:
    transcript = review("filter gap:>1.2", "filters save wide", "clear", "filters wide", "filters nosuch")
    assert "wide: gap:>1.2" in transcript
    assert transcript.count("\n8 conflicts match.") == 2
    assert "there is no filter 'nosuch'" in transcript
    assert "No filter is saved" in review("filters delete wide")


def test_audits_are_listed_and_opened_by_number_or_name(review: Review) -> None:
    transcript = review("open 7", "open 1", "audits", "open moral", "left", audit=None)
    assert "1. moral: done, 100% of the samples done" in transcript
    assert "'7' is not a number of the list." in transcript
    assert transcript.count("Audit moral: 20 open.") == 2
    assert "no conflict is open. Enter 'next'" in transcript


def test_agreement(review: Review) -> None:
    review("next", "left", "next", "left")
    transcript = review("agreement")
    for words in ("Raters. Blind decisions only.", "ada: 2 blind decisions.", "cedar: agrees: "):
        assert words in transcript


def test_invalid_commands_are_explained_and_the_session_continues(review: Review, db: Database) -> None:
    messages = {
        "lft": "Did you mean 'left'?",
        "order": "Unknown command 'order'. 'help' lists the commands.",
        "score 2": "'2' is not a score.",
        "score": "'' is not a score.",
        "score nan": "'nan' is not a score.",
        "score 0,5,5": "'0,5,5' is not a score.",
        "open 99": "'99' is not a number of the list. Enter a number from 1 to 20.",
        "open -1": "'-1' is not a number of the list. Enter a number from 1 to 20.",
        f"open {'9' * 5000}": "is not a number of the list. Enter a number from 1 to 20.",
        "left -0.4": "'left' was not done: it takes nothing after it, but got '-0.4'. Enter 'left' alone.",
        "skip 2": "'skip' was not done",
        "undo 3": "'undo' was not done",
        "redo 3": "'redo' was not done",
        "confirm -0.4": "'confirm' was not done",
        "filter knd:x": "Did you mean 'kind'?",
        "sort size": "unknown value 'sort:size'",
        "\x1b[2J": "Unknown command '␛[2J'",
    }
    transcript = review("next", *messages, "help")
    assert [message for message in messages.values() if message not in transcript] == []
    assert "quit: quit. Everything is saved." in transcript
    assert rating_log.load_entries(db, 1) == []
    assert "'1' is not a number of the list. The list is empty." in review("filter country:nowhere", "open 1")


def test_a_score_may_have_a_decimal_comma(review: Review, db: Database) -> None:
    assert "Saved: custom score -0.40." in review("next", "score −0,4")
    assert [entry.rating.score for entry in rating_log.load_entries(db, 1)] == [-0.4]


def test_the_end_of_input_ends_the_session(review: Review) -> None:
    assert review().endswith("lists the conflicts.\n")


def test_control_characters_in_hostile_texts_are_escaped(db: Database, review: Review) -> None:
    save_review_audit(db, name="hostile", conflicts=1, hostile=True)
    transcript = review("next", "left", audit="hostile")
    assert "[/INST] [bold red]gotcha[/]" in transcript
    assert not [c for c in transcript if not (c.isprintable() or c == "\n")]


def test_characters_the_terminal_cannot_encode_are_escaped(db: Database) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    run_plain_text_review(db.url, "moral", rater="zoë", stdin=io.StringIO("next\nscore -0.5\n"), stdout=out)
    out.seek(0)
    assert "You rate as zo\\xeb" in out.read()


def test_the_callback_runs_when_all_is_decided_and_at_the_end(review: Review, db: Database) -> None:
    save_review_audit(db, name="two", conflicts=2)
    notified_audits: list[str] = []
    review(*["next", "left"] * 2, audit="two", on_decided=notified_audits.append)
    assert notified_audits == ["two"]
    review("next", audit="two", on_decided=notified_audits.append)
    assert notified_audits == ["two"]
    review("next", "list", "open 1", "right", audit="two", on_decided=notified_audits.append)
    assert notified_audits == ["two", "two"]


def test_an_error_of_the_callback_is_printed(review: Review, db: Database) -> None:
    def fail(name: str) -> None:
        raise StorageError(f"{name} is being run.", "Wait for it.")

    save_review_audit(db, name="two", conflicts=2)
    with pytest.raises(StorageError, match="being run"):
        review("next", "left", audit="two", on_decided=fail)
    transcript = review(*["next", "left"] * 2, "quit", audit="two", on_decided=fail)
    assert "two is being run. Wait for it." in transcript


def test_without_a_terminal_plain_text_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert needs_plain_text()


def test_with_a_terminal_the_screen_is_used_unless_it_is_dumb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", _Terminal())
    monkeypatch.setattr("sys.stdout", _Terminal())
    for term, needs in (("xterm-256color", False), ("dumb", True)):
        monkeypatch.setenv("TERM", term)
        assert needs_plain_text() is needs


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_such_database_or_audit(tmp_path: Path, review: Review) -> None:
    with pytest.raises(StorageError, match="no audit 'morl'"):
        review(audit="morl")
    with pytest.raises(StorageError, match="no database"):
        run_plain_text_review(f"sqlite:///{tmp_path}/none.db", rater="ada")


def test_every_decision_has_a_command(review: Review) -> None:
    transcript = review(
        *[c for d in Decision if d.resolves_conflict for c in ("next", f"{d} 0.5" if d is Decision.SCORE else str(d))]
    )
    assert re.findall(r"Saved: (.*)\.", transcript) == [
        "left answer chosen",
        "right answer chosen",
        "both answers accepted",
        "both answers rejected",
        "custom score +0.50",
    ]


def test_the_next_conflict_opens_by_itself_and_nothing_is_revealed(review: Review, db: Database) -> None:
    transcript = review("next", "left", "right", "undo", "show", "open-next maybe")
    assert transcript.count("hidden until you decide") == 4
    assert "Saved: left answer chosen.\n19 left." in transcript
    assert not any(name in transcript for name in MODELS)
    assert [entry.rating.withheld for entry in rating_log.load_entries(db, 1)] == [True, True, None]
    assert "'maybe' is not a value of open-next. Enter 'on' or 'off'." in transcript


def test_a_decided_conflict_is_revealed_on_request(review: Review) -> None:
    transcript = review("next", "left", "filter is:done", "open 1", "reveal")
    for words in ("Your decision: left answer chosen.", "are still hidden: 'reveal' shows them.", "Left is by "):
        assert words in transcript


def test_the_progress_is_printed(review: Review) -> None:
    transcript = review("next", "left", "todo", rater="ada")
    assert "To do: 20 of 20 left, 0 done (0 by you)." in transcript
    assert "To do: 19 of 20 left, 1 done (1 by you)." in transcript


def test_a_score_for_the_whole_cell_is_confirmed_first(review: Review, db: Database) -> None:
    first, *_ = results.load_conflicts(db, 1)
    results.replace_conflicts(db, 1, [first, replace(first, right="cedar", score_right=0.05)])
    transcript = review("open-next off", "open 1", "confirm", "cell 0.5", "confirm", "undo", "cell 2")
    assert "there is nothing to confirm. Enter 'cell' and a score first" in transcript
    assert "also answers 1 other conflict." in transcript
    assert "Nothing is saved yet." in transcript
    assert "Saved: custom score +0.50, with 1 other conflict of the cell." in transcript
    assert "This includes 1 other conflict of the cell." in transcript
    assert "'2' is not a score." in transcript
    assert len(rating_log.load_entries(db, 1)) == 4


def test_the_order_by_effect_gives_the_reason(review: Review) -> None:
    transcript = review("sort effect", "next")
    assert "Why this conflict: Both sides have been right about equally often." in transcript


@pytest.fixture
def label(db: Database) -> Review:
    save_labelling_audit(db)

    def run(*commands: str, rater: str = "ada", share: float = 0.0) -> str:
        out, lines = io.StringIO(), io.StringIO("\n".join(commands))
        run_plain_text_labelling(db.url, "moral", rater=rater, second_rater_share=share, stdin=lines, stdout=out)
        return out.getvalue()

    return run


def stored(db: Database) -> list[Label]:
    return labels.load_labels(db, 1, LabelKind.TRACE)


def test_a_note_that_no_label_has_saved_is_named_at_the_end(label: Review, db: Database) -> None:
    transcript = label("note odd one", "skip", "aspect culture yes", "aspect culture none", "quit")
    assert transcript.endswith(
        "Not saved: the aspects or the note of 1 text without a label. They are saved with a label.\n"
    )
    assert stored(db) == []


def test_a_few_labels(label: Review, db: Database) -> None:
    transcript = label("1", "aspect culture yes", "note odd one", "2", "undo", "3", "todo", "quit")
    assert transcript.startswith("You label as ada. 'help' lists the commands.\n30 of 30 left")
    assert "Text 1 of 30.\nWhat the judge was told:\n  You review the work of an anonymous analyst" in transcript
    assert transcript.count("What the judge was told:") == 1, "it is the same for all texts"
    assert "Can the reasoning stand as a whole? 1 valid, 2 invalid, 3 unsure." in transcript
    assert "Saved: valid.\n29 of 30 left" in transcript
    assert "culture (are the norms plausible and no stereotype): yes. It will be saved with your label." in transcript
    assert "Saved: invalid (culture yes)." in transcript
    assert "Undone.\nText 2 of 30." in transcript
    assert "Not saved" not in transcript
    first, second = stored(db)
    assert [(entry.value, entry.note, dict(entry.aspects)) for entry in (first, second)] == [
        ("VALID", "", {}), (UNSURE, "odd one", {"cultural_accuracy": True}),
    ]  # fmt: skip
    assert "Your label: no label (culture yes).\nYour note: odd one" in transcript, "an undo leaves what was entered"
    item = LabelItemLoader(db, audits.get_audit(db, "moral"), "ada").load(first.unit)
    assert first.text_hash == item.text_hash, "of the printed text"


def test_nothing_that_is_hidden_from_judges_is_printed(label: Review) -> None:
    transcript = label(*["1"] * 31)
    assert not re.search("|".join([*COUNTRIES, *TOPICS, *MODELS]), transcript, re.IGNORECASE)
    assert "You have labelled every text of the sample that is left to you." in transcript


async def test_screen_and_plain_text_store_the_same(
    label: Review, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_open_show_skip_and_settings(label: Review, db: Database) -> None:
    transcript = label("open 12", "show", "skip", "open-next OFF", "2", "open-next on", "open 99", "open-next x")
    assert transcript.count("Text 12 of 30.") == 2
    assert "After a label, this text stays open." in transcript
    assert transcript.count("Text 1 of 30.") == 2, "at the start, and after skipping"
    assert "'99' is not a number of the list. Enter a number from 1 to 30." in transcript
    assert "'x' is not a value of open-next." in transcript
    assert [entry.value for entry in stored(db)] == ["INVALID"]


def test_answers_may_be_entered_as_words(label: Review, db: Database) -> None:
    transcript = label("note odd one", "VALID", "note", "invalid", "unsure")
    assert "The note will be saved with your label.\nSaved: valid." in transcript
    assert "Note removed.\nSaved: invalid." in transcript
    assert [entry.value for entry in stored(db)] == ["VALID", "INVALID", "unsure"]


def test_wrong_commands_are_explained(label: Review, db: Database) -> None:
    messages = {
        "4": "there is no answer 4. Enter a number from 1 to 3.",
        "neither": "'neither' is no answer to this question. Enter one of: valid, invalid, unsure.",
        "valid yes": "'valid' was not done: it takes nothing after it, but got 'yes'.",
        "aspect cult yes": "there is no aspect 'cult'. Did you mean 'culture'?",
        "aspect culture perhaps": "'perhaps' is no answer. Enter: aspect culture yes, no or none.",
        "nxt": "Unknown command 'nxt'. Did you mean 'next'?",
        "undo": "There is nothing to undo.",
        "1 2": "'1' was not done: it takes nothing after it, but got '2'.",
        "undo 2": "'undo' was not done",
    }
    transcript = label(*messages)
    assert [message for message in messages.values() if message not in transcript] == []
    assert stored(db) == []


def test_aspects_are_removed_by_none(label: Review, db: Database) -> None:
    label("aspect culture yes", "Aspect Logic NO", "aspect culture none", "1")
    assert [dict(entry.aspects) for entry in stored(db)] == [{"logical_consistency": False}]


def test_a_text_that_is_gone_is_passed_over(label: Review, db: Database) -> None:
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


def test_the_agreement_is_printed(label: Review, db: Database) -> None:
    label(*["1"] * 30, rater="bob", share=1.0)
    transcript = label(*["1"] * 4, "2", share=1.0)
    assert re.search(r"You agree with bob on 80% \(95% CI \d+% to \d+%, 5 texts\)\.", transcript)


def test_help_lists_the_commands(label: Review) -> None:
    transcript = label("help")
    for command in ("1", "aspect", "undo", "todo", "help", "quit"):
        assert f"\n{command}: " in transcript


@pytest.mark.parametrize("run_app", [run_plain_text_labelling, run_labelling])
def test_without_a_sample_the_error_says_how_to_draw_one(run_app: Callable[..., None], db: Database) -> None:
    with pytest.raises(ReviewError, match="has no label sample of traces to label") as error:
        run_app(db.url, "moral", rater="ada")
    assert error.value.how_to_fix == "Draw one: auditor review moral --sample 200"
    with pytest.raises(StorageError, match="no audit 'morl'"):
        run_app(db.url, "morl", rater="ada")
    with pytest.raises(ReviewError, match=r"no label sample of answer pairs.*--sample 200 --kind answer_pair"):
        run_app(db.url, "moral", rater="ada", kind=LabelKind("answer_pair"))
