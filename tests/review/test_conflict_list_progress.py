from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.domain import Decision
from auditor.review.conflict_list import ReviewProgress, compute_pace, format_duration, format_left, format_progress
from auditor.review.session import ReviewSession
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database
from tests.support.review_audit import save_review_audit


def test_progress_counts_what_is_done_and_left_with_the_raters_pace(db: Database) -> None:
    ada = ReviewSession(db, save_review_audit(db), "ada", second_rater_share=0.0)
    grace = ReviewSession(db, ada.audit, "grace", second_rater_share=0.0)
    assert ada.load_progress() == ReviewProgress(n_total=20, n_left=20, n_by_rater=0, seconds_per_decision=None)

    for key, seconds in zip(ada.conflict_keys(), (10.0, 20.0, 3600.0), strict=False):
        item = ada.load_item(key)
        ada.decide(replace(item, shown_at=item.shown_at - seconds), Decision.LEFT)
    grace.decide(grace.load_item(grace.conflict_keys(QueueFilter(todo=True))[0]), Decision.LEFT)
    progress = ada.load_progress()
    assert (progress.n_total, progress.n_left, progress.n_done, progress.n_by_rater) == (20, 16, 4, 3)
    assert progress.seconds_per_decision == pytest.approx(20, abs=2), "the median ignores a long break"
    assert progress.seconds_left == pytest.approx(16 * 20, abs=40)


def test_second_opinions_are_left_to_the_other_rater(db: Database) -> None:
    ada = ReviewSession(db, save_review_audit(db), "ada", second_rater_share=1.0)
    grace = ReviewSession(db, ada.audit, "grace", second_rater_share=1.0)
    ada.decide(ada.load_item(ada.conflict_keys()[0]), Decision.LEFT)
    assert (ada.load_progress().n_left, grace.load_progress().n_left) == (19, 20)


def test_an_undone_decision_is_left_again(db: Database) -> None:
    session = ReviewSession(db, save_review_audit(db), "ada")
    session.decide(session.load_item(session.conflict_keys()[0]), Decision.LEFT)
    session.undo()
    assert (session.load_progress().n_left, session.load_progress().n_by_rater) == (20, 0)


def test_no_pace_from_two_decisions() -> None:
    assert compute_pace([5.0, 7.0]) is None
    assert compute_pace([5.0, 7.0, 100.0]) == 7.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (89.1, "90 s"), (91, "2 min"), (3600, "60 min"), (5401, "1 h 31 min"), (7200, "2 h")],
)
def test_durations_are_rounded_up(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_progress_in_words() -> None:
    progress = ReviewProgress(n_total=500, n_left=80, n_by_rater=300, seconds_per_decision=42.0)
    assert format_progress(progress) == "80 of 500 left · 420 done (300 by you) · 42 s each · about 56 min to go"
    assert format_left(progress) == "80 left, about 56 min"
    completed = replace(progress, n_left=0)
    assert format_progress(completed) == "0 of 500 left · 500 done (300 by you)"
    assert format_left(completed) == "0 left"
