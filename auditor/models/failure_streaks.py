"""Failures of many calls: notices of each kind, and when a model is stopped for one purpose."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable

from auditor.domain import Answer, Call, Outcome, Purpose
from auditor.error_messages import CONTEXT_LENGTH, TOO_LARGE, how_to_fix, normalize_message
from auditor.errors import pluralize


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
            self._notify(f"{pluralize(n_failures, 'call')} so far: {describe_failure(call, answer, status)}")


def describe_failure(call: Call, answer: Answer, status: int | None) -> str:
    """A sentence with the model, the purpose, the HTTP status and the message of a failed call."""
    status_text = f"HTTP {status}" if status else answer.outcome.value.replace("_", " ")
    message = answer.error or "no message"
    return f"'{call.name}' failed ({call.purpose}, {status_text}): {message}{'' if message[-1] in '.!?…' else '.'}"


MAX_EQUAL_FAILURES = 5
"""Consecutive failed calls with the same status and normalized message, after which no further call is sent."""
MAX_UNPROVEN_CALLS = 16
"""Calls that may be in flight before the first answer, and again while equal failures are counted.

With `MAX_EQUAL_FAILURES` - 1 that follow, 20 are sent to a model that never answers.
"""
UNCOUNTED_OUTCOMES = frozenset({Outcome.REFUSED, Outcome.RATE_LIMITED, Outcome.OVER_BUDGET})
"""Outcomes that concern one prompt, or that waiting or money resolves; they neither extend nor end a streak."""
_TOO_LONG_PATTERN = re.compile(f"{CONTEXT_LENGTH}|{TOO_LARGE}", re.IGNORECASE)


class FailureStreak:
    """The consecutive equal failures of one model's calls for one purpose, and how many calls may be in flight."""

    def __init__(self, model_name: str, purpose: Purpose) -> None:
        """Begin without failures; call it inside the event loop."""
        self._model_name, self._purpose = model_name, purpose
        self._last_cause: tuple[int | None, str] | None = None
        self._n_equal = 0
        self._error: str | None = None
        self._is_proven = False
        self._n_in_flight = 0
        self._changed = asyncio.Event()

    async def begin_call(self) -> None:
        """Wait, until the first answer and after a failure, while `MAX_UNPROVEN_CALLS` calls are in flight."""
        while not self._has_free_slot():
            self._changed.clear()
            await self._changed.wait()
        self._n_in_flight += 1

    def end_call(self) -> None:
        """Let another call begin, after `begin_call`, however the call ended."""
        self._n_in_flight -= 1
        self._changed.set()

    def _has_free_slot(self) -> bool:
        """Whether another call may begin; calls of a stopped model return at once."""
        is_open = self._is_proven and not self._n_equal
        return is_open or self.is_stopped or self._n_in_flight < MAX_UNPROVEN_CALLS

    def record(self, answer: Answer) -> None:
        """Record how a call ended; a success ends the streak."""
        if answer.outcome.is_answer:
            self._is_proven = True
        if self.is_stopped or answer.outcome in UNCOUNTED_OUTCOMES or _is_too_long(answer):
            return
        if answer.outcome.is_answer:
            self._last_cause, self._n_equal = None, 0
            self._changed.set()
            return
        status = answer.attempts[-1].http_status if answer.attempts else None
        cause = (status, normalize_message(answer.error))
        self._n_equal = self._n_equal + 1 if cause == self._last_cause else 1
        self._last_cause = cause
        if self.is_stopped:
            self._error = answer.error

    @property
    def is_stopped(self) -> bool:
        """Whether no further call is sent."""
        return self._n_equal >= MAX_EQUAL_FAILURES

    @property
    def reason(self) -> str:
        """Why the model was stopped, for a message."""
        return f"{MAX_EQUAL_FAILURES} consecutive calls failed with the same error: {self._error or 'no message'}"

    @property
    def notice(self) -> str:
        """What the user is told when the model is stopped."""
        return (
            f"'{self._model_name}' gets no more calls for '{self._purpose}' in this run: {self.reason}"
            f"{'' if self.reason.endswith('.') else '.'} Other models and purposes continue."
        )

    def stopped_answer(self, call: Call) -> Answer | None:
        """The answer to a call that is not sent because the model was stopped; None if it may be sent."""
        if not self.is_stopped:
            return None
        return Answer(call.key, Outcome.CLIENT_ERROR, error=f"the call was not sent: {self.reason}")


class ModelFailures:
    """The failures of one model's calls during a run: notices of each kind, and streaks by purpose."""

    def __init__(self, model_name: str, notify: Callable[[str], None]) -> None:
        """Begin without failures; `notify` is called with a sentence for the user."""
        self._model_name, self._notify = model_name, notify
        self._notices = FailureNotices(notify)
        self._streaks: dict[Purpose, FailureStreak] = {}

    def streak(self, purpose: Purpose) -> FailureStreak:
        """The consecutive equal failures of the calls for a purpose."""
        if purpose not in self._streaks:
            self._streaks[purpose] = FailureStreak(self._model_name, purpose)
        return self._streaks[purpose]

    def record(self, call: Call, answer: Answer) -> None:
        """Record how a call ended, and tell the user of a failure of a new kind and of a model that is stopped."""
        streak = self.streak(call.purpose)
        if streak.is_stopped:
            return
        self._notices.record(call, answer)
        streak.record(answer)
        if streak.is_stopped:
            self._notify(streak.notice)


def _is_too_long(answer: Answer) -> bool:
    """Whether a call failed because its text is too long for the model, account or server; shorter texts are not."""
    if answer.outcome.is_answer:
        return False
    is_status_413 = bool(answer.attempts) and answer.attempts[-1].http_status == 413
    return is_status_413 or bool(_TOO_LONG_PATTERN.search(answer.error or ""))
