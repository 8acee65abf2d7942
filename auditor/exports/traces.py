"""Read an audit's answers cell by cell with all that was recorded about them, and write them as pages."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from auditor.atomic_files import MANIFEST, replace_folder
from auditor.config import AuditConfig, load_stored_config
from auditor.domain import Cell, Conflict, Method, Outcome, Survey, SurveyCell, Trace, Verdict, total_cost
from auditor.errors import UsageError, did_you_mean
from auditor.prompts.language_data import addresses_judge
from auditor.reports.data.traces import (
    HIDDEN_NAME,
    CellTraces,
    SentencePairTrace,
    TracePages,
    TraceReport,
    TraceVerdict,
    hide_names,
)
from auditor.reports.render.html import render_html, write_search_page
from auditor.reports.sections.traces.cell_page import PageAudit, PageLinks, build_cell_document
from auditor.reports.sections.traces.index_page import build_index_document, build_records, build_search
from auditor.storage import audits, count_queries, results
from auditor.storage.count_queries import OutcomeCount
from auditor.storage.database import Database
from auditor.storage.ledger import CallTranscript, load_transcripts
from auditor.storage.review_queue import ConflictQueue
from auditor.surveys.selection import limit_cells, resolve_names
from auditor.text_safety import slugify, truncate_text


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """A trace with people's score of its cell, its verdicts, the conflicts on its cell, and its calls."""

    trace: Trace
    human_score: float | None
    verdicts: Sequence[Verdict]
    conflicts: Sequence[Conflict]
    first_call: CallTranscript | None
    repair_call: CallTranscript | None
    """The call that shows the model its first answer, if that could not be parsed."""
    repeat_call: CallTranscript | None = None
    """The call that asked the question again (`auditor run --ask-again`)."""

    @property
    def calls(self) -> tuple[CallTranscript, ...]:
        """The calls that were sent, in order."""
        return tuple(call for call in (self.first_call, self.repair_call, self.repeat_call) if call is not None)

    @property
    def final_call(self) -> CallTranscript | None:
        """The call whose answer counts: the last one that returned text, else the first."""
        return next((call for call in reversed(self.calls[1:]) if call.text is not None), self.first_call)

    @property
    def transcript(self) -> CallTranscript:
        """Of all calls together: the prompt and the text of the one whose answer counts, and sums over all."""
        calls, final_call = self.calls, self.final_call or CallTranscript()
        answered = [call for call in calls if call.messages]  # even by an empty text
        return replace(
            final_call,
            text=self.trace.text if final_call.text is None else final_call.text,
            prompt_tokens=_sum_known([call.prompt_tokens for call in answered]),
            completion_tokens=_sum_known([call.completion_tokens for call in answered]),
            cost_usd=total_cost([call.cost_usd for call in answered]),
            attempts=sum(call.attempts for call in calls),
            started_at=self.first_call.started_at if self.first_call else None,
            seconds=sum(call.seconds for call in calls if call.attempts),
            error=next((call.error for call in reversed(calls) if call.error), None),
        )


