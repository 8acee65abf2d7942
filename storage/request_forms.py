"""How the direct answers of an audit were requested: scores by form, and parameters not sent as configured."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, literal, select

from auditor.domain import Outcome, Purpose, Trace
from auditor.storage.call_records import StoredAnswer
from auditor.storage.count_queries import fetch_rows
from auditor.storage.database import Database
from auditor.storage.row_writing import table_of


class FormScore(NamedTuple):
    """Mean score of a model's usable direct answers on one cell that were requested in one form.

    Attributes:
        answers: number of these answers.
    """

    model: str
    form: str
    country: str
    topic: str
    score: float
    answers: int


class Alteration(NamedTuple):
    """A way in which some of a model's requests for one purpose were sent otherwise than configured.

    Attributes:
        altered: see `auditor.domain.Answer`.
    """

    name: str
    purpose: str
    altered: str | None


def load_direct_alterations(db: Database, audit_id: int) -> list[Alteration]:
    """Ways in which each model's direct questions were sent, in the order of the models' names."""
    trace, answer = table_of(Trace).c, table_of(StoredAnswer).c
    query = (
        select(trace.model, literal(Purpose.DIRECT.value), answer.altered)
        .distinct()
        .select_from(table_of(Trace).join(table_of(StoredAnswer), answer.key == trace.key))
        .where(trace.audit_id == audit_id)
        .order_by(trace.model, answer.altered.nulls_first())
    )
    return fetch_rows(db, Alteration._make, query)


def load_scores_by_form(db: Database, audit_id: int) -> list[FormScore]:
    """Mean scores of an audit's direct answers by model, form and cell, in this order; free texts have no form."""
    trace, answer = table_of(Trace).c, table_of(StoredAnswer).c
    group = (trace.model, answer.form, trace.country, trace.topic)
    query = (
        select(*group, func.avg(trace.score), func.count())
        .select_from(table_of(Trace).join(table_of(StoredAnswer), answer.key == trace.key))
        .where(trace.audit_id == audit_id, trace.outcome == Outcome.OK.value, trace.score.is_not(None))
        .where(answer.form.is_not(None))
        .group_by(*group)
        .order_by(*group)
    )
    return fetch_rows(db, FormScore._make, query)
