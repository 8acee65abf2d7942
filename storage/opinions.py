"""Rows of distributions of answers: models' opinions, and people's shares."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from auditor.domain import Cell, Outcome, canonical_json
from auditor.domain.opinions import Opinion, OpinionMode, ScaleOrder
from auditor.storage.database import Database
from auditor.storage.exclusions import apply_exclusions
from auditor.storage.opinion_tables import OpinionRow, SurveySharesRow
from auditor.storage.row_writing import replace_rows, table_of, upsert


def replace_opinions(connection: Connection, audit_id: int, opinions: Sequence[Opinion], survey_shares: str) -> None:
    """Store opinions, and the shares of people's answers as JSON, in place of those an audit had, in a transaction."""
    replace_rows(connection, OpinionRow, audit_id, [_to_row(audit_id, opinion) for opinion in opinions])
    apply_exclusions(connection, audit_id)
    replace_rows(connection, SurveySharesRow, audit_id, [{"audit_id": audit_id, "shares": survey_shares}])


def replace_survey_shares(db: Database, audit_id: int, survey_shares: str) -> None:
    """Store the shares of people's answers as JSON in place of those that an audit had."""
    row = {"audit_id": audit_id, "shares": survey_shares}
    db.write(lambda connection: replace_rows(connection, SurveySharesRow, audit_id, [row]))


def save_opinions(db: Database, audit_id: int, opinions: Sequence[Opinion]) -> None:
    """Store opinions; a stored one of the same question and sample is replaced."""
    rows = [_to_row(audit_id, opinion) for opinion in opinions]
    if rows:

        def job(connection: Connection) -> None:
            upsert(connection, OpinionRow, rows)
            apply_exclusions(connection, audit_id)

        db.write(job)


def load_opinions(db: Database, audit_id: int) -> list[Opinion]:
    """Load an audit's opinions in the order of their key."""
    table = table_of(OpinionRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(*table.primary_key)
    with db.read() as connection:
        return [_parse_row(dict(row)) for row in connection.execute(query).mappings()]


def load_survey_shares(db: Database, audit_id: int) -> str | None:
    """Load the shares of people's answers that an audit compares with, as JSON; None without opinions."""
    table = table_of(SurveySharesRow)
    with db.read() as connection:
        return connection.execute(select(table.c.shares).where(table.c.audit_id == audit_id)).scalar_one_or_none()


def _to_row(audit_id: int, opinion: Opinion) -> dict[str, Any]:
    """The row of an opinion."""
    return {
        "audit_id": audit_id,
        "model": opinion.model,
        "country": opinion.cell.country,
        "topic": opinion.cell.topic,
        "dimension": opinion.dimension,
        "group": opinion.group,
        "mode": opinion.mode,
        "scale_order": opinion.scale_order,
        "sample": opinion.sample,
        "outcome": opinion.outcome,
        "shares": None if opinion.shares is None else canonical_json(list(opinion.shares)),
        "n": opinion.n,
        "is_rescaled": opinion.is_rescaled,
        "mass": opinion.mass,
        "key": opinion.key,
        "repair_key": opinion.repair_key,
    }


def _parse_row(row: dict[str, Any]) -> Opinion:
    """The opinion of a row."""
    return Opinion(
        model=row["model"],
        cell=Cell(row["country"], row["topic"]),
        dimension=row["dimension"],
        group=row["group"],
        mode=OpinionMode(row["mode"]),
        scale_order=ScaleOrder(row["scale_order"]),
        sample=row["sample"],
        outcome=Outcome(row["outcome"]),
        shares=None if row["shares"] is None else tuple(json.loads(row["shares"])),
        n=row["n"],
        is_rescaled=bool(row["is_rescaled"]),
        mass=row["mass"],
        key=row["key"],
        repair_key=row["repair_key"],
    )
