"""Answers of models with their prompts, verdicts and costs: the JSON of `auditor traces`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import PrivateAttr

from auditor.domain import Cell, SentencePairScore, TaskItem, Trace, Verdict
from auditor.reports.data.report_model import FlatRow, PublishedAs, ReportModel, publish
from auditor.storage.transcripts import CallTranscript


class TraceVerdict(FlatRow):
    """One judge's verdict on an answer."""

    verdict: Annotated[
        Verdict,
        PublishedAs(
            publish("judge", "outcome").keys
            | {"is_valid": "valid"}
            | publish("aspects", "confidence", "justification", "shortened").keys
        ),
    ]
    """While conflicts are open, the judge's name is `judge 1`, `judge 2`, …, numbered anew for each answer in an order
    that does not depend on the judge, and names of models in the justification are replaced."""


class TraceReport(FlatRow):
    """One answer of one model: what it was asked, what it answered, what it cost, and the judges' verdicts on it."""

    trace: Annotated[
        Trace,
        PublishedAs(
            {"model": "model", "cell.country": "country", "cell.topic": "topic"}
            | publish("sample", "language", "outcome", "score", "answer", "key").keys
        ),
    ]
    """In an audit of a task the country is empty, and the topic is an item's id. `key` is that of the first call; null
    if the answer was imported."""
    survey: float | None
    """People's score of the cell, in [-1, 1]."""
    correct_answer: str | None
    """The correct answer to an item of a task."""
    transcript: Annotated[
        CallTranscript,
        publish(
            *("text", "cost_usd", "prompt_tokens", "completion_tokens", "started_at", "finish_reason"),
            *("served_model", "error"),
            messages="prompt",
            attempts="requests",
            known_seconds="seconds",
        ),
    ]
    """Of all calls that led to the answer: `cost_usd` is without its verdicts. Figures are null where unknown."""
    first_text: str | None
    """The model's first answer, if it could not be read and the question was repeated; else null."""
    addresses_judge: bool = False
    """Whether the answer addresses its judge, by the rule of docs/traces.md."""
    verdicts: list[TraceVerdict]


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
