"""The figures of a published table, computed from the scores that its authors released.

The files become ordinary audits, and the figures are those of their reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from auditor.domain import Cell, CellScore, Method, Survey, SurveyCell
from auditor.errors import ImportFileError, UsageError
from auditor.imports.recorded_audits import save_imported_audit
from auditor.replications.definitions import MeasuredAudit, merge_departures
from auditor.replications.experiment import FigureSource
from auditor.replications.joining import TableJoiner, list_departures
from auditor.replications.planning import AUDIT_PREFIX
from auditor.replications.presets import Paper, PublishedTable, ReleasedFiles
from auditor.reports.data.build import build_report
from auditor.reports.data.replication import Departure, RecomputedCell
from auditor.run import resolve_storage_url
from auditor.storage.database import Database, open_database
from auditor.surveys import group_countries
from auditor.surveys.row_reader import TextRow, read_rows

RELEASED_FIGURE = "r.logprob"
"""The figure of a released score, whatever it was read from."""
SAME_SCORE = 1e-9
"""Survey scores of a cell in two files that differ by no more are the same."""


@dataclass(frozen=True, slots=True)
class RecordedTables:
    """The figures of tables from released scores.

    Attributes:
        cells: the published cells with our figures, then those of models that were not published.
        audits: names of the audits that hold the scores.
        files: of the folder that were read.
        departures: of the scores from those that the published figures are of.
    """

    cells: list[RecomputedCell]
    audits: list[str]
    files: list[Path]
    departures: list[Departure]


@dataclass(frozen=True, slots=True)
class _ReleasedScore:
    """One row of a released file."""

    location: str
    model: str
    cell: Cell
    survey_score: float | None
    score: float | None


def recompute_tables(paper: Paper, table_id: str | None, folder: Path, storage: str | None) -> RecordedTables:
    """Compute the figures of one table or of all from released scores, as audits without a call.

    An earlier import of the same table is replaced. Files are found in the folder and its subfolders by their names.

    Raises:
        UsageError: there is no such folder, or no table has scores in it.
        ImportFileError: a file cannot be used, or two files disagree on what people of a cell answered.
    """
    if not folder.is_dir():
        raise UsageError(f"--recorded: there is no folder '{folder}'.", "Name the folder with the released files.")
    tables = [table for table in paper.select_tables(table_id) if table.released]
    if not tables:
        raise UsageError(
            f"--recorded: no files with scores behind {f'table {table_id}' if table_id else 'the tables'} of "
            f"'{paper.id}' can be read.",
            paper.released_answers or "To see which tables have them: auditor replicate list",
        )
    recorded = RecordedTables([], [], [], [])
    with open_database(resolve_storage_url(storage)) as db:
        for table in tables:
            measured = _import_columns(db, paper, table, folder, recorded.files)
            cells = list(_join_released(paper, table, measured))
            recorded.cells.extend(cells)
            departures = [*recorded.departures, *list_departures(paper, measured, cells)]
            recorded.departures[:] = merge_departures(departures)
            recorded.audits.extend(audit.report.audit.name for audit in measured)
    if not recorded.audits:
        listed = ", ".join(released.files for table in tables for released in table.released)
        raise UsageError(
            f"--recorded: '{folder}' does not contain the released scores of '{paper.id}'.",
            f"Expected files: {listed}.",
        )
    return recorded


def _import_columns(
    db: Database, paper: Paper, table: PublishedTable, folder: Path, files: list[Path]
) -> list[MeasuredAudit]:
    """Import the scores behind each column of a table that the folder has; `files` gets the files that were read."""
    measured = []
    for column in dict.fromkeys(released.column for released in table.released):
        rows = []
        for released in (entry for entry in table.released if entry.column == column):
            before, placeholder, after = released.files.partition("{model}")
            for path in sorted(folder.rglob(f"{before}*{after}" if placeholder else before)):
                rows += _read_file(released, path)
                files.append(path)
        if rows:
            name = f"{AUDIT_PREFIX}-{paper.id}-{column.lower()}-{table.id}-recorded"
            save_imported_audit(db, name, _build_survey(paper, column, rows), _collect_scores(rows))
            measured.append(MeasuredAudit(column, None, build_report(db, name), is_released=True))
    return measured


def _join_released(paper: Paper, table: PublishedTable, measured: Sequence[MeasuredAudit]) -> Iterator[RecomputedCell]:
    """Set r of each model of the released scores beside the published cells, whose rows are models."""
    columns = dict.fromkeys(released.column for released in table.released)
    rows = tuple(row.model_copy(update={"model": row.row, "figures": {}}) for row in table.rows)
    figures = {column: (FigureSource(model_figure=RELEASED_FIGURE, audit=column),) for column in columns}
    released_table = table.model_copy(update={"rows": rows, "figures": figures, "forms": {}})
    models = {name: name for audit in measured for name in audit.models}
    assert paper.experiment is not None  # a paper with released scores has one
    for cell in TableJoiner(paper, paper.experiment, released_table, measured, models).join():
        is_missing = cell.not_run in ("no_counterpart", "no_audit")
        yield cell.model_copy(update={"not_run": "not_in_folder"}) if is_missing else cell


def _read_file(released: ReleasedFiles, path: Path) -> list[_ReleasedScore]:
    """The rows of a file, with scores rescaled if they have no bounds."""
    before, placeholder, after = released.files.partition("{model}")
    model = path.name[len(before) : len(path.name) - len(after)] if placeholder else released.model
    if not model:
        raise ImportFileError(f"{path}: the name of the file does not say the model.", f"Name it {released.files}.")
    rows = [
        _parse_row(row, released, model)
        for row in read_rows(path, [released.country, released.topic, released.survey_score, released.score])
    ]
    rows = [row for row in rows if row.cell.country not in released.skipped_countries]
    if not rows:
        raise ImportFileError(
            f"{path}: there are no scores of countries below the header.", "Download the file again, or remove it."
        )
    return _rescale(rows) if released.is_rescaled else rows


def _parse_row(row: TextRow, released: ReleasedFiles, model: str) -> _ReleasedScore:
    topic = row.required_text(released.topic)
    cell = Cell(row.required_text(released.country), released.topic_names.get(topic, topic))
    return _ReleasedScore(row.location, model, cell, row.number(released.survey_score), row.number(released.score))


def _rescale(rows: Sequence[_ReleasedScore]) -> list[_ReleasedScore]:
    """Scale a model's scores linearly to [-1, 1]; r does not change."""
    scores = [row.score for row in rows if row.score is not None]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low == high:
        return list(rows)
    return [
        _ReleasedScore(
            row.location,
            row.model,
            row.cell,
            row.survey_score,
            None if row.score is None else 2 * (row.score - low) / (high - low) - 1,
        )
        for row in rows
    ]


