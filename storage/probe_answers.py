"""Answers of the probes with a stage of their own: their row classes, and counts by outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, func, select
from sqlmodel import SQLModel

from auditor.config.probes import SECTION_BY_PROBE
from auditor.domain import Outcome
from auditor.storage.database import Database
from auditor.storage.row_writing import table_of

ANSWER_ROWS: Mapping[str, type[SQLModel]] = {
    name: section_class.parts.load("answer_row") for name, section_class in SECTION_BY_PROBE.items()
}
"""Row class of a probe's answers, by the probe's name."""


class AnswerCount(NamedTuple):
    """Number of recorded answers, and of those whose outcome is `ok`."""

    n: int
    ok: int


def count_answers(connection: Connection, audit_id: int, row_class: type[SQLModel]) -> AnswerCount:
    """Count an audit's rows of a class with the column `outcome`."""
    c = table_of(row_class).c
    query = select(c.outcome, func.count()).where(c.audit_id == audit_id).group_by(c.outcome)
    n_by_outcome = {outcome: int(n) for outcome, n in connection.execute(query)}
    return AnswerCount(sum(n_by_outcome.values()), n_by_outcome.get(Outcome.OK.value, 0))


def count_probe_answers(connection: Connection, audit_id: int) -> dict[str, AnswerCount]:
    """Count an audit's answers of each probe, by the probe's name."""
    return {name: count_answers(connection, audit_id, row_class) for name, row_class in ANSWER_ROWS.items()}


def list_answered_probes(db: Database, audit_id: int) -> list[str]:
    """List the names of the probes that an audit has answers to, usable or not."""
    columns = {name: table_of(row_class).c for name, row_class in ANSWER_ROWS.items()}
    queries = {name: select(c.audit_id).where(c.audit_id == audit_id).limit(1) for name, c in columns.items()}
    with db.read() as connection:
        return [name for name, query in queries.items() if connection.execute(query).first() is not None]


def list_answering_models(db: Database, audit_id: int, probes: Iterable[str] = tuple(ANSWER_ROWS)) -> list[str]:
    """List the names of the models with answers to some probes, in order.

    Judges, in tables with the column `judge`, are left out.
    """
    columns = [table_of(ANSWER_ROWS[probe]).c for probe in probes]
    queries = [select(c.model).where(c.audit_id == audit_id).distinct() for c in columns if "judge" not in c]
    with db.read() as connection:
        return sorted({name for query in queries for name in connection.execute(query).scalars()})
