"""The audits of a database at a glance: how far each is, how much of it came back, what it cost, what is open."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select
from sqlmodel import SQLModel

from auditor.domain import Outcome
from auditor.storage import costs
from auditor.storage.audits import WHOLE, Audit, all_audits
from auditor.storage.conflict_status import Standing
from auditor.storage.database import Database, runner, table_of
from auditor.storage.review_queue import Queue
from auditor.storage.tables import ComparisonRow, MoralAnswerRow, SurveyCellRow, TraceRow, VerdictRow


@dataclass(frozen=True, slots=True)
class Overview:
    """One audit at a glance.

    Attributes:
        runner: the process that runs it now, as `process 42 on host`; None where none does, or nothing is known.
        planned: samples that the config asks for, or at most, until sampling ends; None for imported scores.
        traces, verdicts, answers, comparisons: rows so far (answers are those to moral questions), and how many of them
            are `ok`.
        cost_usd: of the answers whose price is known; None where no price is.
        unpriced: answers whose price is not known.
        conflicts: by standing, people's decisions included.
    """

    audit: Audit
    title: str
    runner: str | None
    models: int
    planned: int | None
    traces: int
    traces_ok: int
    verdicts: int
    verdicts_ok: int
    answers: int
    answers_ok: int
    comparisons: int
    comparisons_ok: int
    cost_usd: float | None
    unpriced: int
    conflicts: dict[Standing, int]

    @property
    def is_done(self) -> bool:
        return self.audit.stage in WHOLE

    @property
    def progress(self) -> float | None:
        """Share of the planned samples that are in, in [0, 1]; None where nothing was planned."""
        return min(self.traces / self.planned, 1.0) if self.planned else None

    @property
    def coverage(self) -> float | None:
        """Share of what models said (samples, moral answers, comparisons) that is usable; None where nothing was."""
        said = self.traces + self.answers + self.comparisons
        return (self.traces_ok + self.answers_ok + self.comparisons_ok) / said if said else None

    @property
    def total(self) -> int:
        """Conflicts in all."""
        return sum(self.conflicts.values())


def overviews(db: Database) -> list[Overview]:
    """All audits, the newest first; only reads, so an audit that runs is not held up."""
    return [_overview(db, audit) for audit in reversed(all_audits(db))]


def _overview(db: Database, audit: Audit) -> Overview:
    config = json.loads(audit.config) if audit.config else None
    survey = json.loads(audit.survey)
    with db.read() as connection:
        rows = [_rows(connection, audit.id, row) for row in (TraceRow, VerdictRow, MoralAnswerRow, ComparisonRow)]
        cells = _cells(connection, audit.id, of_task=survey.get("task") is not None)
    money = costs.cost(db, audit.id)
    (traces, traces_ok), (verdicts, verdicts_ok), (answers, answers_ok), (compared, compared_ok) = rows
    return Overview(
        audit=audit,
        title=survey["task"]["source"] if survey.get("task") else survey["title"],
        runner=runner(db, audit.name),
        models=len(config["models"]) if config else 0,
        planned=_planned(config, cells, survey.get("native", {}), traces if audit.stage in WHOLE else None)
        if config
        else None,
        traces=traces,
        traces_ok=traces_ok,
        verdicts=verdicts,
        verdicts_ok=verdicts_ok,
        answers=answers,
        answers_ok=answers_ok,
        comparisons=compared,
        comparisons_ok=compared_ok,
        cost_usd=money.usd,
        unpriced=money.unpriced,
        conflicts=Queue(db, audit.id, rater="").counts(),
    )


def _rows(connection: Connection, audit_id: int, row: type[SQLModel]) -> tuple[int, int]:
    c = table_of(row).c
    query = select(c.outcome, func.count()).where(c.audit_id == audit_id).group_by(c.outcome)
    found = {outcome: int(n) for outcome, n in connection.execute(query)}
    return sum(found.values()), found.get(Outcome.OK.value, 0)


def _cells(connection: Connection, audit_id: int, *, of_task: bool) -> dict[str, int]:
    """Cells that models are asked about, by country; a task's items have none."""
    c = table_of(SurveyCellRow).c
    query = select(c.country, func.count()).where(c.audit_id == audit_id).group_by(c.country)
    query = query if of_task else query.where(c.score.is_not(None))
    return {country: int(n) for country, n in connection.execute(query)}


def _planned(stored: Any, cells: Mapping[str, int], native: Mapping[str, Sequence[str]], ended_at: int | None) -> int:
    """Samples at most; where sampling may end early and has ended, those that were taken."""
    from auditor.config import AuditConfig  # takes a fifth of a second, for which no first screen should wait

    config = AuditConfig.model_validate(stored)
    if config.direct.is_open_ended and ended_at is not None:
        return ended_at
    samples = sum(n * config.samples_in(native.get(country, ())) for country, n in cells.items())
    return len(config.models) * samples
