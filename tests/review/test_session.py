"""A session of reviews: decisions, scores that settle the other conflicts of a cell, and what is left."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from auditor.domain import Cell, Conflict, ConflictKind, ConflictState, Decision, RatingAction
from auditor.errors import StorageError, UsageError
from auditor.review.export import iter_rating_rows
from auditor.review.item import ReviewItem, choose_rater
from auditor.review.rater_agreement import load_blind_decisions
from auditor.review.session import CompletionNotifier, ReviewSession, load_threshold, propose_decision
from auditor.storage import audits, hash_chain, rating_log, results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictKey, ConflictStatus, QueueFilter
from auditor.storage.database import Database
from auditor.storage.rating_log import FULL_DISCLOSURE
from auditor.storage.records import save_records
from auditor.text_safety import clean_name
from tests.support.known import known
from tests.support.review_audit import MODELS, save_review_audit

SCORES = {"alder": 0.6, "birch": -0.6, "cedar": 0.05}
CELL = Cell("Egypt", "divorce")


def text_of(value: Any) -> str:
    """The nested `repr` of a value; the `repr` of conflict keys hides their models."""
    return repr(value)


def open_session(db: Database, rater: str = "ada", **options: Any) -> ReviewSession:
    return ReviewSession(db, audits.find_audit(db, "moral") or save_review_audit(db), rater, **options)


def load_first_item(session: ReviewSession, **filters: Any) -> ReviewItem:
    return session.load_item(session.conflict_keys(QueueFilter(**filters))[0])


def test_a_blind_item_and_its_queue_hold_no_author_verdict_or_survey_until_it_is_decided(db: Database) -> None:
    session = open_session(db)
    by_author = QueueFilter(models=("alder",))
    item = load_first_item(session)
    assert not any(name in text_of([item, *session.load_queue_rows(session.conflict_keys())]) for name in MODELS)
    assert (item.left.author, item.left.verdicts, item.survey, item.revealed) == (None, (), None, False)
    assert session.conflict_keys(by_author) == [], "the queue cannot be searched for authors"
    session.decide(item, Decision.LEFT)
    decided_item = session.load_item(item.key)
    assert {decided_item.left.author, decided_item.right.author} == {"alder", "birch"}
    assert len(decided_item.left.verdicts) == 6
    assert decided_item.survey is not None
    assert session.conflict_keys(by_author) == [item.key]


def test_names_of_models_and_providers_are_masked_while_blind(db: Database) -> None:
    session = open_session(db)
    key = session.conflict_keys()[0]
    traces = [
        replace(trace, text="As Alder, made by OpenAI, I think it is fine.")
        for trace in results.load_traces(db, session.audit.id)
        if trace.cell == (key.country, key.topic)
    ]
    save_records(db, session.audit.id, traces)

    blind = text_of(session.load_item(key)).lower()
    assert "alder" not in blind
    assert "openai" not in blind

    session.reveal(session.load_item(key))
    assert "As Alder, made by OpenAI" in text_of(session.load_item(key))


def test_sides_are_randomized_per_rater_and_decisions_are_stored_in_stored_order(db: Database) -> None:
    sessions = [open_session(db, f"rater{i}") for i in range(8)]
    key = sessions[0].conflict_keys()[0]
    swapped = {session.load_item(key).swapped for session in sessions}
    assert swapped == {True, False}

    for session in sessions:
        item = session.load_item(key)
        session.decide(item, Decision.LEFT)
        stored = rating_log.load_entries(db, session.audit.id, rater=session.rater)[-1].rating
        assert stored.decision is (Decision.RIGHT if item.swapped else Decision.LEFT)
        assert stored.swapped is item.swapped
        reloaded = session.load_item(key)
        assert reloaded.decision is Decision.LEFT
        assert session.load_queue_rows([key])[0].decision is Decision.LEFT
        assert reloaded.left.score == (stored.score_right if item.swapped else stored.score_left)
        assert session.load_history(key)[-1].rating.decision is Decision.LEFT


def test_disclosure_and_duration_are_stored(db: Database) -> None:
    session = open_session(db)
    item = load_first_item(session)
    session.decide(replace(item, shown_at=item.shown_at - 12), Decision.BOTH)
    session.decide(session.load_item(item.key), Decision.NEITHER)

    blind, revised = (entry.rating for entry in rating_log.load_entries(db, session.audit.id))
    assert (blind.decision, blind.shown) == (Decision.BOTH, "")
    assert blind.duration_s == pytest.approx(12, abs=1)
    assert (revised.decision, revised.shown) == (Decision.NEITHER, FULL_DISCLOSURE)
    assert session.load_item(item.key).first_decision is Decision.BOTH


def test_undoing_a_decision_keeps_the_item_revealed(db: Database) -> None:
    session = open_session(db)
    item = load_first_item(session)
    session.decide(item, Decision.LEFT)
    session.undo()

    reloaded = session.load_item(item.key)
    assert reloaded.decision is Decision.SKIP
    assert reloaded.revealed
    session.decide(reloaded, Decision.RIGHT)
    assert rating_log.load_entries(db, session.audit.id)[-1].rating.shown == FULL_DISCLOSURE


def test_revealing_is_logged_and_cannot_be_undone(db: Database) -> None:
    session = open_session(db)
    item = load_first_item(session)
    session.reveal(item)

    assert session.load_item(item.key).revealed
    assert [entry.rating.act for entry in rating_log.load_entries(db, session.audit.id)] == [RatingAction.REVEAL]
    assert session.undo() is None


def test_an_unblinded_view_is_logged_once_and_known_to_later_blind_sessions(db: Database) -> None:
    open_book = open_session(db, blind=False)
    key = open_book.conflict_keys()[0]
    assert open_book.load_item(key).left.author is not None
    open_book.load_item(key)

    assert [entry.rating.act for entry in rating_log.load_entries(db, open_book.audit.id)] == [RatingAction.REVEAL]
    assert open_session(db).load_item(key).revealed
    assert not open_session(db, "grace").load_item(key).revealed


def test_a_custom_score_is_dropped_with_its_decision(db: Database) -> None:
    session = open_session(db)
    item = load_first_item(session)
    session.decide(item, Decision.SCORE, score=-0.25)
    assert session.load_queue_rows([item.key])[0].score == -0.25
    session.save_note(session.load_item(item.key), "why")
    assert session.load_queue_rows([item.key])[0].score == -0.25
    session.decide(session.load_item(item.key), Decision.BOTH)
    assert session.load_queue_rows([item.key])[0].score is None


@pytest.mark.parametrize(("decision", "score"), [(Decision.SCORE, None), (Decision.LEFT, 0.5), (Decision.SCORE, 1.2)])
def test_a_missing_unneeded_or_out_of_range_score_is_refused(
    db: Database, decision: Decision, score: float | None
) -> None:
    session = open_session(db)
    with pytest.raises(ValueError, match="score"):
        session.decide(load_first_item(session), decision, score=score)


def test_next_offers_all_conflicts_and_then_the_skipped_ones(db: Database) -> None:
    session = open_session(db)
    offered_keys = []
    while (key := session.next_conflict_key()) is not None:
        offered_keys.append(key)
        is_skipped = len(offered_keys) <= 2
        session.decide(session.load_item(key), Decision.SKIP if is_skipped else Decision.LEFT)

    assert len(offered_keys) == 22
    assert len(set(offered_keys)) == 20
    assert set(offered_keys[:2]) == set(offered_keys[20:])


def test_a_note_or_a_flag_leaves_an_undecided_conflict_in_its_place(db: Database) -> None:
    session = open_session(db)
    first, second, *others = session.conflict_keys()
    session.save_note(session.load_item(first), "translation looks wrong")
    session.toggle_flag(session.load_item(second))
    assert session.conflict_keys() == [first, second, *others]
    session.decide(session.load_item(second), Decision.SKIP)
    assert session.conflict_keys()[-1] == second


def test_an_undone_act_returns_an_undecided_conflict_to_its_place(db: Database) -> None:
    session = open_session(db)
    keys = session.conflict_keys()
    session.save_note(session.load_item(keys[0]), "translation looks wrong")
    session.undo()
    session.decide(session.load_item(keys[1]), Decision.SKIP)
    session.undo()
    assert session.conflict_keys() == keys
    session.redo()
    assert session.conflict_keys()[-1] == keys[1]


def test_a_note_or_a_flag_leaves_a_skipped_conflict_in_its_place(db: Database) -> None:
    session = open_session(db)
    first, second, *others = session.conflict_keys()
    for key in (first, second):
        session.decide(session.load_item(key), Decision.SKIP)
    session.save_note(session.load_item(first), "translation looks wrong")
    session.toggle_flag(session.load_item(second))
    assert session.conflict_keys() == [*others, first, second]
    assert all(row.skipped for row in session.load_queue_rows([first, second]))
    session.undo()
    assert session.conflict_keys() == [*others, first, second]


def test_next_never_offers_the_current_conflict(db: Database) -> None:
    session = open_session(db)
    open_key = session.conflict_keys()[0]
    for key in session.conflict_keys()[1:]:
        session.decide(session.load_item(key), Decision.LEFT)
    assert session.next_conflict_key() == open_key
    assert session.next_conflict_key(after=open_key) is None


def test_a_share_of_conflicts_needs_a_second_rater_and_disputes_a_third(db: Database) -> None:
    ada, grace, mary = (open_session(db, name, second_rater_share=0.5) for name in ("ada", "grace", "mary"))
    all_keys = ada.conflict_keys()
    for key in all_keys:
        ada.decide(ada.load_item(key), Decision.BOTH)

    shared = [key for key in all_keys if ada.needs_second_rater(key)]
    assert 4 <= len(shared) <= 16
    assert set(grace.conflict_keys(QueueFilter(todo=True))) == set(shared)
    assert set(grace.conflict_keys(QueueFilter(todo=False))) == set(all_keys) - set(shared)
    assert grace.load_item(shared[0]).needs_second_rater

    grace.decide(grace.load_item(shared[0]), Decision.NEITHER)
    grace.decide(grace.load_item(shared[1]), Decision.BOTH)
    assert mary.count_by_status()[ConflictStatus.DISPUTED] == 1
    assert mary.next_conflict_key() == shared[0]
    assert shared[1] not in mary.conflict_keys(QueueFilter(todo=True))

    mary.decide(mary.load_item(shared[0]), Decision.NEITHER)
    assert mary.count_by_status()[ConflictStatus.DISPUTED] == 0
    assert mary.load_queue_rows([shared[0]])[0].n_raters == 3


def test_a_deleted_conflict_raises_a_storage_error(db: Database) -> None:
    session = open_session(db)
    item = load_first_item(session)
    results.replace_conflicts(db, session.audit.id, [])

    with pytest.raises(StorageError, match="no longer exists"):
        session.decide(item, Decision.LEFT)
    with pytest.raises(StorageError, match="no longer exists"):
        session.load_item(item.key)


def test_a_decision_about_answers_that_have_changed_since_is_not_stored(db: Database) -> None:
    for rater in ("ada", "ben", "cho"):  # some see the stored left side on the right
        session = open_session(db, rater)
        item = load_first_item(session, words=("divorce",), countries=("Egypt",))
        conflicts = results.load_conflicts(db, session.audit.id)
        changed = [
            replace(conflict, score_left=-0.9)
            if ConflictKey(*conflict.cell, conflict.left, conflict.right) == item.key
            else conflict
            for conflict in conflicts
        ]
        results.replace_conflicts(db, session.audit.id, changed)
        for decision, score in ((Decision.LEFT, None), (Decision.SCORE, 0.2)):
            with pytest.raises(StorageError, match="not saved: the answers of this conflict have changed"):
                session.decide(item, decision, score=score)
        session.save_note(item, "looks odd")
        assert session.load_item(item.key).row.note == "looks odd"
        session.decide(session.load_item(item.key), Decision.LEFT)
        results.replace_conflicts(db, session.audit.id, conflicts)
    stored = [entry.rating for entry in rating_log.load_entries(db, session.audit.id)]
    assert [rating.score_left for rating in stored if rating.decision.resolves_conflict] == [-0.9] * 3


def test_one_rater_is_not_two_by_another_spelling(db: Database) -> None:
    session = open_session(db, " Zoë ")
    session.decide(load_first_item(session), Decision.LEFT)
    assert [entry.rating.rater for entry in rating_log.load_entries(db, session.audit.id)] == ["Zoë"]
    assert open_session(db, "Zoe\u0308").rater == "Zoë", "the same name, in another composition"
    for name in ("zoë", "ZOË"):
        with pytest.raises(UsageError, match=f"the rater '{name}' differs from 'Zoë'.*--rater 'Zoë'"):
            open_session(db, name)
    assert open_session(db, "Zoe").rater == "Zoe"
    with pytest.raises(UsageError, match="a rater needs a name"):
        open_session(db, "  ")


@pytest.mark.parametrize("stored", ["ada ", " ada", "ada\u00a0", "Jose\u0301", "ada  b"])
def test_a_rater_goes_on_under_a_name_that_was_stored_as_typed(stored: str) -> None:
    assert choose_rater(stored, {stored}) == stored
    assert choose_rater(" ".join(clean_name(stored).split()), {stored}) == stored
    assert choose_rater(stored, {stored, "ada", "Jos\u00e9"}) == stored
    with pytest.raises(UsageError, match="differs from"):
        choose_rater(stored.upper(), {stored})


def test_the_question_is_the_surveys_wording(db: Database) -> None:
    item = load_first_item(open_session(db))
    assert item.question == f"How justifiable is {item.key.topic} in {item.key.country}?"
    assert dataclasses.is_dataclass(item)


def test_a_cell_seen_in_one_conflict_is_not_blind_in_the_next(db: Database) -> None:
    """The first decision discloses alder's side, its verdicts and the survey's score, also in other conflicts."""
    audit = save_review_audit(db, conflicts=2)
    conflict, unrelated_conflict = results.load_conflicts(db, audit.id)
    related_conflicts = [
        replace(conflict, right="cedar", score_right=0.05),
        replace(conflict, left="dill", right="elm"),
    ]
    results.replace_conflicts(db, audit.id, [conflict, unrelated_conflict, *related_conflicts])
    keys = [ConflictKey(*c.cell, c.left, c.right) for c in (conflict, *related_conflicts, unrelated_conflict)]
    session = ReviewSession(db, audit, "ada")
    prefetched = session.load_item(keys[1])  # loaded before any decision
    assert prefetched.disclosed_elsewhere == ""
    session.decide(session.load_item(keys[0]), Decision.BOTH)

    assert [session.load_item(key).disclosed_elsewhere for key in keys] == ["", FULL_DISCLOSURE, "survey", ""]
    assert session.conflict_keys(QueueFilter(todo=True))[0] == keys[3]
    for item in (prefetched, session.load_item(keys[2]), session.load_item(keys[3])):
        assert not item.revealed  # details not disclosed elsewhere stay hidden
        assert item.left.author is None
        session.decide(item, Decision.BOTH)

    assert [entry.rating.shown for entry in rating_log.load_entries(db, audit.id)] == [
        "",
        FULL_DISCLOSURE,
        "survey",
        "",
    ]
    assert set(load_blind_decisions(db, audit.id)) == {keys[0], keys[3]}
    assert ReviewSession(db, audit, "grace").load_item(keys[1]).disclosed_elsewhere == ""


def test_a_note_or_a_skip_on_a_known_cell_reveals_nothing(db: Database) -> None:
    audit = save_review_audit(db, conflicts=1)
    (conflict,) = results.load_conflicts(db, audit.id)
    related_conflict = replace(conflict, left="dill", right="elm")
    results.replace_conflicts(db, audit.id, [conflict, related_conflict])
    keys = [ConflictKey(*c.cell, c.left, c.right) for c in (conflict, related_conflict)]
    session = ReviewSession(db, audit, "ada")
    session.reveal(session.load_item(keys[0]))
    session.save_note(session.load_item(keys[1]), "later")
    session.decide(session.load_item(keys[1]), Decision.SKIP)
    assert not session.load_item(keys[1]).revealed

    open_book = ReviewSession(db, audit, "ada", blind=False)
    assert open_book.load_item(keys[1]).revealed
    assert rating_log.load_entries(db, audit.id)[-1].rating.act is RatingAction.REVEAL


@pytest.fixture
def audit(db: Database) -> Audit:
    """An audit with three conflicts on one cell, and one on another."""
    audit = save_review_audit(db)
    pairs = [(CELL, *pair) for pair in combinations(MODELS, 2)] + [(Cell("Egypt", "gambling"), "alder", "birch")]
    conflicts = [
        Conflict(cell, left, right, SCORES[left], SCORES[right], ConflictKind.BINARY, ConflictState.OPEN, 1, 0, 0)
        for cell, left, right in pairs
    ]
    results.replace_conflicts(db, audit.id, conflicts)
    return audit


def open_cell(db: Database, audit: Audit, rater: str = "ada") -> tuple[ReviewSession, ConflictKey]:
    return ReviewSession(db, audit, rater), ConflictKey(*CELL, "alder", "birch")


def settle(session: ReviewSession, key: ConflictKey, score: float) -> None:
    item = session.load_item(key)
    session.decide(item, Decision.SCORE, score=score, following=session.preview_cell(item, score))


def stored_decisions(db: Database, audit: Audit) -> dict[tuple[str, str], tuple[Decision, float | None]]:
    """The current decision on each pair of the cell, with the sides as stored."""
    entries = rating_log.load_entries(db, audit.id)
    return {(e.key.left, e.key.right): (e.rating.decision, e.rating.score) for e in entries}


def test_a_side_within_the_threshold_is_chosen_and_else_the_score(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    assert load_threshold(db, audit) == 0.38
    settle(session, key, 0.55)
    assert stored_decisions(db, audit) == {
        ("alder", "birch"): (Decision.SCORE, 0.55),
        ("alder", "cedar"): (Decision.LEFT, None),
        ("birch", "cedar"): (Decision.SCORE, 0.55),
    }
    assert session.count_by_status()[ConflictStatus.PERSON] == 3
    assert session.count_by_status()[ConflictStatus.OPEN] == 1
    session.undo()
    settle(session, key, 0.3)
    assert stored_decisions(db, audit)["alder", "cedar"] == (Decision.SCORE, 0.3), "both sides are within it"


@pytest.mark.parametrize(
    ("score", "decision"), [(0.1, Decision.SCORE), (-0.1, Decision.LEFT), (0.3, Decision.RIGHT), (0.0, Decision.LEFT)]
)
def test_a_side_on_the_other_side_of_zero_is_not_chosen(
    db: Database, audit: Audit, score: float, decision: Decision
) -> None:
    """A rater who calls something rather acceptable has not chosen the side that calls it unacceptable."""
    [row, *_] = ReviewSession(db, audit, "ada").load_queue_rows([ConflictKey(*CELL, "alder", "birch")])
    near_zero = replace(row, score_left=-0.15, score_right=0.5)
    assert propose_decision(near_zero, score, 0.38, swapped=False).decision is decision


def test_what_was_settled_with_another_conflict_needs_no_second_opinion(db: Database, audit: Audit) -> None:
    """Agreement does not count it; the conflict that was decided itself is listed for the second rater."""
    session, key = open_cell(db, audit)
    settle(session, key, 0.55)
    grace = ReviewSession(db, audit, "grace", second_rater_share=1.0)
    other = ConflictKey(*CELL, "alder", "cedar")
    assert sorted(grace.conflict_keys(QueueFilter(todo=True))) == [key, ConflictKey("Egypt", "gambling", *MODELS[:2])]
    assert grace.load_progress().n_left == 2
    assert not grace.load_item(other).needs_second_rater
    assert grace.load_item(key).needs_second_rater
    session.decide(session.load_item(other), Decision.BOTH)
    assert grace.load_item(other).needs_second_rater, "decided by itself now"
    assert other in grace.conflict_keys(QueueFilter(todo=True))


def test_the_preview_saves_and_reveals_nothing_and_a_side_settles_no_other_conflict(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    item = session.load_item(key)
    preview = session.preview_cell(item, 0.55)
    assert len(preview) == 2
    assert not any(name in repr(preview) for name in MODELS)
    with pytest.raises(ValueError, match="only a custom score"):
        session.decide(item, Decision.LEFT, following=preview)
    assert rating_log.load_entries(db, audit.id) == []


def test_what_a_reveal_showed_is_recorded_for_all(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    session.reveal(session.load_item(ConflictKey(*CELL, "birch", "cedar")))
    settle(session, key, 0.55)
    shown = [entry.rating.shown for entry in rating_log.load_entries(db, audit.id)]
    assert shown == ["authors,survey,verdicts"] * 4


def test_it_is_one_act_for_undo_redo_and_the_hash_chain(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    settle(session, key, 0.55)
    undone = known(session.undo())
    assert undone.n_following == 2
    assert session.count_by_status()[ConflictStatus.OPEN] == 4
    assert session.undo() is None

    redone = known(session.redo())
    assert redone.n_following == 2
    assert session.count_by_status()[ConflictStatus.PERSON] == 3
    assert stored_decisions(db, audit)["alder", "cedar"] == (Decision.LEFT, None)
    assert session.undo() is not None
    assert session.count_by_status()[ConflictStatus.OPEN] == 4
    assert not hash_chain.verify_chain(db).breaks


def test_a_conflict_that_changed_since_the_preview_stops_the_whole_transaction(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    item = session.load_item(key)
    preview = session.preview_cell(item, 0.55)
    first, second, *others = results.load_conflicts(db, audit.id)
    changed = Conflict(CELL, "alder", "cedar", 0.9, 0.05, ConflictKind.BINARY, ConflictState.OPEN, 1, 0, 0)
    results.replace_conflicts(db, audit.id, [first, changed, *others])
    assert second.score_left != changed.score_left
    with pytest.raises(StorageError, match="not saved: the scores of another conflict of this cell have changed"):
        session.decide(item, Decision.SCORE, score=0.55, following=preview)
    assert rating_log.load_entries(db, audit.id) == []


def test_settled_conflicts_stay_hidden_and_count_once_until_they_are_decided(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    settle(session, key, 0.55)
    shown = [entry.rating.shown for entry in rating_log.load_entries(db, audit.id)]
    assert shown == ["", "", ""], "not even the survey that the first one reveals"
    rows = list(iter_rating_rows(db, audit))
    assert [row["act"] for row in rows] == [RatingAction.DECIDE, RatingAction.FOLLOW, RatingAction.FOLLOW]
    assert [row["follows"] for row in rows] == [None, rows[0]["id"], rows[0]["id"]]
    other = ConflictKey(*CELL, "alder", "cedar")
    assert session.load_item(key).revealed
    assert not session.load_item(other).revealed
    session.save_note(session.load_item(other), "a note is no decision of its own")
    assert load_blind_decisions(db, audit.id) == {key: {"ada": Decision.SCORE}}
    assert len(rating_log.load_decision_durations(db, audit.id, "ada", 30)) == 1
    assert session.load_progress().n_by_rater == 3
    session.decide(session.load_item(other), Decision.BOTH)
    entry = rating_log.load_entries(db, audit.id, key=other)[-1]
    assert (entry.rating.follows, entry.rating.decision) == (None, Decision.BOTH)


def test_what_another_rater_decided_does_not_follow(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    grace = ReviewSession(db, audit, "grace", second_rater_share=1.0)
    other = ConflictKey(*CELL, "alder", "cedar")
    session.decide(session.load_item(other), Decision.BOTH)
    assert [decision.row.key for decision in grace.preview_cell(grace.load_item(key), 0.55)] == [
        ConflictKey(*CELL, "birch", "cedar")
    ]


def test_the_automatic_threshold_is_the_third_quartile_of_the_differences(db: Database, audit: Audit) -> None:
    config = json.loads(audit.config or "{}") | {"conflicts": {"threshold": "auto"}}
    scores = {(s.model, s.cell): s.score or 0.0 for s in results.load_scores(db, audit.id)}
    cells = {cell for _, cell in scores}
    differences = [abs(scores[a, cell] - scores[b, cell]) for cell in cells for a, b in combinations(MODELS, 2)]
    threshold = load_threshold(db, replace(audit, config=json.dumps(config)))
    assert threshold == pytest.approx(np.quantile(differences, 0.75))


def test_completion_is_notified_once_when_all_are_resolved_and_at_the_end(db: Database) -> None:
    save_review_audit(db, conflicts=2)
    notified_audits: list[str] = []
    session = open_session(db)
    notifier = CompletionNotifier(notified_audits.append)
    first_key, second_key = session.conflict_keys()

    notifier.notify_remaining([session])
    session.decide(session.load_item(first_key), Decision.LEFT)
    notifier.notify_if_complete(session)
    session.decide(session.load_item(second_key), Decision.SKIP)
    notifier.notify_if_complete(session)
    assert notified_audits == []

    session.decide(session.load_item(second_key), Decision.LEFT)
    notifier.notify_if_complete(session)
    notifier.notify_if_complete(session)
    notifier.notify_remaining([session])
    assert notified_audits == ["moral"]

    session.undo()
    notifier.notify_if_complete(session)
    assert notified_audits == ["moral"], "one is open again"
    notifier.notify_remaining([session])
    assert notified_audits == ["moral", "moral"]
    CompletionNotifier(None).notify_remaining([session])


def test_raters_who_are_active_at_once_are_given_different_conflicts(db: Database) -> None:
    audit = save_review_audit(db, conflicts=40, topics=[f"topic {i}" for i in range(8)], samples=1)
    raters = [ReviewSession(db, audit, name, second_rater_share=0.0) for name in ("ada", "grace", "mary")]
    n_open_by_round = []
    for _ in range(8):  # all open a conflict before any of them has decided
        keys = [known(session.next_conflict_key()) for session in raters]
        n_open_by_round.append(len(set(keys)))
        for session, key in zip(raters, keys, strict=True):
            session.decide(session.load_item(key), Decision.LEFT)
        for session in raters:
            session.prefetch_next_keys()

    assert n_open_by_round[0] == 1, "nobody is known to be active yet"
    assert set(n_open_by_round[1:]) == {3}
