"""Ratings settle conflicts in the report by the same rules as in the review queue."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from auditor.domain import Cell, Conflict, ConflictKind, ConflictState, Decision, Rating
from auditor.reports.data.conflicts.human_ratings import apply_ratings
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database
from auditor.storage.review_queue import ConflictQueue
from tests.support.stored_rows import add_rating
from tests.support.synthetic_audit import populate

CELL = Cell("Egypt", "divorce")
CONFLICT = Conflict(
    CELL, "a", "b", 0.5, -0.5, ConflictKind.BINARY, ConflictState.MAJORITY, seats=1, votes_left=1, winner="a"
)


def _rating(decision: Decision, rater: str = "ada", score_left: float = 0.5) -> Rating:
    return Rating(CELL, "a", "b", score_left, -0.5, rater, decision, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("ratings", "expected_status", "winner"),
    [
        ([], ConflictStatus.MAJORITY, "a"),
        ([_rating(Decision.RIGHT)], ConflictStatus.PERSON, "b"),
        ([_rating(Decision.LEFT)], ConflictStatus.PERSON, "a"),
        ([_rating(Decision.BOTH)], ConflictStatus.PERSON, None),
        ([_rating(Decision.SKIP)], ConflictStatus.MAJORITY, "a"),
        ([_rating(Decision.RIGHT), _rating(Decision.SKIP)], ConflictStatus.MAJORITY, "a"),
        ([_rating(Decision.RIGHT), _rating(Decision.LEFT)], ConflictStatus.PERSON, "a"),
        ([_rating(Decision.RIGHT, score_left=0.4)], ConflictStatus.MAJORITY, "a"),
        ([_rating(Decision.RIGHT), _rating(Decision.LEFT, "bo")], ConflictStatus.DISPUTED, None),
        (
            [_rating(Decision.RIGHT), _rating(Decision.LEFT, "bo"), _rating(Decision.RIGHT, "cy")],
            ConflictStatus.PERSON,
            "b",
        ),
        ([_rating(Decision.RIGHT), _rating(Decision.SKIP, "bo")], ConflictStatus.PERSON, "b"),
    ],
)
def test_human_ratings_override_the_judges(
    ratings: list[Rating], expected_status: ConflictStatus, winner: str | None
) -> None:
    resolved_conflict = apply_ratings([CONFLICT], ratings)[0]
    assert (resolved_conflict.status, resolved_conflict.winner) == (expected_status, winner)


def test_counts_equal_those_of_the_review_queue(db: Database) -> None:
    audit = populate(db)
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
    report_counts = Counter(s.status for s in apply_ratings(conflicts, results.load_ratings(db, audit.id)))
    queue_counts = ConflictQueue(db, audit.id, "ada").count_by_status()
    assert {status: report_counts[status] for status in ConflictStatus} == queue_counts
    assert all(queue_counts.values())


def test_ratings_without_conflicts_resolve_nothing(population: tuple[Database, Audit]) -> None:
    assert apply_ratings([], results.load_ratings(population[0], population[1].id)) == []
