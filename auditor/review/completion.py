"""What follows from decisions: an audit that waits for people is told when they are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from auditor.review.session import ReviewSession

OnDecided = Callable[[str], None]
"""Called with the name of an audit whose conflicts people decided; it may take its time, and raise AuditorError."""


class CompletionNotifier:
    """Calls back once nothing of an audit is open any more, and when the reviewer leaves; never twice for the same."""

    def __init__(self, on_decided: OnDecided | None) -> None:
        self._on_decided = on_decided
        self._notified_changes: dict[str, int] = {}

    def notify_if_complete(self, session: ReviewSession) -> None:
        """To be called after a decision: calls back if it has left nothing open."""
        if self._has_new_decisions(session) and not session.has_open_conflicts():
            self._notify(session)

    def notify_remaining(self, sessions: Iterable[ReviewSession]) -> None:
        """To be called at the end: calls back for each audit in which something was decided since."""
        for session in sessions:
            if self._has_new_decisions(session):
                self._notify(session)

    def _has_new_decisions(self, session: ReviewSession) -> bool:
        return self._on_decided is not None and session.n_changes > self._notified_changes.get(session.audit.name, 0)

    def _notify(self, session: ReviewSession) -> None:
        self._notified_changes[session.audit.name] = session.n_changes
        if self._on_decided is not None:
            self._on_decided(session.audit.name)
