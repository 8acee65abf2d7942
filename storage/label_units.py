"""The units of an audit that people can label, with what a sample is stratified by, and a hash of their text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, case, false, func, literal, select

from auditor.domain import Outcome, Ruling, Trace, Verdict, canonical_hash
from auditor.domain.labels import EQUIVALENCE, LabelDraw, LabelKind, LabelUnit
from auditor.storage.database import Database
from auditor.storage.probe_answers import find_label_form, find_labelled_probe
from auditor.storage.row_writing import table_of

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
    connection: Connection, audit_id: int, kind: LabelKind, units: Iterable[LabelUnit]
) -> dict[LabelUnit, str]:
    """Load the hash that identifies each unit's text now, of those of `units` that the audit has.

    One query for each unit finds it by the primary key; SQLite scans the table for a query of several.
    """
    return {unit: content for unit in units for _, _, content in _iter_units(connection, audit_id, kind, unit)}


def _iter_units(
    connection: Connection, audit_id: int, kind: LabelKind, unit: LabelUnit | None = None
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


def _is_unit(unit: LabelUnit, key_columns: Mapping[str, ColumnElement[Any]]) -> ColumnElement[bool]:
    """Condition: a row is of this unit; never true if a part that is a number in the database is none."""
    if any(
        _is_number(column) and not part.isdecimal()
        for column, part in zip(key_columns.values(), unit.parts, strict=True)
    ):
        return false()
    return and_(
        *(
            column == (int(part) if _is_number(column) else part)
            for column, part in zip(key_columns.values(), unit.parts, strict=True)
        )
    )


def _hash_content(values: Sequence[str | None]) -> str:
    """SHA-256 of what identifies the text of a unit."""
    text = "\0".join("" if value is None else f"={value}" for value in values)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_number(column: ColumnElement[Any]) -> bool:
    return column.type.python_type is int


UnitQuery = tuple[Select[*tuple[Any, ...]], Mapping[str, ColumnElement[Any]]]
"""A query of units, and its columns by the names of the parts."""


def _query_traces(audit_id: int) -> UnitQuery:
    """Query the traces with the outcome `ok`.

    The text of a recorded answer is identified by its key, which is much shorter.
    """
    c = table_of(Trace).c
    key_columns = {name: c[name] for name in TRACE_PARTS}
    imported_text = case((c.key.is_(None), c.text))
    query = select(
        *key_columns.values(),
        c.language,
        c.key.label("content_key"),
        func.coalesce(c.repeat_key, c.repair_key).label("content_repair_key"),
        imported_text.label("content_text"),
    )
    return query.where(c.audit_id == audit_id, c.outcome == Outcome.OK.value), key_columns


def _load_panel_verdicts(connection: Connection, audit_id: int) -> dict[tuple[str, ...], str]:
    """Load the majority of the judges' usable verdicts on each trace, by the parts of its unit."""
    c = table_of(Verdict).c
    trace = (c.model, c.country, c.topic, c.sample)
    balance = func.sum(case((c.ruling == Ruling.VALID.value, literal(1)), else_=literal(-1)))
    query = select(*trace, balance).where(c.audit_id == audit_id, c.outcome == Outcome.OK.value).group_by(*trace)
    return {
        (model, country, topic, str(sample)): _name_majority(surplus)
        for model, country, topic, sample, surplus in connection.execute(query)
    }


def _name_majority(surplus: int) -> str:
    """Verdict of a panel by the number of VALID minus that of INVALID."""
    if surplus == 0:
        return NO_MAJORITY
    return Ruling.VALID.value if surplus > 0 else Ruling.INVALID.value
