"""Flipped verdicts in the queue for human review."""

from __future__ import annotations

import io

import pytest

from auditor.probes.logic.judges import send_to_review
from auditor.probes.logic.repair import list_flips, repair_comparisons
from auditor.run import open_audit
from auditor.storage import audits, evidence, results
from auditor.storage.conflict_status import ConflictKey, ConflictStatus
from auditor.storage.database import Database, open_database
from auditor.storage.review_queue import ConflictQueue
from auditor.tui.plain_text_app import run_plain_text_review
from tests.support.recorded_comparisons import NAMES


def test_exactly_the_flipped_go_to_people(db: Database) -> None:
    with db:
        repair_outcome = repair_comparisons(db, "judged")
        flips = list_flips(repair_outcome)
        pairs = {frozenset((f.first, f.second)) for f in flips}
        audit = audits.get_audit(db, "judged")
        for _ in range(2):  # sending twice is sending once
            assert send_to_review(db, "judged", flips) == len(pairs)
        conflicts = results.load_conflicts(db, audit.id)
        assert {c.cell.topic for c in conflicts} == {" / ".join(sorted(NAMES[i] for i in p)) for p in pairs}
        assert sum(ConflictQueue(db, audit.id, rater="ann").count_by_status().values()) == len(pairs)
        one = conflicts[0]
        left, right = evidence.load_sides(db, audit.id, ConflictKey(*one.cell, one.left, one.right))
        side_texts = [side[0].text for side in (left, right)]
        assert side_texts[0] != side_texts[1]
        assert all(text and text.startswith("Which of the two is better?") for text in side_texts)
        results.replace_conflicts(db, audit.id, [])  # a run that finds conflicts anew leaves these alone
        assert len(results.load_conflicts(db, audit.id)) == len(pairs)
        assert send_to_review(db, "judged", []) == 0
        assert results.load_conflicts(db, audit.id) == []


def test_the_report_lists_what_was_sent_and_a_person_can_settle_it(
    db: Database, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with db:
        n = send_to_review(db, "judged", list_flips(repair_comparisons(db, "judged")))
    part = open_audit("judged", storage=storage).report().conflicts
    assert (part.total, part.kinds[-1].kind, part.kinds[-1].total, part.pairs) == (n, "logic", n, [])
    printed = io.StringIO()
    run_plain_text_review(storage, "judged", rater="ann", stdin=io.StringIO("next\nleft\nquit\n"), stdout=printed)
    assert "Which of the two is better?" in printed.getvalue()
    with open_database(storage, create=False) as reopened:
        counts = ConflictQueue(reopened, audits.get_audit(reopened, "judged").id, rater="ann").count_by_status()
    assert (counts[ConflictStatus.PERSON], sum(counts.values())) == (1, n)
