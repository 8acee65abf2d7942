"""The append-only log of people's labels. A row is a label, or the undo of one.

A label is in force if it is its rater's last one on the unit that was not undone, and the unit's text is still the
one that was labelled. `label_draws` has the samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, func, insert, select

from auditor.domain import canonical_json
from auditor.domain.labels import Label, LabelKind, LabelUnit
from auditor.errors import StorageError
from auditor.failpoints import failpoint
from auditor.storage import hash_chain
from auditor.storage.database import Database
from auditor.storage.label_draws import load_label_sample as load_label_sample
from auditor.storage.label_tables import LabelRow
from auditor.storage.label_units import format_unit, load_contents, parse_unit
from auditor.storage.ledger import utc_now
from auditor.storage.rating_log import write_log
from auditor.storage.row_writing import coerce_values, table_of

REVIEW_SOURCE = "review"
"""`Label.source` of labels made in the review screen, which alone can be undone there."""
_ROWS_PER_PAGE = 20


class LabelAction(StrEnum):
    """What a row of the log records."""

    LABEL = "label"
    UNDO = "undo"


class LabelEntry(NamedTuple):
    """One row of the log.

    Attributes:
        of: id of the row that an undo reverts; None for a label.
        label: of an undo, the label that was undone.
        content: hash of the unit's text when it was labelled.
    """

    id: int
    act: LabelAction
    of: int | None
    label: Label
    content: str


def append_label(db: Database, audit_id: int, label: Label) -> LabelEntry:
    """Append a label; it is durable when this returns.

    Raises:
        ValueError: the kind has no such value.
        StorageError: the audit has no such unit any more, or the row could not be saved.
    """
    return append_labels(db, audit_id, [label])[0]


def append_labels(db: Database, audit_id: int, labels: Sequence[Label]) -> list[LabelEntry]:
    """Append labels, all or none; as `append_label`."""
    for label in labels:
        if label.value not in {choice.value for choice in label.unit.kind.choices}:
            raise ValueError(f"a label of a {label.unit.kind} cannot be '{label.value}'")
    return write_log(db, lambda connection: [_append_label(connection, audit_id, label) for label in labels])


def undo_label(db: Database, audit_id: int, kind: LabelKind, rater: str) -> Label | None:
    """Undo the rater's last label of a kind made in the review screen, and return it; None if there is none."""

    def job(connection: Connection) -> Label | None:
        last = _find_last_undoable(connection, audit_id, kind, rater)
        if last is None:
            return None
        values = _label_columns(audit_id, last.label, last.content) | {
            "act": LabelAction.UNDO.value,
            "of": last.id,
            "duration_s": None,
            "labelled_at": utc_now(),
        }
        _insert_row(connection, values)
        return last.label

    return write_log(db, job)


def load_labels(db: Database, audit_id: int, kind: LabelKind) -> list[Label]:
    """Load the labels in force, oldest first: at most one of each rater on each unit."""
    return [entry.label for entry in load_entries_in_force(db, audit_id, kind)]


def load_entries_in_force(db: Database, audit_id: int, kind: LabelKind) -> list[LabelEntry]:
    """Load the rows of the labels in force, oldest first."""
    with db.read() as connection:
        entries = _load_entries(connection, audit_id, kind)
        contents = load_contents(connection, audit_id, kind, {entry.label.unit for entry in entries})
    last_entries: dict[tuple[LabelUnit, str], LabelEntry] = {}
    for entry in _select_undoable(entries):
        if contents.get(entry.label.unit) == entry.content:
            last_entries[entry.label.unit, entry.label.rater] = entry
    return sorted(last_entries.values(), key=lambda entry: entry.id)


def load_entries(db: Database, audit_id: int, kind: LabelKind | None = None) -> list[LabelEntry]:
    """Load all rows of the log, oldest first, of one kind or all."""
    with db.read() as connection:
        return _load_entries(connection, audit_id, kind)


def load_new_entries(db: Database, audit_id: int, kind: LabelKind, after_id: int) -> tuple[list[LabelEntry], int]:
    """Load the rows of a kind that were appended after the row `after_id`, oldest first, and the id of the last row.

    One writer appends at a time, so that ids are in the order in which rows become visible.

    Args:
        after_id: 0 for all rows.
    """
    table = table_of(LabelRow)
    with db.read() as connection:
        if not after_id:
            last_id = connection.execute(select(func.max(table.c.id))).scalar_one() or 0
            entries = _load_entries(connection, audit_id, kind)
            return [entry for entry in entries if entry.id <= last_id], last_id
        # A condition on the audit would make SQLite search all labels of the audit instead of the last ids.
        rows = connection.execute(select(table).where(table.c.id > after_id).order_by(table.c.id)).mappings().all()
    entries = [_parse_entry(row) for row in rows if (row["audit_id"], row["kind"]) == (audit_id, kind.value)]
    return entries, rows[-1]["id"] if rows else after_id


