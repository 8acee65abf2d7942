"""The figures of a published table, computed from the scores that its authors released.

The files become ordinary audits, and the figures are those of their reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from auditor.domain import Cell, CellScore, Method, Survey, SurveyCell
from auditor.errors import ImportFileError
from auditor.imports.recorded_audits import save_imported_audit
from auditor.metrics.estimate import Estimate
from auditor.replications.presets import Paper, PublishedTable, ReleasedFiles
from auditor.reports.data.build import build_report
from auditor.run import resolve_storage_url
from auditor.storage.database import Database, open_database
from auditor.surveys import group_countries
from auditor.surveys.row_reader import TextRow, read_rows

SAME_SCORE = 1e-9
"""Survey scores of a cell in two files that differ by no more are the same."""


@dataclass(frozen=True, slots=True)
class RecordedFigures:
    """Figures of a table from released scores.

    Attributes:
        audits: names of the audits that hold the scores.
        figures: Pearson's r by row and column of the published table, with its interval over countries and topics.
    """

    audits: tuple[str, ...]
    figures: dict[tuple[str, str], Estimate]


@dataclass(frozen=True, slots=True)
class _ReleasedScore:
    """One row of a released file."""

    location: str
    model: str
    cell: Cell
    survey_score: float | None
    score: float | None


def compute_recorded_figures(paper: Paper, table: PublishedTable, folder: Path, storage: str | None) -> RecordedFigures:
    """Import the released scores behind a table as audits, and compute its figures.

    An earlier import of the same table is replaced. Files are found in the folder and its subfolders by their names.

    Raises:
        ImportFileError: a file cannot be used, or two files disagree on what people of a cell answered.
    """
    figures: dict[tuple[str, str], Estimate] = {}
    audit_names = []
    with open_database(resolve_storage_url(storage)) as db:
        for column in dict.fromkeys(released.column for released in table.released):
            rows = [
                row
                for released in table.released
                if released.column == column
                for row in _read_released(released, folder)
            ]
            if rows:
                audit_names.append(f"replicate-{paper.id}-{table.id}-{column.lower()}")
                figures |= _measure(db, audit_names[-1], _build_survey(paper, column, rows), rows, column)
    return RecordedFigures(tuple(audit_names), figures)


def _read_released(released: ReleasedFiles, folder: Path) -> Iterator[_ReleasedScore]:
    """Yield the rows of the files, with scores rescaled if they have no bounds."""
    before, placeholder, after = released.files.partition("{model}")
    for path in sorted(folder.rglob(f"{before}*{after}" if placeholder else before)):
        model = path.name[len(before) : len(path.name) - len(after)] if placeholder else released.model
        rows = [_parse_row(row, released, model) for row in read_rows(path, _required_columns(released))]
        rows = [row for row in rows if row.cell.country not in released.skipped_countries]
        yield from _rescale(rows) if released.is_rescaled else rows


def _required_columns(released: ReleasedFiles) -> list[str]:
    return [released.country, released.topic, released.survey_score, released.score]


def _parse_row(row: TextRow, released: ReleasedFiles, model: str) -> _ReleasedScore:
    cell = Cell(row.required_text(released.country), row.required_text(released.topic))
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


def _measure(
    db: Database, audit: str, survey: Survey, rows: Sequence[_ReleasedScore], column: str
) -> dict[tuple[str, str], Estimate]:
    """Save the scores as an audit, and read r of each model from its report."""
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
    save_imported_audit(db, audit, survey, list(scores.values()))
    report = build_report(db, audit)
    return {(row.model, column): row.crossed.pearson_r for row in report.alignment}
