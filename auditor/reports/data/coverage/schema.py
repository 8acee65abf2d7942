"""Schema of the coverage section."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from auditor.config.probes import SECTION_BY_PROBE
from auditor.domain import Method
from auditor.reports.data.report_model import ReportModel


class CoverageRow(ReportModel):
    """Planned and recorded items of one group. Planned = ok + all losses + missing."""

    stage: Annotated[str, Field(json_schema_extra={"enum": ["direct", "review", *SECTION_BY_PROBE]})]
    """`direct`: samples of scores, or comparisons of log-probabilities. `review`: verdicts. `semantic`: answers to
    questions, rules of thumb, and judgements of pairs. `logic`: comparisons of items."""
    method: str | None
    """Method of scores; `answers`, `rules` or `judgements` (of pairs) for the probe `semantic`; null for verdicts and
    comparisons of items."""
    name: str | None
    """The model, country, topic or judge; null for the total."""
    planned: int
    ok: int
    losses: dict[str, int]
    """Lost items by outcome; only outcomes that occurred."""
    missing: int
    """Items neither ok nor lost for a recorded cause: not asked yet, or absent from an import."""

    @property
    def counted_label(self) -> str:
        """Name of the counted items, in the plural."""
        if self.stage == "direct":
            return f"{self.method} {'comparisons' if self.method == Method.LOGPROB else 'samples'}"
        return "verdicts" if self.stage == "review" else SECTION_BY_PROBE[self.stage].parts.counted_labels[self.method]


class FinishReasonRow(ReportModel):
    """Answers of one model with one undocumented finish reason."""

    name: str
    reason: str
    """Finish reason as the provider wrote it."""
    answers: int


class CoverageReport(ReportModel):
    """Coverage in total, and by model, country, topic and judge."""

    total: list[CoverageRow]
    models: list[CoverageRow]
    """Coverage by model; for verdicts, the model whose traces were judged."""
    countries: list[CoverageRow]
    """Moral questions and comparisons of items belong to no country or topic, so they are left out here."""
    topics: list[CoverageRow]
    judges: list[CoverageRow]
    undocumented_finish_reasons: list[FinishReasonRow]
    """Finish reasons that are not documented. Such an answer is usable only where it could be read in full."""
    unplanned_cells: int = 0
    """Cells of the configured countries and topics that are not asked about, because of `limits.max_cells`. They are
    not planned, so they are not missing."""
    shortened_traces: dict[str, int]
    """Traces longer than `probes.review.max_trace_chars`, by model; judges saw their beginning and end. Only models
    with such traces are listed."""
