"""Answers of models with their prompts, verdicts and costs: the JSON of `auditor traces`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from pydantic import PrivateAttr

from auditor.domain import Cell, SentencePairScore, TaskItem
from auditor.reports.data.report_model import ReportModel


class PromptMessage(ReportModel):
    """One message of a prompt."""

    role: str
    content: str


class TraceVerdict(ReportModel):
    """One judge's verdict on an answer."""

    judge: str
    """The judge's name. While conflicts are open it is `judge 1`, `judge 2`, …, numbered anew for each answer in an
    order that does not depend on the judge."""
    outcome: str
    """`ok`, or why there is no verdict: a value of `auditor.domain.Outcome`."""
    valid: bool | None
    """Whether the judge votes VALID; null without a verdict."""
    aspects: dict[str, bool]
    """Whether each aspect is met; an aspect that the judge did not rate is left out."""
    confidence: float | None
    """The judge's stated confidence, in [0, 1]; null if it states none."""
    justification: str | None
    """The judge's words; names of models are replaced while conflicts are open."""
    shortened: bool
    """Whether the justification was cut because it was too long."""


class TraceReport(ReportModel):
    """One answer of one model: what it was asked, what it answered, what it cost, and the judges' verdicts on it."""

    model: str
    country: str
    """Empty in an audit of a task."""
    topic: str
    """The topic; in an audit of a task, the item's id."""
    sample: int
    """Number of the answer on its cell, from 0."""
    language: str
    """ISO 639-1 code of the question's language."""
    outcome: str
    """`ok`, or why there is no score: a value of `auditor.domain.Outcome`."""
    score: float | None
    """The answer's score, in [-1, 1]; null unless the outcome is `ok` and the question is scored."""
    answer: str | None
    """The answer to an item of a task in its canonical form."""
    survey: float | None
    """People's score of the cell, in [-1, 1]."""
    correct_answer: str | None
    """The correct answer to an item of a task."""
    prompt: list[PromptMessage]
    """What the model was asked; empty if that is not recorded."""
    text: str | None
    """What the model answered; null if it did not answer or the text is not recorded."""
    first_text: str | None
    """The model's first answer, if it could not be read and the question was repeated; else null."""
    addresses_judge: bool = False
    """Whether the answer addresses its judge, by the rule of docs/traces.md."""
    verdicts: list[TraceVerdict]
    cost_usd: float | None
    """Cost of the answer's requests in US dollars, without its verdicts; null if unknown."""
    prompt_tokens: int | None
    completion_tokens: int | None
    """Tokens of the answer; sums if the question was repeated, null if unknown."""
    requests: int
    """Number of requests sent; 0 if they are not recorded."""
    seconds: float | None
    """Total duration of the requests; null if they are not recorded."""
    started_at: str | None
    """Start of the first request, ISO 8601 in UTC."""
    finish_reason: str | None
    """Why the model stopped, in its provider's words."""
    served_model: str | None
    """The model version that the provider reported."""
    error: str | None
    """Error message of the last request that failed."""
    key: str | None
    """Key of the first call among the recorded answers; null if the answer was imported."""


@dataclass(frozen=True, slots=True)
class SentencePairTrace:
    """A sentence pair behind a log-probability score, and what the model was sent for it; empty if not recorded."""

    score: SentencePairScore
    prompt: str


@dataclass(frozen=True, slots=True)
class CellTraces:
    """The answers on one cell.

    Attributes:
        survey: people's score, in [-1, 1]; None if people were not asked.
        item: the item of a task; None in an audit of a survey.
        traces: by model, in the order of the audit, and sample.
        scores: the models' scores by direct questions, by model; a model without a usable answer has None.
        sentence_pairs: the sentence pairs behind the log-probability scores of these models, by model and number.
    """

    cell: Cell
    survey: float | None
    item: TaskItem | None
    traces: Sequence[TraceReport]
    scores: dict[str, float | None]
    sentence_pairs: Sequence[SentencePairTrace] = ()


@dataclass(frozen=True, slots=True)
class TracePages:
    """The pages with the answers behind a report, as URLs relative to the report.

    Attributes:
        index: the page that lists the others; empty if there are no pages.
        by_cell: the page of each cell that has one.
    """

    index: str = ""
    by_cell: Mapping[Cell, str] = field(default_factory=dict)

    def find(self, country: str, topic: str) -> str:
        """The page of a cell; empty if it has none."""
        return self.by_cell.get(Cell(country, topic), "")


class LinkedReport(ReportModel):
    """A report that may have pages with the answers behind it; they are not part of its data."""

    _trace_pages: TracePages = PrivateAttr(default_factory=TracePages)

    @property
    def trace_pages(self) -> TracePages:
        """The pages with the answers behind the report; empty unless they were written."""
        return self._trace_pages

    def with_trace_pages(self, pages: TracePages) -> Self:
        """A copy whose cells link to pages with their answers."""
        report = self.model_copy()
        report._trace_pages = pages
        return report