def join_trace_records(
    db: Database,
    traces: Sequence[Trace],
    verdicts: Iterable[Verdict],
    conflicts: Iterable[Conflict],
    human_scores: Mapping[Cell, float],
) -> list[TraceRecord]:
    """Join traces with their verdicts, the conflicts of their models and cells, people's scores, and their calls.

    The calls are loaded from the database.
    """
    verdicts_by_trace: defaultdict[tuple[str, Cell, int], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        verdicts_by_trace[verdict.model, verdict.cell, verdict.sample].append(verdict)
    conflicts_by_side: defaultdict[tuple[str, Cell], list[Conflict]] = defaultdict(list)
    for conflict in conflicts:
        for model in dict.fromkeys((conflict.left, conflict.right)):
            conflicts_by_side[model, conflict.cell].append(conflict)
    transcripts = load_transcripts(
        db, [key for trace in traces for key in (trace.key, trace.repair_key, trace.repeat_key) if key]
    )
    return [
        TraceRecord(
            trace=trace,
            human_score=human_scores.get(trace.cell),
            verdicts=verdicts_by_trace[trace.model, trace.cell, trace.sample],
            conflicts=conflicts_by_side[trace.model, trace.cell],
            first_call=transcripts.get(trace.key or ""),
            repair_call=transcripts.get(trace.repair_key or ""),
            repeat_call=transcripts.get(trace.repeat_key or ""),
        )
        for trace in traces
    ]


NUMBERED_JUDGE = "judge {}"


def describe_verdicts(verdicts: Sequence[Verdict]) -> list[TraceVerdict]:
    """Convert verdicts, with the names of their judges, in their order."""
    return [TraceVerdict(verdict=verdict) for verdict in verdicts]


def describe_anonymous_verdicts(verdicts: Sequence[Verdict], mask: Callable[[str], str]) -> list[TraceVerdict]:
    """Convert verdicts without their judges: numbered in an order that depends only on what the verdicts say.

    Args:
        mask: replaces the names of models and their makers in a justification.
    """
    unnamed = describe_verdicts(
        [replace(row, judge="", justification=row.justification and mask(row.justification)) for row in verdicts]
    )
    unnamed.sort(key=lambda row: (row.verdict.is_valid is None, not row.verdict.is_valid, row.model_dump_json()))
    return [
        TraceVerdict(verdict=replace(row.verdict, judge=NUMBERED_JUDGE.format(number)))
        for number, row in enumerate(unnamed, 1)
    ]


def make_name_mask(config: AuditConfig | None, names: Sequence[str]) -> Callable[[str], str]:
    """A function that replaces the names of an audit's models, of well-known models and of makers in a text.

    Args:
        names: names of the audit's models and judges.
    """
    from auditor.agents.blinding import AUTHOR_LABEL, author_names, mask_authors  # loads word lists

    sections = config.models_by_name.values() if config else ()
    model_ids = [(section.name, section.model) for section in sections]
    identifying_names = [
        *author_names(tuple(model_ids)),
        *(part for _, model in model_ids for part in model.split("/")),
    ]

    def mask(text: str) -> str:
        """Replace the names in one text by one label."""
        return mask_authors(hide_names(text, names), identifying_names).replace(AUTHOR_LABEL, HIDDEN_NAME)

    return mask


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which answers are selected: those that match one name of each kind; an empty sequence restricts nothing.

    Attributes:
        countries: the survey's spelling, another common one, or ISO 3166 codes.
        topics: in any case; in an audit of a task, ids of items.
        outcomes: values of `Outcome`.
        addressing_judge: whether only traces that address their judge are selected.
    """

    models: Sequence[str] = ()
    countries: Sequence[str] = ()
    topics: Sequence[str] = ()
    outcomes: Sequence[str] = ()
    addressing_judge: bool = False


@dataclass(frozen=True, slots=True)
class TraceSelection:
    """The selected answers, counted.

    Attributes:
        models: names of models, in the order of the audit.
        cells: cells that have selected answers, in the order of the survey.
        counts: number of selected answers by model, cell and outcome.
        n_omitted_cells: number of cells that were left out because there are too many.
        addressing_judge: as in `TraceFilter`.
    """

    models: Sequence[str]
    cells: Sequence[Cell]
    counts: Sequence[OutcomeCount]
    n_omitted_cells: int = 0
    addressing_judge: bool = False

    @property
    def n_traces(self) -> int:
        """Number of the selected answers."""
        return sum(count.n for count in self.counts)

    def models_by_cell(self) -> dict[Cell, list[str]]:
        """Models that have selected answers on each cell, in the order of the audit."""
        pairs = {(Cell(count.country, count.topic), count.model) for count in self.counts}
        rank = {model: i for i, model in enumerate(self.models)}
        by_cell: dict[Cell, list[str]] = {cell: [] for cell in self.cells}
        for cell, model in sorted(pairs, key=lambda pair: rank[pair[1]]):
            by_cell[cell].append(model)
        return by_cell

    def limit(self, max_cells: int, seed: int) -> TraceSelection:
        """Keep at most `max_cells` cells, spread over countries and topics; equal seeds give equal cells."""
        if len(self.cells) <= max_cells:
            return self
        limited = limit_cells(_survey_of(self.cells), max_cells, seed)
        kept_cells = {survey_cell.cell for survey_cell in limited.cells}
        return replace(
            self,
            cells=[cell for cell in self.cells if cell in kept_cells],
            counts=[count for count in self.counts if Cell(count.country, count.topic) in kept_cells],
            n_omitted_cells=len(self.cells) - len(kept_cells),
        )


def select_traces(
    counts: Sequence[OutcomeCount], survey: Survey, models: Sequence[str], trace_filter: TraceFilter
) -> TraceSelection:
    """Select the answers that match a filter.

    Args:
        counts: number of the audit's answers by model, cell and outcome; if only those that address their judge are
            selected, of these.
        survey: the audit's survey, whose order the cells have; answers may be on further cells.
        models: names of the audited models, in the order of the audit.

    Raises:
        UsageError, SurveyError: the audit has no such model, outcome, country or topic; the message suggests others.
    """
    answered_cells = {Cell(count.country, count.topic) for count in counts}
    survey_cells = [survey_cell.cell for survey_cell in survey.cells if survey_cell.cell in answered_cells]
    cells = [*survey_cells, *sorted(answered_cells.difference(survey_cells))]
    countries, topics = resolve_names(
        _survey_of(cells, survey.name), trace_filter.countries or "all", trace_filter.topics or "all"
    )
    selected_models = _match_names("no model", trace_filter.models, models)
    outcomes = _match_names(
        "no answers with the outcome", trace_filter.outcomes, [outcome.value for outcome in Outcome]
    )
    selected_counts = [
        count
        for count in counts
        if count.country in countries
        and count.topic in topics
        and count.model in selected_models
        and count.outcome in outcomes
    ]
    selected_cells = {Cell(count.country, count.topic) for count in selected_counts}
    selected = [cell for cell in cells if cell in selected_cells]
    return TraceSelection(models, selected, selected_counts, addressing_judge=trace_filter.addressing_judge)


def _match_names(missing: str, names: Sequence[str], available_names: Sequence[str]) -> Collection[str]:
    """The available names that are named, in any case; all if none is named.

    Args:
        missing: what the audit does not have, for the error message.

    Raises:
        UsageError: there is no such name.
    """
    by_folded_name = {name.casefold(): name for name in available_names}
    for name in names:
        if name.casefold() not in by_folded_name:
            hint = did_you_mean(name, available_names, f"Use one of: {', '.join(available_names)}.")
            raise UsageError(f"the audit has {missing} '{truncate_text(name)}'.", hint)
    return {by_folded_name[name.casefold()] for name in names} or set(available_names)


def _survey_of(cells: Sequence[Cell], name: str = "") -> Survey:
    """A survey that consists of these cells, for functions that select cells of a survey."""
    survey_cells = tuple(SurveyCell(cell, 0.0) for cell in cells)
    return Survey(name=name, title="", source="", wording="", scale=("", ""), cells=survey_cells)


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
        self.n_open_conflicts = ConflictQueue(db, self.audit.id, rater="").count_open()

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
        outcomes_by_model = {
            (count.model, Cell(count.country, count.topic), count.outcome) for count in selection.counts
        }
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
        first_call = record.first_call
        return TraceReport(
            trace=record.trace,
            survey=record.human_score,
            correct_answer=correct_answer,
            transcript=record.transcript,
            first_text=first_call.text if first_call is not None and record.final_call is not first_call else None,
            addresses_judge=_addresses_judge(record.trace),
            verdicts=self._describe_verdicts(record.verdicts),
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


def _sum_known(counts: Sequence[int | None]) -> int | None:
    """Sum of counts; None if there are none, or any is unknown."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


MAX_PAGES = 5_000
"""Pages of cells; further cells have none."""
INDEX_FILE = "index.html"
MANIFEST_FORMAT = "auditor traces"
MAX_SLUG_LENGTH = 60


@dataclass(frozen=True, slots=True)
class WrittenPages:
    """The pages that were written.

    Attributes:
        links: their URLs, relative to a page beside their folder.
        n_omitted_cells: number of cells without a page, because there are too many.
    """

    folder: Path
    links: TracePages
    n_omitted_cells: int


def write_trace_pages(
    db: Database, audit_name: str, folder: Path, report_file: str = "", max_pages: int = MAX_PAGES
) -> WrittenPages:
    """Write a page for each cell with the answers on it, and `index.html`; earlier pages in the folder are replaced.

    Either all pages are written or none. If there are too many cells, those with a page are spread evenly over
    countries and topics; the same audit gives the same choice.

    Args:
        folder: created if missing.
        report_file: name of the report beside the folder, to which the pages link; empty for none.

    Raises:
        StorageError: there is no such audit.
        UsageError: the audit has no answers, or the folder holds other files or cannot be written to.
    """
    reader = TraceReader(db, audit_name)
    selection = reader.select().limit(max_pages, reader.seed)
    if not selection.cells:
        raise UsageError(f"audit '{audit_name}' has no answers to show.", "Remove --traces, or run the audit.")
    audit = PageAudit(audit_name, reader.n_open_conflicts, reader.is_simulated)
    file_names = _name_files(selection.cells)
    report = f"../{quote(report_file, safe='')}" if report_file else ""
    counts, task = selection.counts, reader.survey.task
    search = build_search(reader.models, selection.cells, counts) if reader.has_answers else None
    index = build_index_document(
        audit, file_names, counts, task, search=search, report=report, n_omitted_cells=selection.n_omitted_cells
    )
    with replace_folder(folder, MANIFEST_FORMAT) as new_folder:
        with new_folder.open(INDEX_FILE) as index_file, write_search_page(index, index_file) as records:
            for i, cell_traces in enumerate(reader.iterate_cells(selection)):
                neighbours = [_link_cell(selection.cells, position, file_names) for position in (i - 1, i + 1)]
                links = PageLinks(report, INDEX_FILE, *neighbours)
                file_name = file_names[cell_traces.cell]
                new_folder.write(file_name, render_html(build_cell_document(cell_traces, audit, links)))
                if search:
                    records.write(build_records(cell_traces, search, file_name))
        files = [{"file": name} for name in (INDEX_FILE, *file_names.values())]
        manifest = {"format": MANIFEST_FORMAT, "audit": audit_name, "files": files}
        new_folder.write(MANIFEST, json.dumps(manifest, indent=2) + "\n")
    prefix = quote(folder.name, safe="")
    links_by_cell = {cell: f"{prefix}/{name}" for cell, name in file_names.items()}
    return WrittenPages(folder, TracePages(f"{prefix}/{INDEX_FILE}", links_by_cell), selection.n_omitted_cells)


def _name_files(cells: Sequence[Cell]) -> dict[Cell, str]:
    """A file name for each cell, which its number makes unique."""
    n_digits = len(str(len(cells)))
    return {
        cell: f"{number:0{n_digits}}-{slugify('-'.join(filter(None, cell)))[:MAX_SLUG_LENGTH]}.html"
        for number, cell in enumerate(cells, 1)
    }


def _link_cell(cells: Sequence[Cell], position: int, file_names: Mapping[Cell, str]) -> tuple[str, str]:
    """Text and URL of the page of the cell at a position; empty outside of the list."""
    if not 0 <= position < len(cells):
        return "", ""
    cell = cells[position]
    return ", ".join(filter(None, (cell.topic, cell.country))), file_names[cell]
