"""People's labels: units that can be labelled, random samples of them, and the append-only log."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from auditor.domain import Outcome, Ruling, Trace, Verdict, canonical_hash
from auditor.domain.labels import (
    EQUIVALENCE,
    DrawnUnit,
    Label,
    LabelAction,
    LabelDraw,
    LabelEntry,
    LabelKind,
    LabelUnit,
    Stratum,
    UnitToLabel,
)
from auditor.errors import StorageError
from auditor.failpoints import failpoint
from auditor.storage import hash_chain
from auditor.storage.database import Database
from auditor.storage.ledger import utc_now
from auditor.storage.probe_results import find_label_form, find_labelled_probe
from auditor.storage.rating_log import write_log
from auditor.storage.records import read_records
from auditor.storage.row_classes import select_records, table_of

NO_MAJORITY = "tie"
"""Verdict of a panel of which as many judges say VALID as INVALID."""
NO_VERDICT = "none"
"""Verdict of a panel without a usable verdict."""
_ROWS_PER_CHUNK = 10_000
TRACE_PARTS = ("model", "country", "topic", "sample")


def list_part_names(kind: LabelKind) -> tuple[str, ...]:
    """Names of `LabelUnit.parts`, as columns of imports and exports."""
    return TRACE_PARTS if kind is LabelKind.TRACE else find_label_form(kind).parts


class LabelableUnit(NamedTuple):
    """A unit that could be in a sample.

    Attributes:
        attributes: what a sample can be stratified by, by name: the parts of the unit, and language and verdict of the
            panel for a trace.
        content: SHA-256 of what identifies its text.
    """

    unit: LabelUnit
    attributes: Mapping[str, str]
    content: str


def load_labelable_units(db: Database, audit_id: int, kind: LabelKind) -> list[LabelableUnit]:
    """Load all units of a kind that an audit has now, in order of their parts.

    These are the traces with the outcome `ok`; the pairs of answers that a judge was asked about, and those to two
    wordings of a question; or the comparisons in their standard form.
    """
    with db.read() as connection:
        verdicts = _load_panel_verdicts(connection, audit_id) if kind is LabelKind.TRACE else {}
        units = []
        for unit, attributes, content in _iter_units(connection, audit_id, kind):
            if kind is LabelKind.TRACE:
                attributes["verdict"] = verdicts.get(unit.parts, NO_VERDICT)
            units.append(LabelableUnit(unit, attributes, content))
    return sorted(units, key=lambda labelable: labelable.unit.parts)


def select_drawable_units(units: Sequence[LabelableUnit], draw: LabelDraw | None = None) -> list[LabelableUnit]:
    """Select the units that a sample is drawn from.

    Where judges have reviewed some of the traces, a sample measures the judges, so that the other traces are left out.

    Args:
        units: all units of a kind.
        draw: a sample that was drawn. One of before pairs without a judge could be drawn stands for the other pairs.
    """
    judged = [unit for unit in units if unit.attributes.get("verdict") != NO_VERDICT]
    with_judge = [unit for unit in judged if unit.attributes.get("purpose") != EQUIVALENCE]
    if draw is not None and with_judge and hash_population(with_judge) == draw.population_hash:
        return with_judge
    return judged or list(units)


def hash_population(units: Sequence[LabelableUnit]) -> str:
    """SHA-256 of all units that could be drawn, in order, and of their texts."""
    return canonical_hash([[list(unit.unit.parts), unit.content] for unit in units])


def load_contents(
    connection: sa.Connection, audit_id: int, kind: LabelKind, units: Iterable[LabelUnit]
) -> dict[LabelUnit, str]:
    """Load the hash that identifies each unit's text now, of those of `units` that the audit has.

    One query for each unit finds it by the primary key; SQLite scans the table for a query of several.
    """
    return {unit: content for unit in units for _, _, content in _iter_units(connection, audit_id, kind, unit)}


def _iter_units(
    connection: sa.Connection, audit_id: int, kind: LabelKind, unit: LabelUnit | None = None
) -> Iterator[tuple[LabelUnit, dict[str, str], str]]:
    """Yield all units of a kind, or the given one if it exists, with attributes and the hash of their text."""
    if kind is LabelKind.TRACE:
        query, key_columns = _query_traces(audit_id)
    else:
        query, key_columns = find_labelled_probe(kind).query_label_units(audit_id)
    if unit is None:
        query = query.execution_options(yield_per=_ROWS_PER_CHUNK)
    else:
        query = query.where(_is_unit(unit, key_columns))
    result = connection.execute(query)
    names = [name for name in list(result.keys()) if not name.startswith("content")]
    n_parts, n_attributes = len(key_columns), len(names)
    for row in result:
        values = [str(value) for value in row[:n_attributes]]
        content = _hash_content(row[n_attributes:])
        yield LabelUnit(kind, tuple(values[:n_parts])), dict(zip(names, values, strict=True)), content


def _is_unit(unit: LabelUnit, key_columns: Mapping[str, sa.ColumnElement[Any]]) -> sa.ColumnElement[bool]:
    """Condition: a row is of this unit; never true if a part that is a number in the database is none."""
    if any(
        _is_number(column) and not part.isdecimal()
        for column, part in zip(key_columns.values(), unit.parts, strict=True)
    ):
        return sa.false()
    return sa.and_(
        *(
            column == (int(part) if _is_number(column) else part)
            for column, part in zip(key_columns.values(), unit.parts, strict=True)
        )
    )


def _hash_content(values: Sequence[str | None]) -> str:
    """SHA-256 of what identifies the text of a unit."""
    text = "\0".join("" if value is None else f"={value}" for value in values)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_number(column: sa.ColumnElement[Any]) -> bool:
    return column.type.python_type is int


UnitQuery = tuple[sa.Select[*tuple[Any, ...]], Mapping[str, sa.ColumnElement[Any]]]
"""A query of units, and its columns by the names of the parts."""


def _query_traces(audit_id: int) -> UnitQuery:
    """Query the traces with the outcome `ok`.

    The text of a recorded answer is identified by its key, which is much shorter.
    """
    c = table_of(Trace).c
    key_columns = {name: c[name] for name in TRACE_PARTS}
    imported_text = sa.case((c.key.is_(None), c.text))
    query = sa.select(
        *key_columns.values(),
        c.language,
        c.key.label("content_key"),
        sa.func.coalesce(c.repeat_key, c.repair_key).label("content_repair_key"),
        imported_text.label("content_text"),
    )
    return query.where(c.audit_id == audit_id, c.outcome == Outcome.OK.value), key_columns


def _load_panel_verdicts(connection: sa.Connection, audit_id: int) -> dict[tuple[str, ...], str]:
    """Load the majority of the judges' usable verdicts on each trace, by the parts of its unit."""
    c = table_of(Verdict).c
    trace = (c.model, c.country, c.topic, c.sample)
    balance = sa.func.sum(sa.case((c.ruling == Ruling.VALID.value, sa.literal(1)), else_=sa.literal(-1)))
    query = sa.select(*trace, balance).where(c.audit_id == audit_id, c.outcome == Outcome.OK.value).group_by(*trace)
    return {
        (model, country, topic, str(sample)): _name_majority(surplus)
        for model, country, topic, sample, surplus in connection.execute(query)
    }


