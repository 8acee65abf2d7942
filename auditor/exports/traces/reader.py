"""Read an audit's answers one cell at a time, so that memory does not grow with the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from auditor.config import load_stored_config
from auditor.domain import Cell, Method, Trace, Verdict, total_cost
from auditor.exports.trace_records import TraceRecord, join_trace_records
from auditor.exports.traces.selection import TraceFilter, TraceSelection, select_traces
from auditor.exports.traces.verdicts import describe_anonymous_verdicts, describe_verdicts, make_name_mask
from auditor.prompts.judge_address import addresses_judge
from auditor.reports.data.traces.schema import (
    CellTraces,
    PromptMessage,
    SentencePairTrace,
    TraceReport,
    TraceVerdict,
)
from auditor.storage import audits, count_queries, results
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.count_queries import OutcomeCount
from auditor.storage.database import Database
from auditor.storage.review_queue import ConflictQueue
from auditor.storage.transcripts import load_transcripts


class TraceReader:
    """The answers of one audit; in an audit by log-probabilities alone, the sentence pairs.

    While conflicts are open or disputed, judges are numbered instead of named: whoever reads an answer may still have
    to decide a conflict on it.

    Attributes:
        n_open_conflicts: number of open and disputed conflicts.
        has_answers: whether there are answers, not only sentence pairs.
    """

    def __init__(self, db: Database, audit_name: str) -> None:
        """Open an audit.

        Raises:
            StorageError: there is no such audit.
        """
        self._db = db
        self.audit = audits.get_audit(db, audit_name)
        self.survey = audits.load_audit_survey(db, self.audit)
        self._config = load_stored_config(self.audit.config)
        self._human_scores = {} if self.survey.task else self.survey.scores  # a task's are correct answers
        self._counts = count_queries.count_traces(db, self.audit.id)
        self.has_answers = bool(self._counts)
        self._counts = self._counts or count_queries.count_sentence_pairs(db, self.audit.id)
        counts = ConflictQueue(db, self.audit.id, rater="").count_by_status()
        self.n_open_conflicts = counts[ConflictStatus.OPEN] + counts[ConflictStatus.DISPUTED]

    @cached_property
    def models(self) -> list[str]:
        """Audited models: those of the config in its order, then any others by name."""
        configured = [model.name for model in self._config.models] if self._config else []
        return [*configured, *sorted({count.model for count in self._counts}.difference(configured))]

    @property
    def n_traces(self) -> int:
        """Number of the audit's answers."""
        return sum(count.n for count in self._counts)

    @property
    def is_simulated(self) -> bool:
        """Whether the audit's models are simulated."""
        return self._config is not None and self._config.is_simulated

    @property
    def seed(self) -> int:
        """Seed of the audit's random choices; 0 for an audit of imported results."""
        return self._config.seed if self._config else 0

    def select(self, trace_filter: TraceFilter | None = None) -> TraceSelection:
        """Select the answers that match a filter; all without one.

        Raises:
            UsageError, SurveyError: the filter names something that the audit does not have.
        """
        trace_filter = trace_filter or TraceFilter()
        counts = self._count_addressing() if trace_filter.addressing_judge else self._counts
        return select_traces(counts, self.survey, self.models, trace_filter)

    def _count_addressing(self) -> list[OutcomeCount]:
        """Count the traces that address their judge by model, cell and outcome."""
        texts = results.iterate_trace_texts(self._db, self.audit.id)
        counts = Counter((row.model, row.cell, row.outcome) for row in texts if addresses_judge(row.text, row.language))
        return [OutcomeCount(model, *cell, outcome.value, n) for (model, cell, outcome), n in sorted(counts.items())]

    def iterate_cells(self, selection: TraceSelection) -> Iterator[CellTraces]:
        """Yield the selected answers cell by cell, in the order of the selection; one cell is in memory at a time."""
        outcomes_by_model = _list_outcomes(selection)
        for cell, models in selection.models_by_cell().items():
            yield self._load_cell(cell, models, outcomes_by_model, selection)

    def _load_cell(
        self, cell: Cell, models: Sequence[str], outcomes: set[tuple[str, Cell, str]], selection: TraceSelection
    ) -> CellTraces:
        """Load the answers of some models on a cell, of those outcomes that are selected."""
        traces = [
            trace
            for model in models
            for trace in results.load_traces(self._db, self.audit.id, [cell], model)
            if (model, cell, trace.outcome.value) in outcomes
            and (not selection.addressing_judge or _addresses_judge(trace))
        ]
        verdicts = results.load_verdicts(self._db, self.audit.id, [cell])
        records = join_trace_records(self._db, traces, verdicts, (), self._human_scores)
        item = self.survey.task.items.get(cell.topic) if self.survey.task else None
        return CellTraces(
            cell,
            self._human_scores.get(cell),
            item,
            [self._build_trace(record, item.truth if item else None) for record in records],
            {model: self._direct_scores.get((model, cell)) for model in models},
            self._load_sentence_pairs(cell, models),
        )

    def _load_sentence_pairs(self, cell: Cell, models: Sequence[str]) -> list[SentencePairTrace]:
        """Load the sentence pairs behind the log-probability scores of some models on a cell, with their prompts."""
        pairs = [pair for pair in results.load_sentence_pairs(self._db, self.audit.id, [cell]) if pair.model in models]
        transcripts = load_transcripts(self._db, [pair.key for pair in pairs if pair.key])
        sentence_pairs = []
        for pair in pairs:
            messages = transcripts[pair.key].messages if pair.key in transcripts else ()
            sentence_pairs.append(SentencePairTrace(pair, "\n".join(message.content for message in messages)))
        return sorted(sentence_pairs, key=lambda row: (models.index(row.score.model), row.score.number))

    @cached_property
    def _direct_scores(self) -> dict[tuple[str, Cell], float | None]:
        """The models' scores by direct questions, by model and cell."""
        scores = results.load_scores(self._db, self.audit.id)
        return {(score.model, score.cell): score.score for score in scores if score.method == Method.DIRECT}

    def _build_trace(self, record: TraceRecord, correct_answer: str | None) -> TraceReport:
        """Convert one answer."""
        trace, calls, final_call = record.trace, record.calls, record.final_call
        recorded_calls = [call for call in calls if call.messages]  # those with an answer, even an empty one
        sent_calls = [call for call in calls if call.attempts]
        first_call = record.first_call
        text = final_call.text if final_call is not None else None
        return TraceReport(
            model=trace.model,
            country=trace.cell.country,
            topic=trace.cell.topic,
            sample=trace.sample,
            language=trace.language,
            outcome=trace.outcome.value,
            score=trace.score,
            answer=trace.answer,
            survey=record.human_score,
            correct_answer=correct_answer,
            prompt=[
                PromptMessage(role=message.role, content=message.content)
                for message in (final_call.messages if final_call else ())
            ],
            text=trace.text if text is None else text,
            first_text=first_call.text if first_call is not None and final_call is not first_call else None,
            addresses_judge=_addresses_judge(trace),
            verdicts=self._describe_verdicts(record.verdicts),
            cost_usd=total_cost([call.cost_usd for call in recorded_calls]),
            prompt_tokens=_sum_known([call.prompt_tokens for call in recorded_calls]),
            completion_tokens=_sum_known([call.completion_tokens for call in recorded_calls]),
            requests=sum(call.attempts for call in calls),
            seconds=sum(call.seconds for call in sent_calls) if sent_calls else None,
            started_at=first_call.started_at if first_call else None,
            finish_reason=final_call.finish_reason if final_call else None,
            served_model=final_call.served_model if final_call else None,
            error=next((call.error for call in reversed(calls) if call.error), None),
            key=trace.key,
        )

    def _describe_verdicts(self, verdicts: Sequence[Verdict]) -> list[TraceVerdict]:
        """Convert the verdicts on one answer; without their judges while conflicts are open."""
        if self.n_open_conflicts:
            return describe_anonymous_verdicts(verdicts, self._mask_names)
        return describe_verdicts(verdicts)

    @cached_property
    def _mask_names(self) -> Callable[[str], str]:
        """Replaces names of models in a judge's words."""
        judges = {count.judge for count in count_queries.count_judge_verdicts(self._db, self.audit.id)}
        configured = self._config.models_by_name if self._config else ()
        return make_name_mask(self._config, sorted({*self.models, *judges, *configured}))


def _addresses_judge(trace: Trace) -> bool:
    """Whether a trace has a text that addresses its judge."""
    return trace.text is not None and addresses_judge(trace.text, trace.language)


def _list_outcomes(selection: TraceSelection) -> set[tuple[str, Cell, str]]:
    """The selected outcomes, with their models and cells."""
    return {(count.model, Cell(count.country, count.topic), count.outcome) for count in selection.counts}


def _sum_known(counts: Sequence[int | None]) -> int | None:
    """Sum of counts; None if there are none, or any is unknown."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
