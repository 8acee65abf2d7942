"""A custom score can settle the other conflicts of its cell: previewed, in one transaction, undone as one act."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from auditor.domain import Cell, Conflict, ConflictKind, ConflictState, Decision, RatingAction
from auditor.errors import StorageError
from auditor.review.export import iter_rating_rows
from auditor.review.rater_agreement import load_blind_decisions
from auditor.review.session import ReviewSession, load_threshold, propose_decision
from auditor.storage import hash_chain, rating_log, results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictKey, ConflictStatus, QueueFilter
from auditor.storage.database import Database
from tests.support.review_audit import MODELS, save_review_audit

SCORES = {"alder": 0.6, "birch": -0.6, "cedar": 0.05}
CELL = Cell("Egypt", "divorce")


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


def test_two_sides_within_the_threshold_leave_the_score(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    settle(session, key, 0.3)
    assert stored_decisions(db, audit)["alder", "cedar"] == (Decision.SCORE, 0.3)


@pytest.mark.parametrize(
    ("score", "decision"),
    [(0.1, Decision.SCORE), (-0.1, Decision.LEFT), (0.3, Decision.RIGHT), (0.0, Decision.LEFT)],
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


def test_the_preview_saves_nothing_and_reveals_nothing(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    preview = session.preview_cell(session.load_item(key), 0.55)
    assert len(preview) == 2
    assert rating_log.load_entries(db, audit.id) == []
    assert not any(name in repr(preview) for name in MODELS)


def test_a_side_alone_settles_no_other_conflict(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    item = session.load_item(key)
    with pytest.raises(ValueError, match="only a custom score"):
        session.decide(item, Decision.LEFT, following=session.preview_cell(item, 0.55))
    assert rating_log.load_entries(db, audit.id) == []


def test_shown_is_as_before_the_first_decision(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    settle(session, key, 0.55)
    entries = rating_log.load_entries(db, audit.id)
    assert [entry.rating.shown for entry in entries] == ["", "", ""], "not even the survey that the first one reveals"


def test_what_a_reveal_showed_is_recorded_for_all(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    session.reveal(session.load_item(ConflictKey(*CELL, "birch", "cedar")))
    settle(session, key, 0.55)
    shown = [entry.rating.shown for entry in rating_log.load_entries(db, audit.id)]
    assert shown == ["authors,survey,verdicts"] * 4


def test_other_conflicts_stay_hidden_after_they_were_settled(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    settle(session, key, 0.55)
    assert session.load_item(key).revealed
    assert not session.load_item(ConflictKey(*CELL, "alder", "cedar")).revealed


def test_it_is_one_act_for_undo_redo_and_the_hash_chain(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    settle(session, key, 0.55)
    undone = session.undo()
    assert undone is not None
    assert undone.n_following == 2
    assert session.count_by_status()[ConflictStatus.OPEN] == 4
    assert session.undo() is None

    redone = session.redo()
    assert redone is not None
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


def test_agreement_and_pace_count_it_once(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    settle(session, key, 0.55)
    session.save_note(session.load_item(ConflictKey(*CELL, "alder", "cedar")), "a note is no decision of its own")
    assert load_blind_decisions(db, audit.id) == {key: {"ada": Decision.SCORE}}
    assert len(rating_log.load_decision_durations(db, audit.id, "ada", 30)) == 1
    assert session.load_progress().n_by_rater == 3


def test_a_decision_of_its_own_counts_again(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    settle(session, key, 0.55)
    other = ConflictKey(*CELL, "alder", "cedar")
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


def test_the_export_names_the_decision_that_it_follows(db: Database, audit: Audit) -> None:
    session, key = open_cell(db, audit)
    settle(session, key, 0.55)
    rows = list(iter_rating_rows(db, audit))
    assert [row["act"] for row in rows] == [RatingAction.DECIDE, RatingAction.FOLLOW, RatingAction.FOLLOW]
    assert [row["follows"] for row in rows] == [None, rows[0]["id"], rows[0]["id"]]


def test_the_automatic_threshold_is_the_third_quartile_of_the_differences(db: Database, audit: Audit) -> None:
    config = json.loads(audit.config or "{}") | {"conflicts": {"threshold": "auto"}}
    scores = {(s.model, s.cell): s.score or 0.0 for s in results.load_scores(db, audit.id)}
    cells = {cell for _, cell in scores}
    differences = [abs(scores[a, cell] - scores[b, cell]) for cell in cells for a, b in combinations(MODELS, 2)]
    threshold = load_threshold(db, replace(audit, config=json.dumps(config)))
    assert threshold == pytest.approx(np.quantile(differences, 0.75))
