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
from auditor.storage.audits import FINAL_STAGES, Audit, load_audits
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database, find_runner, table_of
from auditor.storage.review_queue import ConflictQueue
from auditor.storage.tables import ComparisonRow, MoralAnswerRow, SurveyCellRow, TraceRow, VerdictRow


@dataclass(frozen=True, slots=True)
class AuditOverview:
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
    planned_samples: int | None
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
    conflicts: dict[ConflictStatus, int]

    @property
    def is_finished(self) -> bool:
        return self.audit.stage in FINAL_STAGES

    @property
    def progress(self) -> float | None:
        """Share of the planned samples that are in, in [0, 1]; None where nothing was planned."""
        return min(self.traces / self.planned_samples, 1.0) if self.planned_samples else None

    @property
    def usable_share(self) -> float | None:
        """Share of what models said (samples, moral answers, comparisons) that is usable; None where nothing was."""
        said = self.traces + self.answers + self.comparisons
        return (self.traces_ok + self.answers_ok + self.comparisons_ok) / said if said else None

    @property
    def n_conflicts(self) -> int:
        """Conflicts in all."""
        return sum(self.conflicts.values())


def load_overviews(db: Database) -> list[AuditOverview]:
    """All audits, the newest first; only reads, so an audit that runs is not held up."""
    return [_load_overview(db, audit) for audit in reversed(load_audits(db))]


def _load_overview(db: Database, audit: Audit) -> AuditOverview:
    config = json.loads(audit.config) if audit.config else None
    survey = json.loads(audit.survey)
    with db.read() as connection:
        rows = [_count_rows(connection, audit.id, row) for row in (TraceRow, VerdictRow, MoralAnswerRow, ComparisonRow)]
        cells = _count_cells_by_country(connection, audit.id, of_task=survey.get("task") is not None)
    money = costs.sum_audit_cost(db, audit.id)
    (traces, traces_ok), (verdicts, verdicts_ok), (answers, answers_ok), (compared, compared_ok) = rows
    return AuditOverview(
        audit=audit,
        title=survey["task"]["source"] if survey.get("task") else survey["title"],
        runner=find_runner(db, audit.name),
        models=len(config["models"]) if config else 0,
        planned_samples=_count_planned_samples(
            config, cells, survey.get("native", {}), traces if audit.stage in FINAL_STAGES else None
        )
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
        conflicts=ConflictQueue(db, audit.id, rater="").count_by_status(),
    )


def _count_rows(connection: Connection, audit_id: int, row_class: type[SQLModel]) -> tuple[int, int]:
    c = table_of(row_class).c
    query = select(c.outcome, func.count()).where(c.audit_id == audit_id).group_by(c.outcome)
    found = {outcome: int(n) for outcome, n in connection.execute(query)}
    return sum(found.values()), found.get(Outcome.OK.value, 0)


def _count_cells_by_country(connection: Connection, audit_id: int, *, of_task: bool) -> dict[str, int]:
    """Cells that models are asked about, by country; a task's items have none."""
    c = table_of(SurveyCellRow).c
    query = select(c.country, func.count()).where(c.audit_id == audit_id).group_by(c.country)
    query = query if of_task else query.where(c.score.is_not(None))
    return {country: int(n) for country, n in connection.execute(query)}


def _count_planned_samples(
    stored_config: Any,
    cells_by_country: Mapping[str, int],
    native_languages: Mapping[str, Sequence[str]],
    n_taken: int | None,
) -> int:
    """Samples at most; where sampling may end early and has ended, those that were taken."""
    from auditor.config import AuditConfig  # takes a fifth of a second, for which no first screen should wait

    config = AuditConfig.model_validate(stored_config)
    if config.direct.is_open_ended and n_taken is not None:
        return n_taken
    samples = sum(
        n * config.samples_per_cell(native_languages.get(country, ())) for country, n in cells_by_country.items()
    )
    return len(config.models) * samples
