"""Answers that people declare invalid: they are lost, with the verdicts on them, until the declaration is undone.

A declaration is appended to the log and the hash chain. It applies to recorded answers and to those that are recorded
later. Rows are kept as they were, so that an undo restores them exactly.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Table, and_, delete, func, insert, or_, select, update

from auditor.domain import (
    AlteredTraceVerdict,
    Contest,
    Guess,
    Outcome,
    Restatement,
    SentencePairScore,
    Trace,
    Verdict,
    canonical_json,
)
from auditor.domain.opinions import Opinion
from auditor.errors import UsageError
from auditor.storage import hash_chain
from auditor.storage.database import Database
from auditor.storage.exclusion_tables import ExcludedContentRow, ExclusionRow
from auditor.storage.ledger import utc_now
from auditor.storage.row_writing import coerce_values, table_of, upsert

EXCLUDE, UNDO = "exclude", "undo"
"""Acts in the log."""
VALUE_COLUMNS: dict[type, tuple[str, ...]] = {
    Trace: ("score", "text", "answer"),
    SentencePairScore: ("difference",),
    Opinion: ("shares", "n", "is_rescaled", "mass"),
}
"""Classes of answers on cells, and their columns that an exclusion empties."""
DEPENDENT_RECORDS: Sequence[type] = (Verdict, Guess, Restatement, AlteredTraceVerdict, Contest)
"""Classes of what judges say of a trace; an exclusion deletes them."""
_RECORD_CLASSES = {table_of(record_class).name: record_class for record_class in (*VALUE_COLUMNS, *DEPENDENT_RECORDS)}


@dataclass(frozen=True, slots=True)
class AnswerSelection:
    """Answers that match all of these; None matches any. With a sample's number, only direct answers match."""

    model: str | None = None
    country: str | None = None
    topic: str | None = None
    sample: int | None = None


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A declaration in force.

    Attributes:
        excluded_at: ISO 8601 in UTC.
        n_answers: number of recorded answers that match.
    """

    id: int
    selection: AnswerSelection
    reason: str
    excluded_at: str
    n_answers: int


def exclude_answers(db: Database, audit_id: int, selection: AnswerSelection, reason: str) -> Exclusion:
    """Declare answers invalid; their rows and those that depend on them are changed in the same transaction.

    Raises:
        UsageError: no recorded answer matches, or all that match are excluded already.
        StorageError: nothing was saved.
    """

    def job(connection: Connection) -> int:
        if not any(
            _count_matches(connection, audit_id, record_class, selection, is_excluded=False)
            for record_class in VALUE_COLUMNS
        ):
            raise UsageError(
                "no recorded answer matches that is not excluded already.",
                "Check the names: `auditor traces` lists the answers, `auditor exclude AUDIT --list` the exclusions. "
                "Scores that were imported without answers cannot be excluded: import a file without them.",
            )
        exclusion_id = _append(connection, audit_id, {"act": EXCLUDE, "reason": reason, **asdict(selection)})
        _withdraw(connection, audit_id, selection)
        return exclusion_id

    exclusion_id = db.write(job)
    return next(exclusion for exclusion in load_exclusions(db, audit_id) if exclusion.id == exclusion_id)


def undo_exclusion(db: Database, audit_id: int, exclusion_id: int, reason: str = "") -> None:
    """Undo a declaration: its answers count again as before, unless another declaration includes them.

    Raises:
        UsageError: the audit has no such declaration in force.
        StorageError: nothing was saved.
    """

    def job(connection: Connection) -> None:
        if exclusion_id not in [row["id"] for row in _load_rows_in_force(connection, audit_id)]:
            raise UsageError(
                f"the audit has no exclusion {exclusion_id} in force.", "List them: auditor exclude AUDIT --list"
            )
        _append(connection, audit_id, {"act": UNDO, "of": exclusion_id, "reason": reason})
        _restore(connection, audit_id)
        apply_exclusions(connection, audit_id)

    db.write(job)


def load_exclusions(db: Database, audit_id: int) -> list[Exclusion]:
    """Load an audit's declarations in force, the oldest first."""
    with db.read() as connection:
        return [
            Exclusion(
                id=row["id"],
                selection=_parse_selection(row),
                reason=row["reason"],
                excluded_at=row["excluded_at"],
                n_answers=sum(
                    _count_matches(connection, audit_id, record_class, _parse_selection(row), is_excluded=True)
                    for record_class in VALUE_COLUMNS
                ),
            )
            for row in _load_rows_in_force(connection, audit_id)
        ]