def _build_survey(paper: Paper, column: str, rows: Sequence[_ReleasedScore]) -> Survey:
    """The survey that the files hold; ImportFileError if they disagree on a cell, or a score is out of its range."""
    scores: dict[Cell, float | None] = {}
    for row in rows:
        for name, score in (("survey score", row.survey_score), ("score", row.score)):
            if score is not None and abs(score) > 1 + SAME_SCORE:
                raise ImportFileError(
                    f"{row.location}: the {name} {score} is not between -1 and 1.",
                    "Use the file as its authors released it.",
                )
        known = scores.setdefault(row.cell, row.survey_score)
        if known != row.survey_score and (
            known is None or row.survey_score is None or abs(known - row.survey_score) > SAME_SCORE
        ):
            raise ImportFileError(
                f"{row.location}: people's score of {row.cell.country}, {row.cell.topic} is {row.survey_score}, but "
                f"{known} in another file.",
                "Give a folder with the files of one release.",
            )
    return group_countries(
        Survey(
            name=column.lower(),
            title=f"{column}, as released",
            source=f"released with or for: {paper.title} ({paper.source})",
            wording="Is {topic} justifiable in {country}?",
            scale=("never justifiable", "always justifiable"),
            cells=tuple(SurveyCell(cell, score) for cell, score in scores.items()),
        )
    )


def _collect_scores(rows: Sequence[_ReleasedScore]) -> list[CellScore]:
    """The scores of each model and cell; ImportFileError if there are two."""
    scores: dict[tuple[str, Cell], CellScore] = {}
    for row in rows:
        if (row.model, row.cell) in scores:
            raise ImportFileError(
                f"{row.location}: this model already has a score for this country and topic.",
                "Give a folder with the files of one release only.",
            )
        is_scored = row.score is not None
        scores[row.model, row.cell] = CellScore(
            row.model, row.cell, Method.LOGPROB, row.score, n_ok=int(is_scored), n_planned=1
        )
    return list(scores.values())