# --- inside a transaction ---------------------------------------------------------------------------------------


def _append_label(connection: Connection, audit_id: int, label: Label) -> LabelEntry:
    """Append a label to the log and the hash chain; StorageError if the audit has no such unit."""
    content = load_contents(connection, audit_id, label.unit.kind, [label.unit]).get(label.unit)
    if content is None:
        raise StorageError(
            f"the audit has no such {label.unit.kind.noun} any more: {', '.join(label.unit.parts)}.",
            "The audit was run again since. Close the review, and open it again.",
        )
    values = _label_columns(audit_id, label, content)
    return LabelEntry(_insert_row(connection, values), LabelAction.LABEL, None, label, content)


def _label_columns(audit_id: int, label: Label, content: str) -> dict[str, Any]:
    """Columns of a label's row, without its id."""
    return {
        "audit_id": audit_id,
        "kind": label.unit.kind.value,
        "unit": format_unit(label.unit),
        "rater": label.rater,
        "act": LabelAction.LABEL.value,
        "of": None,
        "value": label.value,
        "aspects": canonical_json(dict(label.aspects)),
        "note": label.note,
        "content": content,
        "text_hash": label.text_hash,
        "duration_s": label.duration_s,
        "source": label.source,
        "labelled_at": label.labelled_at.isoformat(timespec="milliseconds"),
    }


def _insert_row(connection: Connection, values: Mapping[str, Any]) -> int:
    """Insert a row and its link in the hash chain; return its id."""
    table = table_of(LabelRow)
    row = connection.execute(insert(table).returning(*table.c), coerce_values(LabelRow, values)).mappings().one()
    failpoint("label")
    hash_chain.append_links(connection, "label", [coerce_values(LabelRow, dict(row))])
    return int(row["id"])


def _find_last_undoable(connection: Connection, audit_id: int, kind: LabelKind, rater: str) -> LabelEntry | None:
    """Find the rater's last label made in the review screen that was not undone; None if there is none.

    Rows are read from the last one back, so that the cost grows with the undos in a row, not with the labels.
    """
    c = table_of(LabelRow).c
    of_rater = c.audit_id == audit_id, c.kind == kind.value, c.rater == rater, c.source == REVIEW_SOURCE
    query = select(table_of(LabelRow)).where(*of_rater).order_by(c.id.desc()).limit(_ROWS_PER_PAGE)
    undone: set[int] = set()
    first_id = None
    while rows := connection.execute(query if first_id is None else query.where(c.id < first_id)).mappings().all():
        for row in rows:
            entry = _parse_entry(row)
            if entry.act is LabelAction.UNDO:
                undone.add(entry.of or 0)
            elif entry.id not in undone:
                return entry
        first_id = rows[-1]["id"]
    return None


def _load_entries(connection: Connection, audit_id: int, kind: LabelKind | None) -> list[LabelEntry]:
    """Load rows of the log, oldest first, of one kind or all."""
    table = table_of(LabelRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(table.c.id)
    if kind is not None:
        query = query.where(table.c.kind == kind.value)
    return [_parse_entry(row) for row in connection.execute(query).mappings()]


def _parse_entry(row: RowMapping) -> LabelEntry:
    """Convert a row of the log to an entry."""
    label = Label(
        unit=parse_unit(LabelKind(row["kind"]), row["unit"]),
        rater=row["rater"],
        value=row["value"],
        labelled_at=datetime.fromisoformat(row["labelled_at"]),
        aspects=json.loads(row["aspects"]),
        note=row["note"],
        text_hash=row["text_hash"],
        duration_s=row["duration_s"],
        source=row["source"],
    )
    return LabelEntry(row["id"], LabelAction(row["act"]), row["of"], label, row["content"])


def _select_undoable(entries: Iterable[LabelEntry]) -> list[LabelEntry]:
    """Select the labels that were not undone, oldest first."""
    labels: dict[int, LabelEntry] = {}
    for entry in entries:
        if entry.act is LabelAction.LABEL:
            labels[entry.id] = entry
        elif entry.of is not None:
            labels.pop(entry.of, None)
    return list(labels.values())
