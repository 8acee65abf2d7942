"""Notices of failed calls: the first of each kind by model, then its number at 10, 100, 1,000 and so on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from auditor.domain import Answer, Call
from auditor.error_messages import how_to_fix, normalize_message


class FailureNotices:
    """Counts failed calls by model, HTTP status and normalized message, and tells the user of each kind once."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        """Begin without failures; `notify` is called with a sentence for the user."""
        self._notify = notify
        self._counts = Counter[tuple[str, int | None, str]]()

    def record(self, call: Call, answer: Answer) -> None:
        """Count a call that ended without an answer; other calls are not counted."""
        if answer.outcome.is_answer:
            return
        status = next((attempt.http_status for attempt in reversed(answer.attempts)), None)
        kind = (call.name, status, normalize_message(answer.error))
        self._counts[kind] += 1
        n_failures = self._counts[kind]
        if n_failures == 1:
            fix = how_to_fix(status, answer.error)
            self._notify(f"{describe_failure(call, answer, status)}{f' How to fix: {fix}' if fix else ''}")
        elif str(n_failures).strip("0") == "1":
            self._notify(f"{n_failures:,} calls so far: {describe_failure(call, answer, status)}")


def describe_failure(call: Call, answer: Answer, status: int | None) -> str:
    """A sentence with the model, the purpose, the HTTP status and the message of a failed call."""
    status_text = f"HTTP {status}" if status else answer.outcome.value.replace("_", " ")
    message = answer.error or "no message"
    return f"'{call.name}' failed ({call.purpose}, {status_text}): {message}{'' if message[-1] in '.!?…' else '.'}"
