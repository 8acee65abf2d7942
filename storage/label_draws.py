"""Random samples of units to label: how each was drawn, and its units. Rows are appended, never changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select
from sqlmodel import SQLModel

from auditor.domain import canonical_hash, canonical_json
from auditor.domain.labels import LabelKind, LabelUnit, SampledUnit
from auditor.errors import StorageError
from auditor.failpoints import failpoint
from auditor.storage import hash_chain
from auditor.storage.database import Database
from auditor.storage.label_tables import LabelDrawRow, SampledUnitRow
from auditor.storage.label_units import (
    LabelableUnit,
    format_unit,
    load_labelable_units,
    parse_unit,
    select_drawable_units,
)
from auditor.storage.ledger import utc_now
from auditor.storage.rating_log import write_log
from auditor.storage.row_writing import coerce_values, table_of

Stratum = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabelDraw:
    """How a sample was drawn.

    Attributes:
        id: of the draw; 0 if it is not stored yet.
        source: "review", or the name of the file from which the sample was imported.
        stratify: names of the attributes that make the strata; empty if the sample was imported.
        strata: stratum of every unit that could be drawn, in order of the units' parts; empty if imported.
        population: number of units that could be drawn.
        population_hash: hash of these units and their texts.
    """

    id: int
    kind: LabelKind
    source: str
    seed: int
    stratify: tuple[str, ...]
    strata: tuple[Stratum, ...]
    population: int
    population_hash: str


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


@dataclass(frozen=True, slots=True)
class DrawnUnit:
    """A unit to store in a sample, as in `SampledUnit`.

    Attributes:
        content: hash of the unit's text.
        inclusion: its probability in an imported sample, in (0, 1]; None if it was drawn here.
    """

    unit: LabelUnit
    stratum: Stratum
    n_in_stratum: int
    content: str
    inclusion: float | None = None


def hash_population(units: Sequence[LabelableUnit]) -> str:
    """SHA-256 of all units that could be drawn, in order, and of their texts."""
    return canonical_hash([[list(unit.unit.parts), unit.content] for unit in units])


def load_draw(db: Database, audit_id: int, kind: LabelKind) -> LabelDraw | None:
    """Load how the sample in force was drawn; None if there is no sample."""
    with db.read() as connection:
        return _load_draw(connection, audit_id, kind)


def load_label_sample(db: Database, audit_id: int, kind: LabelKind) -> list[SampledUnit]:
    """Load the sample in force, in the order in which raters label it; empty if there is none.

    The inclusion probability of a drawn unit is the drawn share of its stratum.
    """
    with db.read() as connection:
        draw = _load_draw(connection, audit_id, kind)
        rows = [] if draw is None else _load_unit_rows(connection, draw.id)
    n_drawn = Counter(row["stratum"] for row in rows)
    return [
        SampledUnit(
            unit=parse_unit(kind, row["unit"]),
            stratum=tuple(json.loads(row["stratum"])),
            n_in_stratum=row["n_in_stratum"],
            inclusion=row["inclusion"] or n_drawn[row["stratum"]] / row["n_in_stratum"],
            position=row["position"],
        )
        for row in rows
    ]


def load_label_frame(db: Database, audit_id: int, kind: LabelKind) -> LabelFrame | None:
    """Load the units from which the sample in force was drawn; None if there is no sample."""
    draw = load_draw(db, audit_id, kind)
    if draw is None:
        return None
    units = select_drawable_units(load_labelable_units(db, audit_id, kind))
    if hash_population(units) != draw.population_hash:
        return LabelFrame((), is_outdated=True)
    strata = draw.strata or ((),) * len(units)
    return LabelFrame(tuple((unit.unit, stratum) for unit, stratum in zip(units, strata, strict=True)), False)


def load_sampled_contents(db: Database, draw: LabelDraw) -> dict[LabelUnit, str]:
    """Load the hash of each sampled unit's text when it was drawn."""
    with db.read() as connection:
        rows = _load_unit_rows(connection, draw.id)
    return {parse_unit(draw.kind, row["unit"]): row["content"] for row in rows}


