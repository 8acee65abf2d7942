"""What follows from decisions: an audit that waits for people is told when they are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from auditor.review.session import Desk

OnDecided = Callable[[str], None]
"""Called with the name of an audit whose conflicts people decided; it may take its time, and raise AuditorError."""


class Afterwards:
    """Calls back once nothing of an audit is open any more, and when the reviewer leaves; never twice for the same."""

    def __init__(self, on_decided: OnDecided | None) -> None:
        self._on_decided = on_decided
        self._told: dict[str, int] = {}

    def decided(self, desk: Desk) -> None:
        """To be called after a decision: calls back if it has left nothing open."""
        if self._has_news(desk) and not desk.is_anything_open():
            self._tell(desk)

    def leave(self, desks: Iterable[Desk]) -> None:
        """To be called at the end: calls back for each audit in which something was decided since."""
        for desk in desks:
            if self._has_news(desk):
                self._tell(desk)

    def _has_news(self, desk: Desk) -> bool:
        return self._on_decided is not None and desk.changes > self._told.get(desk.audit.name, 0)

    def _tell(self, desk: Desk) -> None:
        self._told[desk.audit.name] = desk.changes
        if self._on_decided is not None:
            self._on_decided(desk.audit.name)
