from __future__ import annotations

from auditor.domain import Conflict, ConflictKind, Outcome
from auditor.review.session import ReviewSession
from auditor.storage import evidence, results
from auditor.storage.conflict_status import ConflictKey, QueueFilter
from auditor.storage.database import Database
from tests.support.synthetic_audit import populate


def test_a_conflict_between_methods_has_the_direct_samples_and_is_queued(db: Database) -> None:
    audit = populate(db)
    trace = next(t for t in results.load_traces(db, audit.id) if t.outcome is Outcome.OK)
    conflict = Conflict(
        trace.cell, f"{trace.model} (direct)", f"{trace.model} (logprob)", 0.9, -0.9, ConflictKind.METHODS
    )
    results.replace_conflicts(db, audit.id, [*results.load_voted_conflicts(db, audit.id), conflict])
    key = ConflictKey(*trace.cell, conflict.left, conflict.right)
    direct_samples, logprob_samples = evidence.load_sides(db, audit.id, key)
    assert trace.text in {s.text for s in direct_samples}
    assert logprob_samples == ()
    assert results.load_unvoted_conflicts(db, audit.id) == [conflict]
    assert conflict not in results.load_voted_conflicts(db, audit.id)
    session = ReviewSession(db, audit, "ada")
    assert session.conflict_keys(QueueFilter(kinds=(ConflictKind.METHODS,))) == [key]
    assert trace.model not in str(
        [s.text for s in (*session.load_item(key).left.samples, *session.load_item(key).right.samples)]
    )