def save_draw(db: Database, audit_id: int, draw: LabelDraw, units: Sequence[DrawnUnit], previous_id: int = 0) -> None:
    """Store a new sample, in labelling order, which takes the place of the one in force; all of it or nothing.

    Args:
        previous_id: id of the draw in force that the caller has seen; 0 if there was none.

    Raises:
        StorageError: another process has drawn a sample meanwhile, or the rows could not be saved.
    """

    def job(connection: Connection) -> None:
        in_force = _load_draw(connection, audit_id, draw.kind)
        _require_unchanged(previous_id, in_force.id if in_force else 0)
        values = list(dict.fromkeys(draw.strata))
        index = {stratum: i for i, stratum in enumerate(values)}
        columns = {
            "audit_id": audit_id,
            "kind": draw.kind.value,
            "source": draw.source,
            "seed": draw.seed,
            "stratify": canonical_json(list(draw.stratify)),
            "strata": canonical_json({"values": values, "index": [index[stratum] for stratum in draw.strata]}),
            "population": draw.population,
            "population_hash": draw.population_hash,
            "drawn_at": utc_now(),
        }
        draw_id = _insert_row(connection, LabelDrawRow, columns)
        _insert_units(connection, audit_id, draw_id, units, 0)

    write_log(db, job)


def extend_draw(db: Database, audit_id: int, draw: LabelDraw, units: Sequence[DrawnUnit], n_before: int) -> None:
    """Append units to a stored sample of `n_before` units, after the others; as `save_draw`."""

    def job(connection: Connection) -> None:
        table = table_of(SampledUnitRow)
        count = select(func.count()).select_from(table).where(table.c.draw == draw.id)
        _require_unchanged(n_before, connection.execute(count).scalar_one())
        _insert_units(connection, audit_id, draw.id, units, n_before)

    write_log(db, job)


# --- inside a transaction ---------------------------------------------------------------------------------------


def _require_unchanged(expected: int, stored: int) -> None:
    """Raise StorageError if the sample is not the one that the caller has seen."""
    if expected != stored:
        raise StorageError("another process has drawn a sample of this audit meanwhile.", "Repeat the command.")


def _insert_units(
    connection: Connection, audit_id: int, draw_id: int, units: Sequence[DrawnUnit], first_position: int
) -> None:
    """Insert units of a sample, with their links in the hash chain."""
    drawn_at = utc_now()
    for position, drawn in enumerate(units, start=first_position):
        columns = {
            "audit_id": audit_id,
            "draw": draw_id,
            "position": position,
            "unit": format_unit(drawn.unit),
            "stratum": canonical_json(list(drawn.stratum)),
            "n_in_stratum": drawn.n_in_stratum,
            "inclusion": drawn.inclusion,
            "content": drawn.content,
            "drawn_at": drawn_at,
        }
        _insert_row(connection, SampledUnitRow, columns)
        failpoint("draw")


def _insert_row(connection: Connection, row_class: type[SQLModel], columns: dict[str, Any]) -> int:
    """Insert a row and its link in the hash chain; return its id."""
    table = table_of(row_class)
    row = connection.execute(insert(table).returning(*table.c), coerce_values(row_class, columns)).mappings().one()
    hash_chain.append_links(connection, table.name, [coerce_values(row_class, dict(row))])
    return int(row["id"])


def _load_draw(connection: Connection, audit_id: int, kind: LabelKind) -> LabelDraw | None:
    """Implement `load_draw` inside a transaction."""
    table = table_of(LabelDrawRow)
    query = select(table).where(table.c.audit_id == audit_id, table.c.kind == kind.value)
    row = connection.execute(query.order_by(table.c.id.desc()).limit(1)).mappings().one_or_none()
    if row is None:
        return None
    strata = json.loads(row["strata"])
    values = [tuple(stratum) for stratum in strata["values"]]
    return LabelDraw(
        id=row["id"],
        kind=kind,
        source=row["source"],
        seed=row["seed"],
        stratify=tuple(json.loads(row["stratify"])),
        strata=tuple(values[i] for i in strata["index"]),
        population=row["population"],
        population_hash=row["population_hash"],
    )


def _load_unit_rows(connection: Connection, draw_id: int) -> Sequence[RowMapping]:
    """Load the rows of a sample's units, in labelling order."""
    table = table_of(SampledUnitRow)
    query = select(table).where(table.c.draw == draw_id).order_by(table.c.position)
    return connection.execute(query).mappings().all()
