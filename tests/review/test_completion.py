from __future__ import annotations

from auditor.domain import Decision
from auditor.review.completion import CompletionNotifier
from auditor.storage.database import Database
from tests.review.test_session import desk_of
from tests.support.review_audit import review_case


def test_the_audit_is_told_when_nothing_is_open_and_at_the_end_but_never_twice(db: Database) -> None:
    review_case(db, conflicts=2)
    told: list[str] = []
    desk = desk_of(db)
    afterwards = CompletionNotifier(told.append)
    one, other = desk.conflict_keys()

    afterwards.notify_remaining([desk])
    desk.decide(desk.load_item(one), Decision.LEFT)
    afterwards.notify_if_complete(desk)
    desk.decide(desk.load_item(other), Decision.SKIP)
    afterwards.notify_if_complete(desk)
    assert told == []

    desk.decide(desk.load_item(other), Decision.LEFT)
    afterwards.notify_if_complete(desk)
    afterwards.notify_if_complete(desk)
    afterwards.notify_remaining([desk])
    assert told == ["moral"]

    desk.undo()
    afterwards.notify_if_complete(desk)
    assert told == ["moral"], "one is open again"
    afterwards.notify_remaining([desk])
    assert told == ["moral", "moral"]
    CompletionNotifier(None).notify_remaining([desk])
