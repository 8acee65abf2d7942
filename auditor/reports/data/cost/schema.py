"""Schema of the cost section."""

from __future__ import annotations

from typing import Annotated

from auditor.reports.data.report_model import ReportModel
from auditor.reports.document import Column


class CostRow(ReportModel):
    """Calls, tokens and cost of one model for one purpose."""

    name: Annotated[str | None, Column("Model", "name")]
    """Null in the total."""
    purpose: Annotated[str | None, Column("Purpose")]
    calls: Annotated[int, Column("Calls")]
    attempts: Annotated[int, Column("Requests")]
    """Requests that went out, retries included."""
    answers: Annotated[int, Column("Answers")]
    prompt_tokens: Annotated[int, Column("Prompt tokens")]
    cached_tokens: Annotated[int | None, Column("From cache", "share", "from_cache")]
    """Prompt tokens served from the provider's cache; null where no answer reports them."""
    untold_tokens: int
    """Answers without token counts."""
    completion_tokens: Annotated[int, Column("Completion tokens")]
    told_tokens: int
    """Prompt tokens of the answers that report cached tokens: the denominator of the cache hit rate."""
    reasoning_tokens: Annotated[int | None, Column("Of these, reasoning", is_optional=True)] = None
    """Completion tokens that were hidden reasoning, of the answers that report it; null where none does."""
    usd: Annotated[float | None, Column("Cost", style="usd", emphasis=True)]
    """Cost of all requests, retries included; null when none has a known price."""
    lower_bound: bool
    """Whether some cost is unknown, or token counts contradict each other, so that `usd` is a lower bound."""
    excess_cached_tokens: bool = False
    """Whether answers report more cached tokens than prompt tokens: the prompt tokens then leave some out."""
    estimated_usd: float = 0.0
    """Part of `usd` that is estimated, where token counts are unusable: characters / 4, and `max_tokens`."""
    estimated_requests: int = 0
    """Requests whose cost is an estimate."""
    unpriced: Annotated[int, Column("Without price")]
    """Answered calls with an unknown price."""
    reasoning_usd: Annotated[float | None, Column("Of the cost, reasoning", style="usd", is_optional=True)] = None
    """Part of `usd` that these cost, by the price of completion tokens; null where a price is unknown."""


class CostReport(ReportModel):
    """Cost of all requests of the audit, including reused answers that were asked for earlier.

    A call that two models share is counted for each.
    """

    total: CostRow
    rows: list[CostRow]
    lost: int
    """Calls without an answer, in flight when a run was interrupted, or now: they may have been charged."""
    lost_usd: float | None
    """Upper bound of their cost, from the dearest answer of each model and purpose; null where unknown."""
