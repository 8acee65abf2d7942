"""Conflict keys hide their models when printed, and are sorted by the effect of a decision."""

from __future__ import annotations

import pytest

from auditor.domain import Cell, Conflict, ConflictKind, ConflictState, Decision
from auditor.storage import results, review_queue
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictEffect, ConflictKey, QueueFilter, QueueSort
from auditor.storage.database import Database
from tests.support.review_audit import save_review_audit
from tests.support.stored_rows import decide

BY_EFFECT = QueueFilter(sort=QueueSort.EFFECT, todo=True)


def test_the_repr_of_a_key_hides_the_authors() -> None:
    assert "alder" not in f"{ConflictKey('Egypt', 'divorce', 'alder', 'birch')!r}"


def conflict(topic: str, left: str, right: str, winner: str | None = None, gap: float = 0.5) -> Conflict:
    state, kind = ConflictState.OPEN if winner is None else ConflictState.MAJORITY, ConflictKind.BINARY
    return Conflict(Cell("Egypt", topic), left, right, gap / 2, -gap / 2, kind, state, 2, 0, 0, winner=winner)


@pytest.fixture
def audit(db: Database) -> Audit:
    """Alder and birch are level; alder leads cedar by 2 with two open; birch leads cedar by 3 with one open."""
    audit = save_review_audit(db)
    conflicts = [
        conflict("t1", "alder", "birch", "alder"), conflict("t2", "alder", "birch", "birch"),
        conflict("t3", "alder", "birch", gap=0.4), conflict("t4", "alder", "birch", gap=0.6),
        conflict("t1", "alder", "cedar", "alder"), conflict("t2", "alder", "cedar", "alder"),
        conflict("t3", "alder", "cedar", gap=1.0), conflict("t4", "alder", "cedar", gap=0.9),
        *(conflict(f"t{i}", "birch", "cedar", "birch") for i in (1, 2, 3)),
        conflict("t4", "birch", "cedar", gap=1.9),
    ]  # fmt: skip
    results.replace_conflicts(db, audit.id, conflicts)
    return audit


def ordered(db: Database, audit: Audit) -> list[tuple[str, str, str]]:
    queue = review_queue.ConflictQueue(db, audit.id, "ada")
    return [(key.left, key.right, key.topic) for key, _ in queue.keys(BY_EFFECT)]


def effect(db: Database, audit: Audit, left: str, right: str) -> ConflictEffect:
    return review_queue.ConflictQueue(db, audit.id, "ada").load_effect(ConflictKey("Egypt", "t4", left, right))


def test_level_pairs_come_first_and_settled_questions_last(db: Database, audit: Audit) -> None:
    assert ordered(db, audit) == [
        ("alder", "birch", "t4"), ("alder", "birch", "t3"), ("alder", "cedar", "t3"), ("alder", "cedar", "t4"),
        ("birch", "cedar", "t4"),
    ]  # fmt: skip
    assert effect(db, audit, "alder", "birch") is ConflictEffect.HIGH
    assert effect(db, audit, "alder", "cedar") is ConflictEffect.SOME
    assert effect(db, audit, "birch", "cedar") is ConflictEffect.NONE


def test_peoples_decisions_count_and_override_the_judges(db: Database, audit: Audit) -> None:
    for topic in ("t1", "t2"):
        key = ConflictKey("Egypt", topic, "alder", "cedar")
        decide(db, audit, key, Decision.BOTH)
    assert effect(db, audit, "alder", "cedar") is ConflictEffect.HIGH
    assert ordered(db, audit)[0] == ("alder", "cedar", "t3")


def test_a_decision_moves_its_pair_back(db: Database, audit: Audit) -> None:
    key = ConflictKey("Egypt", "t4", "alder", "birch")
    decide(db, audit, key, Decision.LEFT)
    assert ordered(db, audit) == [
        ("alder", "birch", "t3"), ("alder", "cedar", "t3"), ("alder", "cedar", "t4"), ("birch", "cedar", "t4"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lead", "n_unsettled", "level"), [(0, 0, "high"), (1, 1, "high"), (1, 0, "none"), (2, 2, "some"), (3, 2, "none")]
)
def test_levels(lead: int, n_unsettled: int, level: str) -> None:
    assert ConflictEffect.from_counts(lead, n_unsettled) == level
