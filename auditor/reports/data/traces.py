"""Answers of models with their prompts, verdicts and costs (the JSON of `auditor traces`), and examples of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Annotated, Self

from pydantic import PrivateAttr

from auditor.domain import Cell, Method, Outcome, Ruling, SentencePairScore, TaskItem, Trace, Verdict
from auditor.metrics.intervals.jackknife_interval import ROUNDING_ERROR
from auditor.reports.data.report_model import FlatRow, PublishedAs, ReportModel, publish
from auditor.reports.data.report_source import ReportSource
from auditor.storage import evidence
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.database import Database
from auditor.storage.evidence import BlindedSample
from auditor.storage.ledger import CallTranscript


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


MAX_EXAMPLES = 3
MAX_TEXT_CHARS = 2000
"""Length at which reasoning and justifications are cut."""
HIDDEN_NAME = "[model]"


class ExampleVerdict(ReportModel):
    """One judge's verdict on the reasoning of an example. The judge is not named: reviewers may still have to decide
    a conflict about the same reasoning."""

    valid: bool
    unmet_aspects: list[str]
    """Aspects that the judge finds not met, by their name in `peer_agreement`."""
    justification: str | None
    """The judge's words; names of the audit's models and judges are replaced."""


class ExampleReport(ReportModel):
    """One of the cells with the largest difference between a model's score and people's."""

    model: str
    country: str
    topic: str
    survey: float
    """People's score, in [-1, 1]."""
    score: float
    """The model's score, in [-1, 1]: the mean of its samples."""
    sample_score: float | None
    """Score of the quoted sample: of those with a usable verdict, or of all without any, the one nearest to `score`;
    null where no reasoning is stored."""
    reasoning: str | None
    shortened: bool
    verdicts: list[ExampleVerdict]
    """Usable verdicts on the quoted sample, VALID first, in an order that does not depend on the judge."""


def build_examples(db: Database, source: ReportSource) -> list[ExampleReport]:
    """Load the direct scores that differ most from people's, largest difference first."""
    differences = [
        (abs(float(difference)), model, source.cells[i])
        for column, (method, model) in enumerate(source.columns)
        if method == Method.DIRECT
        for i, difference in enumerate(source.score_matrix[column] - source.survey_scores)
        if abs(difference) > ROUNDING_ERROR  # False for nan
    ]
    largest = nlargest(MAX_EXAMPLES, differences, key=lambda item: (item[0], item[1], item[2]))
    return [_build_example(db, source, model, cell) for _, model, cell in largest]


def _build_example(db: Database, source: ReportSource, model: str, cell: Cell) -> ExampleReport:
    """Build one example, with the sample that `select_sample` chooses."""
    column, position = source.columns.index((Method.DIRECT.value, model)), source.cells.index(cell)
    score = float(source.score_matrix[column, position])
    # Both sides of the key are the model: the queries are those of one side of a conflict.
    key = ConflictKey(cell.country, cell.topic, model, model)
    samples, _ = evidence.load_sides(db, source.audit.id, key)
    verdicts = evidence.load_hidden_evidence(db, source.audit.id, key).verdicts_left
    judged = {verdict.sample for verdict in verdicts if verdict.outcome is Outcome.OK}
    sample = select_sample(samples, score, judged)
    text = sample.text if sample else None
    return ExampleReport(
        model=model,
        country=cell.country,
        topic=cell.topic,
        survey=float(source.survey_scores[position]),
        score=score,
        sample_score=sample.score if sample else None,
        reasoning=text[:MAX_TEXT_CHARS] if text else None,
        shortened=bool(text and len(text) > MAX_TEXT_CHARS),
        verdicts=_build_verdicts(
            [verdict for verdict in verdicts if sample and verdict.sample == sample.number],
            [*source.models, *source.judge_names],
        ),
    )


def select_sample(samples: Iterable[BlindedSample], score: float, judged: Collection[int]) -> BlindedSample | None:
    """Select the usable sample with reasoning to quote; None without any.

    Samples with a usable verdict come first, whose numbers are in `judged`; of these, the one with the score nearest to
    the cell's, and the first among ties.
    """
    usable = [sample for sample in samples if sample.outcome is Outcome.OK and sample.text and sample.score is not None]
    return min(
        usable,
        key=lambda sample: (sample.number not in judged, abs((sample.score or 0.0) - score), sample.number),
        default=None,
    )


def _build_verdicts(verdicts: Sequence[Verdict], names: Sequence[str]) -> list[ExampleVerdict]:
    """The usable verdicts without their judges, sorted by what they say."""
    rows = [
        ExampleVerdict(
            valid=verdict.ruling is Ruling.VALID,
            unmet_aspects=[name for name, is_met in verdict.aspects.items() if not is_met],
            justification=hide_names(verdict.justification or "", names)[:MAX_TEXT_CHARS] or None,
        )
        for verdict in verdicts
        if verdict.outcome is Outcome.OK
    ]
    return sorted(rows, key=lambda row: (not row.valid, row.justification or "", row.unmet_aspects))


def hide_names(text: str, names: Sequence[str]) -> str:
    """Replace the names of models in a judge's words, which might say who wrote them."""
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", HIDDEN_NAME, text, flags=re.IGNORECASE) if names else text