def apply_exclusions(connection: Connection, audit_id: int) -> None:
    """Exclude the rows that match a declaration in force; called in every transaction that writes answers."""
    for row in _load_rows_in_force(connection, audit_id):
        _withdraw(connection, audit_id, _parse_selection(row))


# --- inside a transaction ---------------------------------------------------------------------------------------


def _load_rows_in_force(connection: Connection, audit_id: int) -> list[RowMapping]:
    """Load an audit's declarations that were not undone, the oldest first."""
    table = table_of(ExclusionRow)
    rows = connection.execute(select(table).where(table.c.audit_id == audit_id).order_by(table.c.id)).mappings().all()
    undone = {row["of"] for row in rows if row["act"] == UNDO}
    return [row for row in rows if row["act"] == EXCLUDE and row["id"] not in undone]


def _parse_selection(row: RowMapping) -> AnswerSelection:
    return AnswerSelection(row["model"], row["country"], row["topic"], row["sample"])


def _append(connection: Connection, audit_id: int, values: dict[str, Any]) -> int:
    """Append a row to the log, and its link to the hash chain; return its id."""
    table = table_of(ExclusionRow)
    columns = coerce_values(ExclusionRow, {"audit_id": audit_id, "excluded_at": utc_now(), **values})
    row = connection.execute(insert(table).returning(*table.c), columns).mappings().one()
    hash_chain.append_links(connection, table.name, [coerce_values(ExclusionRow, dict(row))])
    return int(row["id"])


def _is_selected(record_class: type, audit_id: int, selection: AnswerSelection) -> ColumnElement[bool] | None:
    """Condition: a row matches a selection; None if no row of the class can."""
    c = table_of(record_class).c
    if selection.sample is not None and record_class in (SentencePairScore, Opinion):
        return None
    conditions = [c.audit_id == audit_id]
    for name, value in asdict(selection).items():
        if value is None:
            continue
        if record_class is Contest and name == "model":
            conditions.append(or_(c.left == value, c.right == value))
        elif name in c:
            conditions.append(c[name] == value)
    return and_(*conditions)


def _count_matches(
    connection: Connection, audit_id: int, record_class: type, selection: AnswerSelection, *, is_excluded: bool
) -> int:
    """Count the answers of a class that match, those that are excluded or those that are not."""
    table, condition = table_of(record_class), _is_selected(record_class, audit_id, selection)
    if condition is None:
        return 0
    is_counted = (table.c.outcome == Outcome.EXCLUDED.value) == is_excluded
    query = select(func.count()).select_from(table).where(condition, is_counted)
    return int(connection.execute(query).scalar_one())


def _withdraw(connection: Connection, audit_id: int, selection: AnswerSelection) -> None:
    """Mark matching answers as excluded, and delete what depends on them; all rows are kept as they were."""
    for record_class, value_columns in VALUE_COLUMNS.items():
        table, condition = table_of(record_class), _is_selected(record_class, audit_id, selection)
        if condition is not None:
            is_new = and_(condition, table.c.outcome != Outcome.EXCLUDED.value)
            if _keep_rows(connection, audit_id, table, is_new):
                emptied = dict.fromkeys(value_columns)
                connection.execute(update(table).where(is_new).values(outcome=Outcome.EXCLUDED.value, **emptied))
    for record_class in DEPENDENT_RECORDS:
        table, condition = table_of(record_class), _is_selected(record_class, audit_id, selection)
        if condition is not None and _keep_rows(connection, audit_id, table, condition):
            connection.execute(delete(table).where(condition))


def _keep_rows(connection: Connection, audit_id: int, table: Table, condition: ColumnElement[bool]) -> int:
    """Store the rows that match a condition as they are, and return their number."""
    key_names = [column.name for column in table.primary_key]
    rows = connection.execute(select(table).where(condition)).mappings().all()
    contents = [
        {
            "audit_id": audit_id,
            "source": table.name,
            "row": canonical_json([row[name] for name in key_names]),
            "content": json.dumps(dict(row)),
        }
        for row in rows
    ]
    upsert(connection, ExcludedContentRow, contents)
    return len(contents)


def _restore(connection: Connection, audit_id: int) -> None:
    """Write all excluded rows of an audit as they were."""
    table = table_of(ExcludedContentRow)
    query = select(table.c.source, table.c.content).where(table.c.audit_id == audit_id)
    contents: dict[str, list[dict[str, Any]]] = {}
    for source, content in connection.execute(query):
        contents.setdefault(source, []).append(json.loads(content))
    for source, rows in contents.items():
        upsert(connection, _RECORD_CLASSES[source], rows)
    connection.execute(delete(table).where(table.c.audit_id == audit_id))
