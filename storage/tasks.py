"""The items of a task, as they were when the audit was planned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select

from auditor.domain import AnswerKind, Cell, Outcome, Task, TaskItem
from auditor.storage.database import Database, table_of
from auditor.storage.tables import TaskItemRow, TraceRow


def task_metadata(task: Task | None) -> dict[str, Any] | None:
    """What an audit's row says of its task: all but the items; the digest tells whether they are others."""
    if task is None:
        return None
    facts = {f.name: getattr(task, f.name) for f in fields(task) if f.name != "items"}
    return facts | {"kind": task.kind.value, "range": list(task.range) if task.range else None}


def load_audit_task(db: Database, audit_id: int, metadata: Mapping[str, Any] | None) -> Task | None:
    """The task with its items; None for an audit of a survey."""
    if metadata is None:
        return None
    table = table_of(TaskItemRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(table.c.position)
    with db.read() as connection:
        items = [_parse_item(row) for row in connection.execute(query).mappings()]
    kind, between = AnswerKind(metadata["kind"]), metadata["range"]
    given = {**metadata, "kind": kind, "range": tuple(between) if between else None}
    return Task(**given, items={item.id: item for item in items})


def load_item(db: Database, audit_id: int, item_id: str) -> TaskItem | None:
    """One item; None where the audit has none of that id."""
    table = table_of(TaskItemRow)
    query = select(table).where(table.c.audit_id == audit_id, table.c.id == item_id)
    with db.read() as connection:
        row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _parse_item(row)


def load_answers(db: Database, audit_id: int) -> dict[tuple[str, Cell, int], str]:
    """Every answer that could be read, by model, item and sample; no text is."""
    c = table_of(TraceRow).c
    query = select(c.model, c.country, c.topic, c.sample, c.answer).where(c.audit_id == audit_id)
    query = query.where(c.answer.is_not(None), c.outcome == Outcome.OK.value)
    with db.read() as connection:
        return {(model, Cell(*cell), n): said for model, *cell, n, said in connection.execute(query)}


def save_items(connection: Connection, audit_id: int, task: Task | None) -> None:
    """Store a task's items in place of those that the audit had."""
    table = table_of(TaskItemRow)
    connection.execute(delete(table).where(table.c.audit_id == audit_id))
    rows = [
        {
            "audit_id": audit_id,
            "id": one.id,
            "position": position,
            "question": one.question,
            "context": one.context,
            "options": json.dumps(one.options, ensure_ascii=False),
            "truth": one.truth,
        }
        for position, one in enumerate(task.items.values() if task else ())
    ]
    if rows:
        connection.execute(insert(table), rows)


def _parse_item(row: RowMapping) -> TaskItem:
    options = tuple(json.loads(row["options"]))
    return TaskItem(row["id"], row["question"], row["context"], options, row["truth"])
