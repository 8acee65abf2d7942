"""The audits of a database at a glance: how far each is, how much of it came back, what it cost, what is open."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select, union

from auditor.domain import Outcome
from auditor.storage.audits import WHOLE, Audit, all_audits
from auditor.storage.database import Database, table_of
from auditor.storage.reviews import Queue
from auditor.storage.standing import Standing
from auditor.storage.tables import AnswerRow, CallRow, ComparisonRow, SurveyCellRow, TraceRow, VerdictRow


@dataclass(frozen=True, slots=True)
class Overview:
    """One audit at a glance.

    Attributes:
        runner: the process that runs it now, as `process 42 on host`; None where none does, or nothing is known.
        planned: samples that the config asks for; None for imported scores.
        traces, verdicts: rows so far, and how many of them are `ok`.
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
        """Share of the samples taken that are usable, in [0, 1]; None where none was taken."""
        return self.traces_ok / self.traces if self.traces else None

    @property
    def total(self) -> int:
        """Conflicts in all."""
        return sum(self.conflicts.values())


def overviews(db: Database) -> list[Overview]:
    """All audits, the newest first; only reads, so an audit that runs is not held up."""
    return [_overview(db, audit) for audit in reversed(all_audits(db))]


def _overview(db: Database, audit: Audit) -> Overview:
    config = json.loads(audit.config) if audit.config else None
    with db.read() as connection:
        traces, traces_ok = _rows(connection, audit.id, TraceRow)
        verdicts, verdicts_ok = _rows(connection, audit.id, VerdictRow)
        cost, unpriced = _cost(connection, audit.id)
        cells = _cells(connection, audit.id)
    survey = json.loads(audit.survey)
    return Overview(
        audit=audit,
        title=survey["title"],
        runner=runner(db, audit.name),
        models=len(config["models"]) if config else 0,
        planned=_planned(config, cells, survey.get("native", {})) if config else None,
        traces=traces,
        traces_ok=traces_ok,
        verdicts=verdicts,
        verdicts_ok=verdicts_ok,
        cost_usd=cost,
        unpriced=unpriced,
        conflicts=Queue(db, audit.id, rater="").counts(),
    )


def _rows(connection: Connection, audit_id: int, row: type[TraceRow] | type[VerdictRow]) -> tuple[int, int]:
    c = table_of(row).c
    query = select(c.outcome, func.count()).where(c.audit_id == audit_id).group_by(c.outcome)
    found = {outcome: int(n) for outcome, n in connection.execute(query)}
    return sum(found.values()), found.get(Outcome.OK.value, 0)


def _cost(connection: Connection, audit_id: int) -> tuple[float | None, int]:
    tables = [table_of(row).c for row in (TraceRow, VerdictRow, ComparisonRow, CallRow)]
    keys = union(*(select(c.key).where(c.audit_id == audit_id, c.key.is_not(None)) for c in tables)).subquery()
    answer = table_of(AnswerRow)
    known = func.count(answer.c.cost_usd)
    query = select(func.sum(answer.c.cost_usd), func.count() - known).select_from(
        answer.join(keys, answer.c.key == keys.c.key)
    )
    total, unpriced = connection.execute(query).one()
    return total, int(unpriced)


def _cells(connection: Connection, audit_id: int) -> dict[str, int]:
    """Cells that models are asked about, by country."""
    c = table_of(SurveyCellRow).c
    query = select(c.country, func.count()).where(c.audit_id == audit_id, c.score.is_not(None)).group_by(c.country)
    return {country: int(n) for country, n in connection.execute(query)}


def _planned(stored: Any, cells: Mapping[str, int], native: Mapping[str, Sequence[str]]) -> int:
    from auditor.config import AuditConfig  # takes a fifth of a second, for which no first screen should wait

    config = AuditConfig.model_validate(stored)
    samples = sum(n * config.samples_in(native.get(country, ())) for country, n in cells.items())
    return len(config.models) * samples


def runner(db: Database, name: str) -> str | None:
    """Who runs an audit now, by the note beside its lock; the lock itself is left alone."""
    if db.path is None:
        return None
    note = db.path.with_name(f"{db.path.name}.{name}.holder")
    try:
        who = note.read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.fullmatch(r"process (\d+) on (.*)", who, re.DOTALL)
    if found is None or (found[2] == platform.node() and not _is_alive(int(found[1]))):
        return None
    return who


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
