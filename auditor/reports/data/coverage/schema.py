"""Schema of the coverage section."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import Method
from auditor.reports.data.report_model import ReportModel


class CoverageRow(ReportModel):
    """Planned and recorded items of one group. Planned = ok + all losses + missing."""

    stage: Annotated[str, Field(json_schema_extra={"examples": ["direct", "review", *list_built_in_names()]})]
    """`direct`: samples of scores, or comparisons of log-probabilities. `review`: verdicts. `semantic`: answers to
    questions, rules of thumb, and judgements of pairs. `logic`: comparisons of items. Any other: the answers of the
    probe of this name, from another package."""
    method: str | None
    """Method of scores; `answers`, `rules` or `judgements` (of pairs) for the probe `semantic`; null for verdicts and
    comparisons of items."""
    name: str | None
    """The model, country, topic or judge; null for the total."""
    planned: int
    ok: int
    losses: dict[str, int]
    """Lost items by outcome; only outcomes that occurred. Items that were asked for again count by their first
    outcome."""
    missing: int
    """Items neither ok nor lost for a recorded cause: not asked yet, or absent from an import."""
    asked_again: int = 0
    """Lost items that were asked for again, once each (`auditor run --ask-again`)."""
    answered_again: int = 0
    """Those of them with a usable second answer. Figures use it, although the item counts as lost here."""

    @property
    def counted_label(self) -> str:
        """Name of the counted items, in the plural."""
        if self.stage == "direct":
            return f"{self.method} comparisons" if self.method == Method.LOGPROB else "answers"
        if self.stage == "review":
            return "verdicts"
        if self.stage in list_built_in_names():
            return load_built_in(self.stage).counted_labels[self.method]
        return f"{self.stage} answers"


class FinishReasonRow(ReportModel):
    """Answers of one model with one undocumented finish reason."""

    name: str
    reason: str
    """Finish reason as the provider wrote it."""
    answers: int


class ExclusionRow(ReportModel):
    """Answers that a person declared invalid. They are in no figure, and count as lost."""

    id: int
    model: str | None
    """Null for all models; the same holds for the next three, and for the probe."""
    country: str | None
    topic: str | None
    sample: int | None
    reason: str
    excluded_at: str
    answers: int
    """Recorded answers that are excluded."""
    probe: str | None = None
    """`direct` for direct answers."""


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
    exclusions: list[ExclusionRow] = Field(default_factory=list)
    """Declarations in force, the oldest first."""
    shortened_traces: dict[str, int]
    """Traces longer than `probes.review.max_trace_chars`, by model; judges saw their beginning and end. Only models
    with such traces are listed."""
    addressing_traces: dict[str, int] = Field(default_factory=dict)
    """Usable traces that address their judge, by model, in audits with verdicts. Only models with such traces are
    listed."""
