from __future__ import annotations

import pytest

from auditor.review.session import ReviewSession
from auditor.review.summary import MIN_KAPPA_RATINGS, summarize_ratings
from auditor.storage.database import Database
from tests.review.test_rater_agreement import B, L, N, R
from tests.support.review_audit import save_review_audit


def test_the_summary_has_tables_of_raters_judges_and_weights(db: Database) -> None:
    audit = save_review_audit(db)
    assert [t.note for t in summarize_ratings(db, audit).tables] == [
        "There is no blind decision yet.",
        "No side with verdicts has a blind decision yet.",
        "There are no blind decisions on judged sides yet.",
    ]
    for rater in ("ada", "grace"):
        session = ReviewSession(db, audit, rater)
        for number, k in enumerate(sorted(session.conflict_keys())):
            item = session.load_item(k)
            negative_side = L if (item.left.score or 0.0) < (item.right.score or 0.0) else R
            session.decide(item, B if rater == "grace" and number < 2 else negative_side)
    raters, judges, weights = summarize_ratings(db, audit).tables
    rows = {row.name: row for table in (raters, judges, weights) for row in table.rows}
    assert rows["ada"].text == "20 blind decisions"
    assert rows["ada and grace: agree"].text == "90% of 20, no interval"
    assert rows["cedar: agrees"].text == "100% of 36, no interval"
    assert raters.note.endswith(
        "No interval: an interval needs at least 5 countries and 5 topics, but there are 4 topics."
    )
    assert judges.note.count("No interval") == 1
    assert rows["cedar: curve"].text.startswith("0% VALID: ")
    assert "after" in rows["cedar: error"].text
    assert float(rows["cedar: weight"].text) > 0
    assert "needs 30 ratings" in rows["alder: curve"].text


def test_intervals_over_countries_and_topics_are_in_the_summary(db: Database) -> None:
    countries, topics = [f"country {i}" for i in range(6)], [f"topic {i}" for i in range(7)]
    audit = save_review_audit(db, conflicts=42, countries=countries, topics=topics)
    for rater in ("ada", "grace"):
        session = ReviewSession(db, audit, rater)
        for number, k in enumerate(sorted(session.conflict_keys())):
            decision = B if number % 2 else N
            session.decide(session.load_item(k), L if rater == "grace" and number % 5 == 0 else decision)
    raters = summarize_ratings(db, audit).tables[0]
    rows = {row.name: row for row in raters.rows}
    same, kappa = rows["ada and grace: agree"], rows["ada and grace: kappa"]
    assert same.value == pytest.approx(33 / 42)
    assert same.low is not None
    assert kappa.low is not None
    assert "Intervals are for other countries and topics like these." in raters.note


def test_kappa_is_withheld_below_the_stated_number_of_ratings(db: Database) -> None:
    audit = save_review_audit(db, conflicts=12)
    sessions = [ReviewSession(db, audit, rater) for rater in ("ada", "grace")]
    keys = sorted(sessions[0].conflict_keys())
    for key in keys[: MIN_KAPPA_RATINGS - 1]:
        for session in sessions:
            session.decide(session.load_item(key), L)
    rows = {row.name: row for row in summarize_ratings(db, audit).tables[0].rows}
    row = rows["ada and grace: kappa"]
    assert (row.value, row.text) == (None, "shown from 10 shared ratings on, 9 so far")
    for session in sessions:
        session.decide(session.load_item(keys[MIN_KAPPA_RATINGS]), N)
    rows = {row.name: row for row in summarize_ratings(db, audit).tables[0].rows}
    assert rows["ada and grace: kappa"].value is not None