def _name_majority(surplus: int) -> str:
    """Verdict of a panel by the number of VALID minus that of INVALID."""
    if surplus == 0:
        return NO_MAJORITY
    return Ruling.VALID.value if surplus > 0 else Ruling.INVALID.value


@dataclass(frozen=True, slots=True)
class LabelFrame:
    """The units from which a sample was drawn.

    Attributes:
        units: all units, each with its stratum when the sample was drawn, in order of their parts.
        is_outdated: whether the audit has other units or other texts by now. Then `units` is empty: the sample does not
            stand for what the audit has.
    """

    units: tuple[tuple[LabelUnit, Stratum], ...]
    is_outdated: bool


def load_draw(db: Database, audit_id: int, kind: LabelKind) -> LabelDraw | None:
    """Load how the sample in force was drawn; None if there is no sample."""
    with db.read() as connection:
        return _load_draw(connection, audit_id, kind)


def load_label_sample(db: Database, audit_id: int, kind: LabelKind) -> list[UnitToLabel]:
    """Load the sample in force, in the order in which raters label it; empty if there is none.

    The inclusion probability of a drawn unit is the drawn share of its stratum.
    """
    with db.read() as connection:
        draw = _load_draw(connection, audit_id, kind)
        units = [] if draw is None else _load_units(connection, draw.id)
    n_drawn = Counter(drawn.stratum for drawn in units)
    return [
        UnitToLabel(
            unit=LabelUnit(kind, drawn.parts),
            stratum=drawn.stratum,
            n_in_stratum=drawn.n_in_stratum,
            inclusion=drawn.inclusion or n_drawn[drawn.stratum] / drawn.n_in_stratum,
            position=drawn.position,
        )
        for drawn in units
    ]


