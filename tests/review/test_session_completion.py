from __future__ import annotations

from auditor.domain import Decision
from auditor.review.session import CompletionNotifier
from auditor.storage.database import Database
from tests.review.test_session import open_session
from tests.support.review_audit import save_review_audit


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
