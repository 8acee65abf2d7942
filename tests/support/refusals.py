"""The time of calls that are refused by status 429 ends after a number of refusals instead of some seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from auditor.config import LimitsSection
from auditor.domain import Outcome
from auditor.models.failures import RequestFailure
from auditor.models.retries import CallProgress, no_retry_reason


@contextmanager
def end_repeated_refusals(n_refusals: int) -> Iterator[None]:
    """End each call's time after so many refusals, which are repeated until then.

    A deadline in seconds would allow fewer requests on a busy machine.
    """

    def reason(
        failure: RequestFailure, wait_s: float, progress: CallProgress, limits: LimitsSection, deadline_s: float
    ) -> str | None:
        if failure.outcome is Outcome.RATE_LIMITED and len(progress.attempts) >= n_refusals:
            progress.deadline = time.monotonic()
        return no_retry_reason(failure, wait_s, progress, limits, deadline_s)

    with mock.patch("auditor.models.gateway.no_retry_reason", reason):
        yield


UNUSABLE_TEXTS = {
    "I'm sorry, but I can't help with that.": Outcome.REFUSED,
    "<think>0.3, perhaps</think>I'm sorry, but I cannot answer this.": Outcome.REFUSED,
    "\u200b": Outcome.UNPARSED,
    "{}": Outcome.UNPARSED,
    "<think>0.3, perhaps</think>": Outcome.UNPARSED,
}
"""Outcomes of answers without a score, to which programs that score answers give one nevertheless."""
