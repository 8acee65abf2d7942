"""Tell the user of a model none of whose answers can be read, while there is still time to stop the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from auditor.domain import Outcome

MAX_UNREAD_ANSWERS = 20
"""Consecutive answers of a model without a score, after which the user is told."""
UNREAD_OUTCOMES = frozenset({Outcome.UNPARSED, Outcome.TRUNCATED, Outcome.REFUSED})
"""Answers without a score. Failed requests have notices of their own."""


@dataclass
class UnreadAnswers:
    """Counts each model's consecutive answers without a score, and tells the user once."""

    notify: Callable[[str], None]
    _streaks: dict[str, Counter[Outcome]] = field(default_factory=dict)

    def record(self, model: str, outcome: Outcome) -> None:
        """Record how an answer was read; one with a score ends the streak."""
        streak = self._streaks.setdefault(model, Counter())
        if outcome is Outcome.OK and streak.total() < MAX_UNREAD_ANSWERS:
            streak.clear()
        if outcome not in UNREAD_OUTCOMES:
            return
        streak[outcome] += 1
        if streak.total() == MAX_UNREAD_ANSWERS:
            causes = ", ".join(f"{count} {cause.value}" for cause, count in streak.most_common())
            self.notify(
                f"None of the last {MAX_UNREAD_ANSWERS} answers of '{model}' has a score ({causes}). The run goes on. "
                "How to fix: Stop the run, and read some answers with `auditor traces`. If they are cut off, raise "
                'probes.direct.max_tokens; if they have another form, use mode = "structured".'
            )
