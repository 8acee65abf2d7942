"""Import recorded scores, answers and verdicts as audits, without calling any model."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import numpy as np

from auditor.agents.answer_parsing import parse_trace
from auditor.agents.cell_scoring import compute_cell_score
from auditor.config import require_audit_name
from auditor.domain import (
    Answer,
    Cell,
    CellScore,
    Outcome,
    Survey,
    Trace,
    Verdict,
    hash_rows,
)
from auditor.errors import ImportFileError, UsageError, format_count, pluralize
from auditor.imports.recorded_answers import AnswerFileFormat, LogKeys, RecordedAnswer, read_recorded_answers
from auditor.imports.score_table import read_score_table
from auditor.models.reasoning import strip_thinking
from auditor.run import describe_environment, open_stored_audit, resolve_storage_url
from auditor.run.audit_changes import recompute_imported_scores
from auditor.storage import audits, results
from auditor.storage.database import Database, open_database
from auditor.storage.exclusions import load_exclusions
from auditor.storage.records import save_records
from auditor.surveys import builtin_surveys, group_countries, load_survey
from auditor.surveys.countries import (
    COUNTRY_CODES_ADVICE,
    CountryCodes,
    country_code,
    make_country_speller,
    make_topic_speller,
)
from auditor.surveys.recorded_verdicts import read_recorded_verdicts
from auditor.surveys.selection import add_donors, keep_cells
from auditor.surveys.table_formats import NA
from auditor.text_safety import clean_name, make_name_speller, truncate_text

MAX_LISTED_NAMES = 10


@dataclass(frozen=True, slots=True)
class UnmatchedRows:
    """Counts of the rows that match no cell of a survey.

    Attributes:
        rows: all of them.
        countries, topics: rows by a name that the survey does not have; a row may count in both.
        cells: rows by cell whose country and topic the survey has, but in which people were not asked.
        suggestions: the most similar name of the survey by unknown name.
    """

    rows: int
    countries: Mapping[str, int]
    topics: Mapping[str, int]
    cells: Mapping[Cell, int]
    suggestions: Mapping[str, str]

    def describe(self) -> list[str]:
        """A line for each kind of unmatched rows, with their names and counts; none if all rows match."""
        cells = {f"{cell.country} × {cell.topic}": n for cell, n in self.cells.items()}
        kinds = {
            "countries that the survey does not have": self.countries,
            "topics that the survey does not have": self.topics,
            "cells in which people were not asked": cells,
        }
        return [
            f"{pluralize(sum(counts.values()), 'row')} about {kind}: {self._list(counts)}"
            for kind, counts in kinds.items()
            if counts
        ]

    def require_none(self, source: str) -> None:
        """Raise ImportFileError if a row does not match."""
        if self.rows:
            raise ImportFileError(
                f"{source}: no match in the survey for {pluralize(self.rows, 'row')}: {'; '.join(self.describe())}.",
                "Spell the names as `auditor surveys show SURVEY` does, remove the rows, or leave out --strict.",
            )

    def _list(self, counts: Mapping[str, int]) -> str:
        """The most frequent names with their counts and suggestions."""
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        hints = {name: f"; did you mean {suggestion}?" for name, suggestion in self.suggestions.items()}
        names = [
            f"{truncate_text(name)} ({format_count(n)}{hints.get(name, '')})" for name, n in ranked[:MAX_LISTED_NAMES]
        ]
        n_omitted = len(ranked) - len(names)
        return ", ".join([*names, *([f"and {format_count(n_omitted)} more"] if n_omitted else [])])


def count_unmatched_rows(
    survey: Survey, rows_by_cell: Mapping[Cell, int], known_cells: Collection[Cell] | None = None
) -> UnmatchedRows:
    """Count the rows about cells that the survey does not have.

    Args:
        rows_by_cell: number of rows by cell, in the survey's spelling.
        known_cells: cells that the survey has; None for those with a score.
    """
    known_cells = survey.scores if known_cells is None else known_cells
    known_countries, known_topics = set(survey.countries), set(survey.topics)
    countries, topics, cells = Counter[str](), Counter[str](), Counter[Cell]()
    n_rows = 0
    for cell, n in rows_by_cell.items():
        if cell in known_cells:
            continue
        n_rows += n
        if cell.country not in known_countries:
            countries[cell.country] += n
        if cell.topic not in known_topics:
            topics[cell.topic] += n
        if cell.country in known_countries and cell.topic in known_topics:
            cells[cell] += n
    suggestions = {
        name: similar[0]
        for names, known in ((countries, survey.countries), (topics, survey.topics))
        for name, _ in names.most_common(MAX_LISTED_NAMES)
        if (similar := get_close_matches(name, known, n=1, cutoff=0.7))
    }
    if NA in countries and (namibia := next((name for name in known_countries if country_code(name) == "NAM"), None)):
        suggestions[NA] = namibia
    return UnmatchedRows(n_rows, countries, topics, cells, suggestions)


class ImportedVerdicts(NamedTuple):
    """Counts of what `import_verdicts` read.

    Attributes:
        rows: verdicts stored.
        judges: different judges of them.
        empty: rows without a verdict.
        changed: rows that replaced another verdict of the same judge on the same trace.
        lost: rows about lost answers by their outcome; they are not stored, since no judge of a run sees such answers.
        self_verdicts: rows in which a model judges its own answer; they are not stored either.
    """

    rows: int
    judges: int
    empty: int
    changed: int
    lost: Mapping[str, int]
    self_verdicts: int = 0


class ImportedScores(NamedTuple):
    """Counts of what `import_scores` or `import_traces` read and stored.

    Attributes:
        rows: rows read.
        models: different models.
        scores: combinations of model, cell and method that have a score.
        empty: rows without a score, which are failed samples.
        unmatched: rows about cells for which the survey has no score.
        replaced: whether an earlier import of this name was replaced.
        notes: a line for each log that lacks some of its answers; empty for scores.
    """

    rows: int
    models: int
    scores: int
    empty: int
    unmatched: UnmatchedRows
    replaced: bool
    notes: tuple[str, ...] = ()


def import_scores(
    file: Path,
    *,
    survey: str,
    audit: str,
    storage: str | None = None,
    regions: str = "western",
    question: str | None = None,
    is_strict: bool = False,
    country_codes: CountryCodes | None = None,
) -> ImportedScores:
    """Store a file of scores as an audit. An earlier import of the same name is replaced.

    Args:
        file: CSV, JSONL or Parquet with `model,country,topic,method,score[,sample]`; scores in [-1, 1], empty where
            a sample failed. Rows of one model, cell and method are its samples, and are averaged. A row that is a mean
            may have `n_ok,n_planned[,variance]`, its usable and planned samples.
        survey: a built-in survey or a file.
        audit: the audit's name.
        storage: database URL.
        regions: groups of countries to compare, as in `surveys.group_countries`.
        question: the question that the models were asked; None if it is not known.
        is_strict: whether a row that does not match the survey is an error.
        country_codes: what numbers mean in the column `country`, unless the survey has them.

    Raises:
        ImportFileError: a row cannot be used; the message names it, and nothing is stored.
        UsageError: the name is invalid, or belongs to an audit that was run.
    """
    require_audit_name(audit)
    truth = load_survey(survey)
    spell = make_country_speller(truth, file, country_codes, COUNTRY_CODES_ADVICE)
    table = read_score_table(file, spell, make_topic_speller(truth))
    scores = table.average_samples()
    rows_by_cell = Counter[Cell]()
    for score, n_rows in zip(scores, table.group_sizes.tolist(), strict=True):
        rows_by_cell[score.cell] += n_rows
    unmatched = count_unmatched_rows(truth, rows_by_cell)
    if is_strict:
        unmatched.require_none(str(file))
    with open_database(resolve_storage_url(storage)) as db:
        replaced = save_imported_audit(db, audit, _select_truth(survey, truth, rows_by_cell, regions, question), scores)
    return ImportedScores(
        rows=table.scores.size,
        models=len(table.models),
        scores=sum(score.score is not None for score in scores),
        empty=int(np.count_nonzero(np.isnan(table.scores))),
        unmatched=unmatched,
        replaced=replaced,
    )


def _select_truth(
    source: str, survey: Survey, recorded_cells: Collection[Cell], regions: str, question: str | None
) -> Survey:
    """The cells of a survey that recorded answers are about: only these were planned. Without any, the whole survey.

    Args:
        source: name or path of the survey.
        regions, question: as in `import_scores`.
    """
    file = source if source in builtin_surveys() else str(Path(source).resolve())
    is_about_survey = any(cell in survey.scores for cell in recorded_cells)
    selected = keep_cells(survey, set(recorded_cells)) if is_about_survey else survey
    return replace(group_countries(add_donors(selected, survey), regions), question=question, file=file)


def import_traces(
    file: Path,
    *,
    survey: str,
    audit: str,
    storage: str | None = None,
    regions: str = "western",
    file_format: AnswerFileFormat = AnswerFileFormat.AUTO,
    keys: LogKeys | None = None,
    question: str | None = None,
    is_strict: bool = False,
    country_codes: CountryCodes | None = None,
) -> ImportedScores:
    """Store recorded answers as an audit. An earlier import of the same name is replaced, its verdicts included.

    Args:
        file: a table with `model,country,topic,sample,text[,score]`, a log of Inspect AI or results of promptfoo, or a
            folder of logs. An answer without a score is parsed in the format of the paper: "SCORE = x" at its end, or
            a refusal. An answer without text is a failed sample.
        survey, audit, storage, regions, question, is_strict, country_codes: as in `import_scores`.
        file_format, keys: as in `imports.recorded_answers.read_recorded_answers`.

    Raises:
        ImportFileError, UsageError: as in `import_scores`; UsageError also if Inspect is needed and not installed.
    """
    require_audit_name(audit)
    truth = load_survey(survey)
    spell = make_country_speller(truth, file, country_codes, COUNTRY_CODES_ADVICE)
    spell_topic = make_topic_speller(truth)
    notes: list[str] = []
    groups = _group_traces(read_recorded_answers(file, file_format, keys, notes.append), spell, spell_topic)
    traces = [trace for group in groups.values() for trace in group.values()]
    if not traces:
        raise ImportFileError(" ".join(notes) or f"{file}: has no rows.", "Check that it is the right file.")
    scores = [
        compute_cell_score(*group_key, list(group.values()), len(group), None, "")
        for group_key, group in groups.items()
    ]
    rows_by_cell = Counter(trace.cell for trace in traces)
    unmatched = count_unmatched_rows(truth, rows_by_cell)
    if is_strict:
        unmatched.require_none(str(file))
    with open_database(resolve_storage_url(storage)) as db:
        replaced = save_imported_audit(
            db, audit, _select_truth(survey, truth, rows_by_cell, regions, question), scores, traces
        )
    return ImportedScores(
        rows=len(traces),
        models=len({score.model for score in scores}),
        scores=sum(score.score is not None for score in scores),
        empty=sum(trace.outcome is not Outcome.OK for trace in traces),
        unmatched=unmatched,
        replaced=replaced,
        notes=tuple(notes),
    )


def _group_traces(
    recorded_answers: Iterable[RecordedAnswer], spell_country: Callable[[str], str], spell_topic: Callable[[str], str]
) -> dict[tuple[str, Cell], dict[int, Trace]]:
    """Traces by model and cell, and there by the number of the sample.

    Args:
        spell_country, spell_topic: return a name in the survey's spelling.

    Raises:
        ImportFileError: two answers are the same sample.
    """
    groups: dict[tuple[str, Cell], dict[int, Trace]] = defaultdict(dict)
    for recorded_answer in recorded_answers:
        cell = Cell(spell_country(recorded_answer.country), spell_topic(recorded_answer.topic))
        recorded_answer = recorded_answer._replace(model=clean_name(recorded_answer.model))
        group = groups[recorded_answer.model, cell]
        number = len(group) if recorded_answer.sample is None else recorded_answer.sample
        if number in group:
            raise ImportFileError(
                f"{recorded_answer.location}: two rows have the same model, country, topic and sample.",
                "Give each answer its own number in the column sample, or delete the duplicate row.",
            )
        group[number] = _build_trace(recorded_answer, cell, number)
    return groups


def _build_trace(recorded_answer: RecordedAnswer, cell: Cell, number: int) -> Trace:
    """Build the trace of a recorded answer; without a recorded score, the score is parsed from its text."""
    if recorded_answer.score is not None:
        text = None if recorded_answer.text is None else strip_thinking(recorded_answer.text)
        return Trace(recorded_answer.model, cell, number, Outcome.OK, recorded_answer.score, text)
    outcome = recorded_answer.outcome
    if outcome is Outcome.OK and recorded_answer.text is None:
        outcome = Outcome.CLIENT_ERROR  # a file that says so has lost the text, or never had one
    answer = Answer("", outcome, recorded_answer.text)
    trace = parse_trace(answer, recorded_answer.model, cell, number, "text")
    # Without the key of a call; `dataclasses.replace` takes as long as the parser.
    return Trace(trace.model, cell, number, trace.outcome, trace.score, trace.text)


def import_verdicts(file: Path, *, audit: str, storage: str | None = None) -> ImportedVerdicts:
    """Add recorded verdicts to an imported audit. A judge's earlier verdict on the same trace is replaced.

    Verdicts on answers without a result, or that were declared invalid, and on a model's own answers, are counted and
    not stored.

    Args:
        file: CSV, JSONL or Parquet with `judge,model,country,topic,verdict[,justification][,sample]`, or `id` in
            place of `country,topic` for items of a task; a verdict is VALID or INVALID, or empty where the judge gave
            none.
        audit: the audit's name, made by `import_traces`, `import_scores` or `import_task_answers`.
        storage: database URL.

    Raises:
        ImportFileError: a row cannot be used, or the audit has no such trace; nothing is stored.
        UsageError: the audit was run, not imported.
        StorageError: there is no such audit.
    """
    with open_stored_audit(audit, storage) as (db, stored_audit):
        if stored_audit.config is not None:
            raise UsageError(
                f"audit '{audit}' was run, not imported.",
                "Add the judges to its configuration, each with `model` = `replay/JUDGE` and `verdicts` = FILE. Run it "
                "again: recorded answers are reused.",
            )
        survey = audits.load_audit_survey(db, stored_audit)
        spellers = make_country_speller(survey, file), make_topic_speller(survey)
        judged = {
            (trace.model, trace.cell, trace.sample): trace.outcome for trace in results.load_traces(db, stored_audit.id)
        }
        scored = {(score.model, score.cell) for score in results.load_scores(db, stored_audit.id)}
        spell_author = make_name_speller({model for model, _, _ in judged} | {model for model, _ in scored})
        verdicts, lost, n_self_verdicts = [], Counter[str](), 0
        for location, verdict in read_recorded_verdicts(file, *spellers, is_task=survey.task is not None):
            verdict = replace(verdict, judge=clean_name(verdict.judge), model=spell_author(verdict.model))
            trace_key = (verdict.model, verdict.cell, verdict.sample)
            if trace_key not in judged if judged else trace_key[:2] not in scored:
                raise ImportFileError(
                    f"{location}: audit '{audit}' has no trace of {verdict.model} on "
                    f"{', '.join(filter(None, verdict.cell))}, sample {verdict.sample}.",
                    "Import the traces first, or correct the row.",
                )
            if verdict.judge == verdict.model:
                n_self_verdicts += 1
            elif (outcome := judged.get(trace_key, Outcome.OK)) is Outcome.OK:
                verdicts.append(verdict)
            else:
                lost[outcome.value] += 1
        earlier = {_verdict_key(verdict): verdict.ruling for verdict in results.load_verdicts(db, stored_audit.id)}
        save_records(db, stored_audit.id, verdicts)
    return ImportedVerdicts(
        rows=len(verdicts),
        judges=len({verdict.judge for verdict in verdicts}),
        empty=sum(verdict.ruling is None for verdict in verdicts),
        changed=sum(earlier.get(_verdict_key(verdict), verdict.ruling) != verdict.ruling for verdict in verdicts),
        lost=lost,
        self_verdicts=n_self_verdicts,
    )


def _verdict_key(verdict: Verdict) -> tuple[str, str, Cell, int]:
    """Judge, model, cell and sample of a verdict."""
    return verdict.judge, verdict.model, verdict.cell, verdict.sample


def save_imported_audit(
    db: Database, name: str, survey: Survey, scores: Sequence[CellScore], traces: Sequence[Trace] = ()
) -> bool:
    """Store imported scores and traces as an audit; return whether they replaced an earlier import of this name.

    Raises:
        UsageError: the name belongs to an audit that was run.
    """
    previous_audit = audits.find_audit(db, name)
    if previous_audit is not None and previous_audit.config is not None:
        raise UsageError(f"audit '{name}' was run, not imported.", "Choose another name with --audit.")
    score_rows = (
        (score.model, *score.cell, score.method, score.score, score.n_ok, score.n_planned) for score in scores
    )
    trace_rows = (
        (
            *(trace.model, *trace.cell, trace.sample, trace.outcome.value, trace.score, trace.text),
            *(() if trace.answer is None else (trace.answer,)),
        )
        for trace in traces
    )
    digest = hash_rows(itertools.chain(score_rows, trace_rows))
    results.save_recorded_audit(
        db,
        name=name,
        config_hash=digest,
        survey=survey,
        environment=describe_environment(),
        traces=traces,
        scores=scores,
    )
    audit_id = audits.get_audit(db, name).id
    if load_exclusions(db, audit_id):
        recompute_imported_scores(db, audit_id)
    return previous_audit is not None
