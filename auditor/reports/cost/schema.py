"""Cost as data: what the requests of an audit cost."""

from __future__ import annotations

from auditor.reports.measurement_schema import ReportModel


class CostRow(ReportModel):
    """What one model cost for one purpose."""

    name: str | None
    """Null in the total."""
    purpose: str | None
    calls: int
    attempts: int
    """Requests that went out, retries included."""
    answers: int
    prompt_tokens: int
    completion_tokens: int
    untold_tokens: int
    """Answers that did not say their tokens."""
    cached_tokens: int | None
    """Of the tokens in, those that the provider had kept of earlier prompts; null where none says."""
    told_tokens: int
    """Tokens in of the answers that say how many of them it had kept: the share of these is the hit rate."""
    usd: float | None
    """Of all requests, retries included. Null when none has a known price."""
    unpriced: int
    """Calls that were answered and whose price is unknown."""
    lower_bound: bool
    """Whether some of the cost is unknown, so that it was at least this."""
    estimated_usd: float = 0.0
    """The part of `usd` that is an estimate, where token counts are unusable: characters / 4, and `max_tokens`."""
    estimated_requests: int = 0
    """Requests whose cost is an estimate."""


class CostReport(ReportModel):
    """What all requests of the audit cost, and the answers it rests on, whenever they were asked.

    A call that two models share is counted for each.
    """

    total: CostRow
    rows: list[CostRow]
    lost: int
    """Calls out or about to go when a run was cut short, or now: charged for perhaps, and without an answer."""
    lost_usd: float | None
    """At most, going by the dearest answer of each model and purpose; null where that is unknown."""
