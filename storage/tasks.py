"""Rows of a task's items, as they were when the audit was planned, and the models' answers to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import select

from auditor.domain import AnswerKind, Cell, Outcome, Task, TaskItem, Trace
from auditor.storage.database import Database
from auditor.storage.records import load_records
from auditor.storage.row_writing import table_of


def build_task_metadata(task: Task | None) -> dict[str, Any] | None:
    """Fields of a task for the audit's row: all but the items, whose changes its digest shows."""
    if task is None:
        return None
    metadata = {f.name: getattr(task, f.name) for f in fields(task) if f.name not in ("items", "people")}
    if task.people:  # earlier versions did not store these: their audits would count as changed
        metadata["people"] = list(task.people)
    return metadata | {"kind": task.kind.value, "range": list(task.range) if task.range else None}


def load_audit_task(db: Database, audit_id: int, metadata: Mapping[str, Any] | None) -> Task | None:
    """Load an audit's task with its items; None for an audit of a survey (no `metadata`)."""
    if metadata is None:
        return None
    items = load_records(db, audit_id, TaskItem)
    kind, bounds = AnswerKind(metadata["kind"]), metadata["range"]
    people = tuple(metadata.get("people", ()))
    task_fields = {**metadata, "kind": kind, "range": tuple(bounds) if bounds else None, "people": people}
    return Task(**task_fields, items={item.id: item for item in items})


def load_item(db: Database, audit_id: int, item_id: str) -> TaskItem | None:
    """Load one item; None if the audit has none of this id."""
    items = load_records(db, audit_id, TaskItem, id=item_id)
    return items[0] if items else None


def load_answers(db: Database, audit_id: int) -> dict[tuple[str, Cell, int], str]:
    """Load all parsed answers by model, item and sample, without the traces' texts."""
    c = table_of(Trace).c
    query = select(c.model, c.country, c.topic, c.sample, c.answer).where(c.audit_id == audit_id)
    query = query.where(c.answer.is_not(None), c.outcome == Outcome.OK.value)
    with db.read() as connection:
        return {(model, Cell(*cell), sample): answer for model, *cell, sample, answer in connection.execute(query)}