def load_label_frame(db: Database, audit_id: int, kind: LabelKind) -> LabelFrame | None:
    """Load the units from which the sample in force was drawn; None if there is no sample."""
    draw = load_draw(db, audit_id, kind)
    if draw is None:
        return None
    units = select_drawable_units(load_labelable_units(db, audit_id, kind), draw)
    if hash_population(units) != draw.population_hash:
        return LabelFrame((), is_outdated=True)
    strata = draw.strata or ((),) * len(units)
    return LabelFrame(tuple((unit.unit, stratum) for unit, stratum in zip(units, strata, strict=True)), False)


def load_sampled_contents(db: Database, draw: LabelDraw) -> dict[LabelUnit, str]:
    """Load the hash of each sampled unit's text when it was drawn."""
    with db.read() as connection:
        return {LabelUnit(draw.kind, drawn.parts): drawn.content for drawn in _load_units(connection, draw.id)}


def save_draw(db: Database, audit_id: int, draw: LabelDraw, units: Sequence[DrawnUnit], previous_id: int = 0) -> None:
    """Store a new sample, in labelling order, which takes the place of the one in force; all of it or nothing.

    Args:
        previous_id: id of the draw in force that the caller has seen; 0 if there was none.

    Raises:
        StorageError: another process has drawn a sample meanwhile, or the rows could not be saved.
    """

    def job(connection: sa.Connection) -> None:
        in_force = _load_draw(connection, audit_id, draw.kind)
        _require_unchanged(previous_id, in_force.id if in_force else 0)
        draw_id = hash_chain.append_entry(connection, audit_id, replace(draw, drawn_at=utc_now()))
        _insert_units(connection, audit_id, draw_id, units, 0)

    write_log(db, job)


def extend_draw(db: Database, audit_id: int, draw: LabelDraw, units: Sequence[DrawnUnit], n_before: int) -> None:
    """Append units to a stored sample of `n_before` units, after the others; as `save_draw`."""

    def job(connection: sa.Connection) -> None:
        table = table_of(DrawnUnit)
        count = sa.select(sa.func.count()).select_from(table).where(table.c.draw == draw.id)
        _require_unchanged(n_before, connection.execute(count).scalar_one())
        _insert_units(connection, audit_id, draw.id, units, n_before)

    write_log(db, job)


# --- inside a transaction ---------------------------------------------------------------------------------------


def _require_unchanged(expected: int, stored: int) -> None:
    """Raise StorageError if the sample is not the one that the caller has seen."""
    if expected != stored:
        raise StorageError("another process has drawn a sample of this audit meanwhile.", "Repeat the command.")


def _insert_units(
    connection: sa.Connection, audit_id: int, draw_id: int, units: Sequence[DrawnUnit], first_position: int
) -> None:
    """Insert units of a sample, with their links in the hash chain."""
    drawn_at = utc_now()
    for position, drawn in enumerate(units, start=first_position):
        entry = replace(drawn, draw=draw_id, position=position, drawn_at=drawn_at)
        hash_chain.append_entry(connection, audit_id, entry)
        failpoint("draw")


def _load_draw(connection: sa.Connection, audit_id: int, kind: LabelKind) -> LabelDraw | None:
    """Implement `load_draw` inside a transaction."""
    c = table_of(LabelDraw).c
    conditions = c.audit_id == audit_id, c.kind == kind.value
    draws = select_records(connection, LabelDraw, *conditions, order_by=[c.id.desc()], limit=1)
    return draws[0] if draws else None


def _load_units(connection: sa.Connection, draw_id: int) -> list[DrawnUnit]:
    """Load a sample's units, in labelling order."""
    c = table_of(DrawnUnit).c
    return select_records(connection, DrawnUnit, c.draw == draw_id, order_by=[c.position])


REVIEW_SOURCE = "review"
"""`Label.source` of labels made in the review screen, which alone can be undone there."""
_ROWS_PER_PAGE = 20


