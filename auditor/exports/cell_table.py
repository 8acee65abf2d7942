"""The exported table `cells`: a model's score on a cell beside people's, with its samples, conflict and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from auditor.domain import Cell, Method
from auditor.storage import audits, results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.count_queries import count_verdicts_by_cell
from auditor.storage.database import Database
from auditor.storage.reviewed_conflicts import load_reviewed_conflicts
from auditor.storage.table_dump import DumpColumn, DumpTable

STATUSES_BY_RESOLUTION = (ConflictStatus.OPEN, ConflictStatus.DISPUTED, ConflictStatus.MAJORITY, ConflictStatus.PERSON)
CELL_TABLE = DumpTable(
    "cells",
    "One row for each model, method and cell, joined from the tables score, survey_cell, conflict and verdict. "
    "`people_score`: the survey's; null where people were not asked. `n`: planned samples. `usable`: samples with a "
    "score. `conflict`: status of the model's conflict with another model on the cell, people's decisions included; of "
    "several, the least resolved one; null without one. `verdicts`, `valid`: usable verdicts of judges on the model's "
    "answers, and those that say VALID. Conflicts and verdicts are about the method direct.",
    (
        DumpColumn("model", "text", nullable=False),
        DumpColumn("country", "text", nullable=False),
        DumpColumn("topic", "text", nullable=False),
        DumpColumn("method", "text", nullable=False),
        DumpColumn("score", "number", nullable=True),
        DumpColumn("people_score", "number", nullable=True),
        DumpColumn("n", "integer", nullable=False),
        DumpColumn("usable", "integer", nullable=False),
        DumpColumn("conflict", "text", nullable=True),
        DumpColumn("verdicts", "integer", nullable=True),
        DumpColumn("valid", "integer", nullable=True),
    ),
)


def iterate_cell_rows(db: Database, audit: Audit, batch_size: int = 10_000) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of `CELL_TABLE` by model, country, topic and method, in batches of at most `batch_size`."""
    people = {cell.cell: cell.score for cell in audits.load_audit_survey(db, audit).cells}
    conflicts, verdicts = _load_conflict_statuses(db, audit), count_verdicts_by_cell(db, audit.id)
    scores = results.load_scores(db, audit.id)
    for start in range(0, len(scores), batch_size):
        rows: list[dict[str, Any]] = []
        for score in scores[start : start + batch_size]:
            is_judged = score.method == Method.DIRECT
            status = conflicts.get((score.model, score.cell)) if is_judged else None
            n_verdicts, n_valid = verdicts.get((score.model, score.cell), (0, 0)) if is_judged else (None, None)
            values: list[Any] = [
                score.model,
                *score.cell,
                score.method,
                score.score,
                people.get(score.cell),
                score.n_planned,
            ]
            values += [score.n_ok, status and status.value, n_verdicts, n_valid]
            rows.append(dict(zip((column.name for column in CELL_TABLE.columns), values, strict=True)))
        yield rows


def _load_conflict_statuses(db: Database, audit: Audit) -> dict[tuple[str, Cell], ConflictStatus]:
    """Status of each model's least resolved conflict with another model, by model and cell."""
    statuses: dict[tuple[str, Cell], ConflictStatus] = {}
    reviewed = [row for row in load_reviewed_conflicts(db, audit.id) if row.conflict.kind.is_voted]
    for row in sorted(reviewed, key=lambda row: STATUSES_BY_RESOLUTION.index(row.status)):
        for model in (row.conflict.left, row.conflict.right):
            statuses.setdefault((model, row.conflict.cell), row.status)
    return statuses
