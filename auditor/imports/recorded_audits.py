"""Audits made of what was measured elsewhere, with no call to any model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, variance
from typing import NamedTuple

from auditor.agents.answer_parsing import parse_trace
from auditor.agents.cell_scoring import compute_cell_score
from auditor.config import require_audit_name
from auditor.domain import (
    Answer,
    Cell,
    CellScore,
    Outcome,
    Ruling,
    Survey,
    Trace,
    Verdict,
    canonical_hash,
)
from auditor.errors import ImportFileError, UsageError
from auditor.imports.recorded_answers import AnswerFileFormat, LogKeys, RecordedAnswer, read_recorded_answers
from auditor.imports.row_scores import parse_row_score
from auditor.run import describe_environment, resolve_storage_url
from auditor.storage import audits, results
from auditor.storage.database import Database, open_database
from auditor.surveys import group_countries, load_survey
from auditor.surveys.country_spelling import make_country_speller
from auditor.surveys.row_reader import TextRow, read_rows

VERDICT_COLUMNS = ("judge", "model", "country", "topic", "verdict")
SCORE_COLUMNS = ("model", "country", "topic", "method", "score")


class ImportedVerdicts(NamedTuple):
    """What came of a file of verdicts; `empty` rows have none."""

    rows: int
    judges: int
    empty: int


class ImportedScores(NamedTuple):
    """What came of a file.

    Attributes:
        rows: rows read; scores: cells x models x methods that have one.
        empty: rows without a score, which are failed samples.
        not_in_survey: rows about cells for which the survey has no score.
        replaced: whether an earlier import of this name was replaced.
        notes: a line for each log that lacks some of its answers.
    """

    rows: int
    models: int
    scores: int
    empty: int
    not_in_survey: int
    replaced: bool
    notes: tuple[str, ...] = ()


def import_scores(
    file: Path, *, survey: str, audit: str, storage: str | None = None, regions: str = "western"
) -> ImportedScores:
    """Make an audit of a file of scores; the same name again replaces the scores it had.

    Args:
        file: CSV, JSONL or Parquet with `model,country,topic,method,score[,sample]`; scores in [-1, 1], empty where
            a sample failed. Rows of one model, cell and method are its samples, and are averaged.
        survey: a built-in survey or a file.
        audit: the audit's name.
        storage: database URL.
        regions: groups of countries to compare, as `surveys.region_of` takes them.

    Raises:
        ImportFileError: a row that cannot be used; the message names it. Nothing is stored then.
        UsageError: the name belongs to an audit that was run, or is none that an audit may have.
    """
    require_audit_name(audit)
    truth = group_countries(load_survey(survey), regions)
    spell = make_country_speller(truth)
    samples: dict[tuple[str, Cell, str], dict[str, float | None]] = defaultdict(dict)
    rows = outside = empty = 0
    for row in read_rows(file, SCORE_COLUMNS, ["sample"]):
        rows += 1
        cell = Cell(spell(row.required_text("country")), row.required_text("topic"))
        outside += cell not in truth.scores
        group = samples[row.required_text("model"), cell, row.required_text("method")]
        sample = row.cells["sample"] or "0"
        if sample in group:
            raise ImportFileError(
                f"{row.location}: this model, cell, method and sample is there twice.", "Number samples."
            )
        group[sample] = parse_row_score(row)
        empty += group[sample] is None
    if not rows:
        raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
    scores = [_average_samples(*who, list(group.values())) for who, group in samples.items()]
    with open_database(resolve_storage_url(storage)) as db:
        replaced = _save_audit(db, audit, truth, scores)
    usable = [s for s in scores if s.score is not None]
    return ImportedScores(rows, len({s.model for s in scores}), len(usable), empty, outside, replaced)


def import_traces(
    file: Path,
    *,
    survey: str,
    audit: str,
    storage: str | None = None,
    regions: str = "western",
    file_format: AnswerFileFormat = AnswerFileFormat.AUTO,
    keys: LogKeys | None = None,
) -> ImportedScores:
    """Make an audit of recorded answers; the same name again replaces what it held, verdicts included.

    Args:
        file: a table with `model,country,topic,sample,text[,score]`, a log of Inspect AI or results of promptfoo, or a
            folder of logs. An answer without a score is read in the form of the paper: "SCORE = x" at its end, or a
            refusal. One without a text is a failed sample.
        survey, audit, storage, regions: as `import_scores`.
        form, keys: as `imports.logs.read_recorded`.

    Raises:
        ImportFileError, UsageError: as `import_scores`, and where Inspect is not installed.
    """
    require_audit_name(audit)
    truth = group_countries(load_survey(survey), regions)
    spell = make_country_speller(truth)
    groups: dict[tuple[str, Cell], dict[int, Trace]] = defaultdict(dict)
    notes: list[str] = []
    for one in read_recorded_answers(file, file_format, keys, notes.append):
        cell = Cell(spell(one.country), one.topic)
        group = groups[one.model, cell]
        number = len(group) if one.sample is None else one.sample
        if number in group:
            raise ImportFileError(f"{one.location}: this model, cell and sample is there twice.", "Number samples.")
        group[number] = _build_trace(one, cell, number)
    traces = [trace for group in groups.values() for trace in group.values()]
    if not traces:
        raise ImportFileError(" ".join(notes) or f"{file}: has no rows.", "Is it the right file?")
    scores = [compute_cell_score(*who, list(group.values()), len(group), None, "") for who, group in groups.items()]
    with open_database(resolve_storage_url(storage)) as db:
        replaced = _save_audit(db, audit, truth, scores, traces)
    return ImportedScores(
        rows=len(traces),
        models=len({s.model for s in scores}),
        scores=sum(s.score is not None for s in scores),
        empty=sum(t.outcome is not Outcome.OK for t in traces),
        not_in_survey=sum(t.cell not in truth.scores for t in traces),
        replaced=replaced,
        notes=tuple(notes),
    )


def _build_trace(recorded_answer: RecordedAnswer, cell: Cell, number: int) -> Trace:
    if recorded_answer.score is not None:
        return Trace(recorded_answer.model, cell, number, Outcome.OK, recorded_answer.score, recorded_answer.text)
    return replace(
        parse_trace(
            Answer("", recorded_answer.outcome, recorded_answer.text), recorded_answer.model, cell, number, "text"
        ),
        key=None,
    )


def import_verdicts(file: Path, *, audit: str, storage: str | None = None) -> ImportedVerdicts:
    """Add recorded verdicts to an audit that was imported; a judge's verdict on the same trace is replaced.

    Args:
        file: CSV, JSONL or Parquet with `judge,model,country,topic,verdict[,justification][,sample]`; a verdict is
            VALID or INVALID, or empty where the judge gave none.
        audit: the audit's name, made by `import_traces` or `import_scores`.
        storage: database URL.

    Raises:
        ImportFileError: a row that cannot be used, or is about nothing in the audit. Nothing is stored then.
        UsageError: the audit was run.
        StorageError: there is no such audit.
    """
    with open_database(resolve_storage_url(storage), create=False) as db:
        known = audits.get_audit(db, audit)
        if known.config is not None:
            raise UsageError(f"audit '{audit}' was run, not imported.", "Its judges are those of its configuration.")
        spell = make_country_speller(audits.load_audit_survey(db, known))
        judged = {(t.model, t.cell, t.sample): t.outcome for t in results.load_traces(db, known.id)}
        scored = {(s.model, s.cell) for s in results.load_scores(db, known.id)}
        found: dict[tuple[str, str, Cell, int], Verdict] = {}
        for row in read_rows(file, VERDICT_COLUMNS, ["justification", "sample"]):
            verdict = _parse_verdict(row, Cell(spell(row.required_text("country")), row.required_text("topic")))
            where = (verdict.model, verdict.cell, verdict.sample)
            if where not in judged if judged else where[:2] not in scored:
                raise ImportFileError(
                    f"{row.location}: audit '{audit}' has no trace of {verdict.model} on {verdict.cell.country}, "
                    f"{verdict.cell.topic}, sample {verdict.sample}.",
                    "Import the traces first, or mend the row.",
                )
            if (verdict.judge, *where) in found:
                raise ImportFileError(
                    f"{row.location}: this judge's verdict on this trace is there twice.", "Keep one."
                )
            found[verdict.judge, *where] = verdict
        if not found:
            raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
        results.save_verdicts(db, known.id, list(found.values()))
    empty = sum(v.ruling is None for v in found.values())
    return ImportedVerdicts(len(found), len({v.judge for v in found.values()}), empty)


def _parse_verdict(row: TextRow, cell: Cell) -> Verdict:
    told = row.cells["verdict"].upper()
    if told and told not in tuple(Ruling):
        raise ImportFileError(
            f"{row.location}, column 'verdict': '{row.cells['verdict']}' is neither VALID nor INVALID.",
            "Leave it empty where the judge gave none.",
        )
    return Verdict(
        judge=row.required_text("judge"),
        model=row.required_text("model"),
        cell=cell,
        sample=row.integer("sample"),
        outcome=Outcome.OK if told else Outcome.UNPARSED,
        ruling=Ruling(told) if told else None,
        justification=row.cells["justification"] or None,
    )


def _save_audit(db: Database, name: str, survey: Survey, scores: list[CellScore], traces: Sequence[Trace] = ()) -> bool:
    """Whether there was an import of this name, which this one replaces."""
    old = audits.find_audit(db, name)
    if old is not None and old.config is not None:
        raise UsageError(f"audit '{name}' was run, not imported.", "Choose another name with --audit.")
    told = [[s.model, *s.cell, s.method, s.score, s.n_ok, s.n_planned] for s in scores]
    digest = canonical_hash([*told, *([t.model, *t.cell, t.sample, t.outcome, t.score, t.text] for t in traces)])
    saved = audits.save_audit(
        db, name=name, config=None, config_hash=digest, survey=survey, environment=describe_environment()
    )
    results.save_traces(db, saved.id, traces)
    results.save_scores(db, saved.id, scores)
    audits.set_stage(db, saved.id, audits.FINISHED)
    return old is not None


def _average_samples(model: str, cell: Cell, method: str, samples: list[float | None]) -> CellScore:
    ok = [s for s in samples if s is not None]
    return CellScore(
        model=model,
        cell=cell,
        method=method,
        score=fmean(ok) if ok else None,
        variance=variance(ok) if len(ok) > 1 else None,
        n_ok=len(ok),
        n_planned=len(samples),
    )
