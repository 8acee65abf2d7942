"""The append-only log of people's labels. A row is a label, or the undo of one.

A label is in force if it is its rater's last one on the unit that was not undone, and the unit's text is still the
one that was labelled. `label_draws` has the samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, func, select

from auditor.domain.labels import Label, LabelAction, LabelEntry, LabelKind, LabelUnit
from auditor.errors import StorageError
from auditor.failpoints import failpoint
from auditor.storage import hash_chain
from auditor.storage.database import Database
from auditor.storage.label_draws import load_label_sample as load_label_sample
from auditor.storage.label_units import load_contents
from auditor.storage.rating_log import write_log
from auditor.storage.records import read_records
from auditor.storage.row_writing import select_records, table_of

REVIEW_SOURCE = "review"
"""`Label.source` of labels made in the review screen, which alone can be undone there."""
_ROWS_PER_PAGE = 20


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
        label = replace(last.label, duration_s=None, labelled_at=datetime.now(UTC))
        _append(connection, audit_id, LabelEntry(0, audit_id, LabelAction.UNDO, last.id, label, last.content))
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
    table = table_of(LabelEntry)
    with db.read() as connection:
        if not after_id:
            last_id = connection.execute(select(func.max(table.c.id))).scalar_one() or 0
            entries = _load_entries(connection, audit_id, kind)
            return [entry for entry in entries if entry.id <= last_id], last_id
        # A condition on the audit would make SQLite search all labels of the audit instead of the last ids.
        entries = select_records(connection, LabelEntry, table.c.id > after_id, order_by=[table.c.id])
    last_id = entries[-1].id if entries else after_id
    return [entry for entry in entries if (entry.audit_id, entry.label.unit.kind) == (audit_id, kind)], last_id


# --- inside a transaction ---------------------------------------------------------------------------------------


def _append_label(connection: Connection, audit_id: int, label: Label) -> LabelEntry:
    """Append a label to the log and the hash chain; StorageError if the audit has no such unit."""
    content = load_contents(connection, audit_id, label.unit.kind, [label.unit]).get(label.unit)
    if content is None:
        raise StorageError(
            f"the audit has no such {label.unit.kind.noun} any more: {', '.join(label.unit.parts)}.",
            "The audit was run again since. Close the review, and open it again.",
        )
    entry = LabelEntry(0, audit_id, LabelAction.LABEL, None, label, content)
    return replace(entry, id=_append(connection, audit_id, entry))


def _append(connection: Connection, audit_id: int, entry: LabelEntry) -> int:
    """Append an entry to the log and the hash chain; return its id."""
    entry_id = hash_chain.append_entry(connection, audit_id, entry)
    failpoint("label")
    return entry_id


def _find_last_undoable(connection: Connection, audit_id: int, kind: LabelKind, rater: str) -> LabelEntry | None:
    """Find the rater's last label made in the review screen that was not undone; None if there is none.

    Rows are read from the last one back, so that the cost grows with the undos in a row, not with the labels.
    """
    c = table_of(LabelEntry).c
    of_rater = c.audit_id == audit_id, c.kind == kind.value, c.rater == rater, c.source == REVIEW_SOURCE
    undone: set[int] = set()
    before: list[ColumnElement[bool]] = []
    while entries := select_records(
        connection, LabelEntry, *of_rater, *before, order_by=[c.id.desc()], limit=_ROWS_PER_PAGE
    ):
        for entry in entries:
            if entry.act is LabelAction.UNDO:
                undone.add(entry.of or 0)
            elif entry.id not in undone:
                return entry
        before = [c.id < entries[-1].id]
    return None


def _load_entries(connection: Connection, audit_id: int, kind: LabelKind | None) -> list[LabelEntry]:
    """Load rows of the log, oldest first, of one kind or all."""
    return read_records(connection, audit_id, LabelEntry, kind=kind and kind.value)


def _select_undoable(entries: Iterable[LabelEntry]) -> list[LabelEntry]:
    """Select the labels that were not undone, oldest first."""
    labels: dict[int, LabelEntry] = {}
    for entry in entries:
        if entry.act is LabelAction.LABEL:
            labels[entry.id] = entry
        elif entry.of is not None:
            labels.pop(entry.of, None)
    return list(labels.values())
