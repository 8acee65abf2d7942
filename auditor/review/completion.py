"""Notify an audit that waits for reviewers when its conflicts have been decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from auditor.review.session import ReviewSession

OnDecided = Callable[[str], None]
"""Called with the name of an audit whose conflicts were decided; it may be slow, and may raise AuditorError."""


class CompletionNotifier:
    """Calls `on_decided` when no conflict of an audit is open, and when the reviewer leaves; never twice per change."""

    def __init__(self, on_decided: OnDecided | None) -> None:
        self._on_decided = on_decided
        self._notified_changes: dict[str, int] = {}

    def notify_if_complete(self, session: ReviewSession) -> None:
        """Call `on_decided` if there are new decisions and no conflict is open; to be called after each decision."""
        if self._has_new_decisions(session) and not session.has_open_conflicts():
            self._notify(session)

    def notify_remaining(self, sessions: Iterable[ReviewSession]) -> None:
        """Call `on_decided` for each audit with decisions that were not reported yet; to be called at the end."""
        for session in sessions:
            if self._has_new_decisions(session):
                self._notify(session)

    def _has_new_decisions(self, session: ReviewSession) -> bool:
        """Whether there is a callback, and the session has changes since its last call."""
        return self._on_decided is not None and session.n_changes > self._notified_changes.get(session.audit.name, 0)

    def _notify(self, session: ReviewSession) -> None:
        """Call `on_decided` with the audit's name, and note the number of changes that it covers."""
        self._notified_changes[session.audit.name] = session.n_changes
        if self._on_decided is not None:
            self._on_decided(session.audit.name)