def append_label(db: Database, audit_id: int, label: Label, content: str | None = None) -> LabelEntry:
    """Append a label; it is durable when this returns.

    Args:
        content: hash that identifies the labelled text, as in `LabelableUnit`; None: the unit's text now.

    Raises:
        ValueError: the kind has no such value.
        StorageError: the audit has no such unit any more, or another text of it, or the row could not be saved.
    """
    _require_known_values([label])
    return write_log(db, lambda connection: _append_label(connection, audit_id, label, content))


def append_labels(db: Database, audit_id: int, labels: Sequence[Label]) -> list[LabelEntry]:
    """Append labels, all or none; as `append_label`."""
    _require_known_values(labels)
    return write_log(db, lambda connection: [_append_label(connection, audit_id, label) for label in labels])


def undo_label(db: Database, audit_id: int, kind: LabelKind, rater: str) -> Label | None:
    """Undo the rater's last label of a kind made in the review screen, and return it; None if there is none."""

    def job(connection: sa.Connection) -> Label | None:
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


def load_raters(db: Database, audit_id: int) -> set[str]:
    """Load the names of the raters who have labelled units of an audit, of any kind."""
    c = table_of(LabelEntry).c
    with db.read() as connection:
        return set(connection.execute(sa.select(c.rater).where(c.audit_id == audit_id).distinct()).scalars())


def load_new_entries(db: Database, audit_id: int, kind: LabelKind, after_id: int) -> tuple[list[LabelEntry], int]:
    """Load the rows of a kind that were appended after the row `after_id`, oldest first, and the id of the last row.

    One writer appends at a time, so that ids are in the order in which rows become visible.

    Args:
        after_id: 0 for all rows.
    """
    table = table_of(LabelEntry)
    with db.read() as connection:
        if not after_id:
            last_id = connection.execute(sa.select(sa.func.max(table.c.id))).scalar_one() or 0
            entries = _load_entries(connection, audit_id, kind)
            return [entry for entry in entries if entry.id <= last_id], last_id
        # A condition on the audit would make SQLite search all labels of the audit instead of the last ids.
        entries = select_records(connection, LabelEntry, table.c.id > after_id, order_by=[table.c.id])
    last_id = entries[-1].id if entries else after_id
    return [entry for entry in entries if (entry.audit_id, entry.label.unit.kind) == (audit_id, kind)], last_id


# --- inside a transaction ---------------------------------------------------------------------------------------


def _require_known_values(labels: Iterable[Label]) -> None:
    """Raise ValueError for a label with a value that its kind does not have."""
    for label in labels:
        if label.value not in {choice.value for choice in label.unit.kind.choices}:
            raise ValueError(f"a label of a {label.unit.kind} cannot be '{label.value}'")


def _append_label(
    connection: sa.Connection, audit_id: int, label: Label, labelled_content: str | None = None
) -> LabelEntry:
    """Append a label to the log and the hash chain; StorageError if the audit has no such unit, or another text."""
    content = load_contents(connection, audit_id, label.unit.kind, [label.unit]).get(label.unit)
    if content is None:
        raise StorageError(
            f"the audit has no such {label.unit.kind.noun} any more: {', '.join(label.unit.parts)}.",
            "The audit was run again since. Close the review, and open it again.",
        )
    if labelled_content not in (None, content):
        raise StorageError(
            f"the {label.unit.kind.noun} has another text than when the sample was drawn.",
            "Close the review, and draw again with --redraw: labels of unchanged texts still count.",
        )
    entry = LabelEntry(0, audit_id, LabelAction.LABEL, None, label, content)
    return replace(entry, id=_append(connection, audit_id, entry))


def _append(connection: sa.Connection, audit_id: int, entry: LabelEntry) -> int:
    """Append an entry to the log and the hash chain; return its id."""
    entry_id = hash_chain.append_entry(connection, audit_id, entry)
    failpoint("label")
    return entry_id


def _find_last_undoable(connection: sa.Connection, audit_id: int, kind: LabelKind, rater: str) -> LabelEntry | None:
    """Find the rater's last label made in the review screen that was not undone; None if there is none.

    Rows are read from the last one back, so that the cost grows with the undos in a row, not with the labels.
    """
    c = table_of(LabelEntry).c
    of_rater = c.audit_id == audit_id, c.kind == kind.value, c.rater == rater, c.source == REVIEW_SOURCE
    undone: set[int] = set()
    before: list[sa.ColumnElement[bool]] = []
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


def _load_entries(connection: sa.Connection, audit_id: int, kind: LabelKind | None) -> list[LabelEntry]:
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
