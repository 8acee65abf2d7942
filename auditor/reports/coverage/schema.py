"""Coverage as data: of all that was planned, how much is there."""

from __future__ import annotations

from typing import Literal

from auditor.domain import Method
from auditor.reports.measurement_schema import ReportModel


class CoverageRow(ReportModel):
    """How much of what was planned is there. Planned = ok + all losses + missing."""

    stage: Literal["direct", "review", "semantic", "logic"]
    """`direct`: samples of scores, or comparisons of log-probabilities. `review`: verdicts. `semantic`: answers to
    moral questions, and rules of thumb. `logic`: comparisons of items."""
    method: str | None
    """How scores were measured; `answers` or `rules` of moral questions; null for verdicts and comparisons of items."""
    name: str | None
    """The model, country, topic or judge; null for the whole."""
    planned: int
    ok: int
    losses: dict[str, int]
    """By outcome; only those that happened."""
    missing: int
    """Neither ok nor lost for a recorded cause: not asked yet, or imported without."""

    @property
    def counted_label(self) -> str:
        """What is counted, in words."""
        if self.stage == "direct":
            return f"{self.method} {'comparisons' if self.method == Method.LOGPROB else 'samples'}"
        named = {"review": "verdicts", "logic": "comparisons of items"}
        return named.get(self.stage) or {"answers": "moral answers"}.get(self.method or "", "rules of thumb")


class FinishReasonRow(ReportModel):
    """Answers of one model with a finish reason that is not documented."""

    name: str
    reason: str
    """As the provider wrote it."""
    answers: int


class CoverageReport(ReportModel):
    """How much of what was planned is there, seen from all sides."""

    total: list[CoverageRow]
    models: list[CoverageRow]
    """For verdicts: the model whose traces were judged."""
    countries: list[CoverageRow]
    """Moral questions and comparisons of items are about no country and no topic, so they are not here."""
    topics: list[CoverageRow]
    judges: list[CoverageRow]
    undocumented_finish_reasons: list[FinishReasonRow]
    """Finish reasons that are not documented. Such an answer is usable only where it could be read in full."""
    shortened_traces: dict[str, int]
    """Traces longer than `probes.review.max_trace_chars`, of which judges saw the beginning and the end, by model; only
    models that have any."""
