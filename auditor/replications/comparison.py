"""Published figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from auditor.errors import UsageError
from auditor.metrics.estimate import Estimate
from auditor.replications.presets import Paper, PublishedTable, list_paper_ids, load_paper
from auditor.replications.recorded import compute_recorded_figures
from auditor.reports.data.replication import NotRun, PublishedCell, PublishedTableInfo, RecomputedCell


def list_published_tables() -> list[PublishedTableInfo]:
    """All published tables, by paper and in the order of the paper."""
    return [
        PublishedTableInfo(
            paper=paper.id,
            table=table.id,
            title=table.title,
            place=table.place,
            origin=table.origin or paper.origin,
            n_cells=sum(1 for _ in paper.iterate_cells(table.id)),
            n_run=_count_runnable(table),
            released=[released.files for released in table.released],
        )
        for paper in map(load_paper, list_paper_ids())
        for table in paper.tables
    ]


def _count_runnable(table: PublishedTable) -> int:
    """Number of published figures that audits give; of a table without rows, those of one model."""
    if not table.rows:
        return sum(map(len, table.list_figures()))
    return sum(bool(table.find_figures(row, column)) for row in table.rows for column in table.read_row(row))


def list_experiments() -> list[tuple[str, str, str]]:
    """Papers whose tables can be run: name, what the user provides, and the calls of one model."""
    return [
        (paper.id, paper.experiment.needs, paper.experiment.cost)
        for paper in map(load_paper, list_paper_ids())
        if paper.experiment is not None
    ]


def recompute_tables(
    paper: Paper, table_id: str | None, folder: Path, storage: str | None
) -> tuple[list[RecomputedCell], list[str]]:
    """Compute the figures of one table or of all from released scores.

    Returns:
        The published cells with our figures, and the names of the audits that now hold the scores.

    Raises:
        UsageError: there is no such folder, or no table has scores in it.
        ImportFileError: see `compute_recorded_figures`.
    """
    if not folder.is_dir():
        raise UsageError(f"--recorded: there is no folder '{folder}'.", "Name the folder with the released files.")
    tables = [table for table in paper.select_tables(table_id) if table.released]
    if not tables:
        raise UsageError(
            f"--recorded: no scores behind {f'table {table_id}' if table_id else 'the tables'} of '{paper.id}' were "
            "released.",
            "To see which tables have them: auditor replicate list",
        )
    cells: list[RecomputedCell] = []
    audits: list[str] = []
    for table in tables:
        recorded = compute_recorded_figures(paper, table, folder, storage)
        cells += _join(list(paper.iterate_cells(table.id)), recorded.figures, table.scale)
        audits += recorded.audits
    if not audits:
        listed = ", ".join(released.files for table in tables for released in table.released)
        raise UsageError(
            f"--recorded: '{folder}' does not contain the released scores of '{paper.id}'.",
            f"Expected files: {listed}.",
        )
    return cells, audits


def _join(
    published: Sequence[PublishedCell], figures: Mapping[tuple[str, str], Estimate], scale: float
) -> list[RecomputedCell]:
    """Set our figures beside the published cells."""
    rows = []
    for cell in published:
        recomputed = figures.get((cell.row, cell.column))
        has_value = recomputed is not None and recomputed.value is not None
        difference = (
            recomputed.value - cell.value * scale
            if recomputed and recomputed.value is not None and cell.value is not None
            else None
        )
        not_run: NotRun | None = None if has_value else "not_in_folder" if cell.printed else "not_published"
        rows.append(
            RecomputedCell(
                published=cell, recomputed=recomputed if has_value else None, difference=difference, not_run=not_run
            )
        )
    return rows
