"""People's ratings settle conflicts; the queue, the report and the status of an audit read the same rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from auditor.domain import Cell, Conflict, ConflictKind, ConflictState, Decision, Rating
from auditor.reports.data.audit_status import load_audit_status
from auditor.storage import results
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database, open_database
from auditor.storage.review_queue import ConflictQueue, load_reviewed_conflicts
from tests.storage.conftest import ENGINES, new_database
from tests.support.stored_rows import add_rating
from tests.support.synthetic_audit import populate


@pytest.fixture(scope="module", params=ENGINES)
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("reviewed") / "audits.db"
    with open_database(new_database(request, path)) as database:
        yield database


def _conflict(topic: str) -> Conflict:
    return Conflict(
        Cell("Egypt", topic), "a", "b", 0.5, -0.5, ConflictKind.BINARY, ConflictState.MAJORITY,
        seats=1, votes_left=1, winner="a",
    )  # fmt: skip


def _rating(decision: Decision, rater: str = "ada", score_left: float = 0.5) -> Rating:
    return Rating(Cell("Egypt", ""), "a", "b", score_left, -0.5, rater, decision, datetime(2026, 1, 1, tzinfo=UTC))


LEFT, RIGHT, BOTH, SKIP = Decision.LEFT, Decision.RIGHT, Decision.BOTH, Decision.SKIP
CASES: dict[str, tuple[list[Rating], ConflictStatus, Decision | None, str | None]] = {
    "nobody": ([], ConflictStatus.MAJORITY, None, "a"),
    "right": ([_rating(RIGHT)], ConflictStatus.PERSON, RIGHT, "b"),
    "left": ([_rating(LEFT)], ConflictStatus.PERSON, LEFT, "a"),
    "both": ([_rating(BOTH)], ConflictStatus.PERSON, BOTH, None),
    "skipped": ([_rating(SKIP)], ConflictStatus.MAJORITY, None, "a"),
    "taken back": ([_rating(RIGHT), _rating(SKIP)], ConflictStatus.MAJORITY, None, "a"),
    "revised": ([_rating(RIGHT), _rating(LEFT)], ConflictStatus.PERSON, LEFT, "a"),
    "other score": ([_rating(RIGHT, score_left=0.4)], ConflictStatus.MAJORITY, None, "a"),
    "disputed": ([_rating(RIGHT), _rating(LEFT, "bo")], ConflictStatus.DISPUTED, None, None),
    "two of three": ([_rating(RIGHT), _rating(LEFT, "bo"), _rating(RIGHT, "cy")], ConflictStatus.PERSON, RIGHT, "b"),
    "one skips": ([_rating(RIGHT), _rating(SKIP, "bo")], ConflictStatus.PERSON, RIGHT, "b"),
}


def test_ratings_override_the_judges(db: Database) -> None:
    audit = populate(db, name="cases")
    results.replace_conflicts(db, audit.id, [_conflict(name) for name in CASES])
    for name, (ratings, *_) in CASES.items():
        for rating in ratings:
            add_rating(db, audit.id, replace(rating, cell=Cell("Egypt", name)))
    reviewed_by_name = {reviewed.conflict.cell.topic: reviewed for reviewed in load_reviewed_conflicts(db, audit.id)}
    assert set(reviewed_by_name) == set(CASES)
    for name, (ratings, *expected) in CASES.items():
        reviewed = reviewed_by_name[name]
        assert [reviewed.status, reviewed.decision, reviewed.winner] == expected, name
        deciding_raters = sorted(rating.rater for rating in reviewed.ratings)
        assert [rating.rater for rating in reviewed.ratings] == deciding_raters
        assert {rating.rater for rating in ratings} >= set(deciding_raters)
        assert bool(deciding_raters) == (reviewed.status in (ConflictStatus.PERSON, ConflictStatus.DISPUTED)), name
        assert reviewed.conflict == _conflict(name)


def test_the_ratings_are_complete(db: Database) -> None:
    audit = populate(db, name="complete")
    conflict = results.load_conflicts(db, audit.id)[0]
    rating = Rating(
        conflict.cell, conflict.left, conflict.right, conflict.score_left, conflict.score_right, "zoe", Decision.SCORE,
        datetime(2026, 1, 1, tzinfo=UTC), 0.25, note="a note", flagged=True, shown="survey", swapped=True,
        duration_s=1.5,
    )  # fmt: skip
    add_rating(db, audit.id, rating)
    reviewed = next(r for r in load_reviewed_conflicts(db, audit.id) if r.conflict == conflict)
    assert rating in reviewed.ratings


def test_report_status_and_queue_count_the_same(db: Database) -> None:
    audit = populate(db, name="counted")
    conflicts = results.load_conflicts(db, audit.id)
    for i, conflict in enumerate(conflicts):
        for rater in ("bo", "cy")[: i % 3]:
            decision = list(Decision)[(i * (2 if rater == "bo" else 1)) % len(Decision)]
            rating = replace(
                _rating(decision, rater, (conflict.score_left or 0.0) - (i % 5 == 4)),
                cell=conflict.cell,
                left=conflict.left,
                right=conflict.right,
                score_right=conflict.score_right,
            )
            add_rating(db, audit.id, rating)
    reviewed_conflicts = load_reviewed_conflicts(db, audit.id)
    assert [reviewed.conflict for reviewed in reviewed_conflicts] == conflicts
    counts = Counter(reviewed.status for reviewed in reviewed_conflicts)
    assert ConflictQueue(db, audit.id, "ada").count_by_status() == counts
    assert all(counts[status] for status in ConflictStatus)
    status = load_audit_status(db, audit)
    assert status["conflicts"] == len(conflicts)
    assert status["open"] == counts[ConflictStatus.OPEN] + counts[ConflictStatus.DISPUTED]


def test_ratings_without_conflicts_resolve_nothing(db: Database) -> None:
    audit = populate(db, name="none")
    assert results.load_ratings(db, audit.id)
    results.replace_conflicts(db, audit.id, [])
    assert load_reviewed_conflicts(db, audit.id) == []
