"""Tell the user of a model none of whose answers can be read, and of parts of answers that are ignored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from auditor.domain import Answer, Call, Outcome
from auditor.models.structured import find_schema
from auditor.models.structured_reading import read_structured_answer

MAX_UNREAD_ANSWERS = 20
"""Consecutive answers of a model without a score, after which the user is told."""
UNREAD_OUTCOMES = frozenset({Outcome.UNPARSED, Outcome.TRUNCATED, Outcome.REFUSED})
"""Answers without a score. Failed requests have notices of their own."""
MAX_SHOWN_KEYS = 5
MAX_KEY_CHARS = 40


@dataclass
class UnreadAnswers:
    """Counts each model's consecutive answers without a score, and tells the user once."""

    notify: Callable[[str], None]
    asks_for_text: bool = True
    """Whether direct questions ask for free text, so that another form may help."""
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
                "probes.direct.max_tokens; if they have another form, use mode = "
                f'"{"structured" if self.asks_for_text else "text"}".'
            )


@dataclass
class IgnoredKeys:
    """Counts keys of structured answers that their schema lacks, which are ignored."""

    _n_answers: Counter[str] = field(default_factory=Counter)
    _counts: dict[str, Counter[str]] = field(default_factory=dict)

    def record(self, call: Call, answer: Answer) -> None:
        """Count the ignored keys of an answer by its model."""
        if call.schema is None or answer.outcome is not Outcome.OK or answer.text is None:
            return
        schema = find_schema(call.schema)
        keys = read_structured_answer(schema, answer.text, call.request_text, explains=False).ignored_keys
        if keys:
            self._n_answers[call.name] += 1
            self._counts.setdefault(call.name, Counter()).update(key[:MAX_KEY_CHARS] for key in keys)

    def notices(self) -> Iterator[str]:
        """Yield a notice for each model with ignored keys."""
        for model, counts in self._counts.items():
            keys = ", ".join(f"{key!r} ({count})" for key, count in counts.most_common(MAX_SHOWN_KEYS))
            others = f" and {len(counts) - MAX_SHOWN_KEYS} more" if len(counts) > MAX_SHOWN_KEYS else ""
            yield (
                f"{self._n_answers[model]} answers of '{model}' have keys that were not asked for, which are ignored: "
                f"{keys}{others}."
            )
