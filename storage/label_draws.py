"""Random samples of units to label: how each was drawn, and its units. Rows are appended, never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, func, select

from auditor.domain.labels import DrawnUnit, LabelDraw, LabelKind, LabelUnit, SampledUnit, Stratum
from auditor.errors import StorageError
from auditor.failpoints import failpoint
from auditor.storage import hash_chain
from auditor.storage.database import Database
from auditor.storage.label_units import (
    hash_population,
    load_labelable_units,
    select_drawable_units,
)
from auditor.storage.ledger import utc_now
from auditor.storage.rating_log import write_log
from auditor.storage.row_writing import select_records, table_of


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


def load_label_sample(db: Database, audit_id: int, kind: LabelKind) -> list[SampledUnit]:
    """Load the sample in force, in the order in which raters label it; empty if there is none.

    The inclusion probability of a drawn unit is the drawn share of its stratum.
    """
    with db.read() as connection:
        draw = _load_draw(connection, audit_id, kind)
        units = [] if draw is None else _load_units(connection, draw.id)
    n_drawn = Counter(drawn.stratum for drawn in units)
    return [
        SampledUnit(
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

    def job(connection: Connection) -> None:
        in_force = _load_draw(connection, audit_id, draw.kind)
        _require_unchanged(previous_id, in_force.id if in_force else 0)
        draw_id = hash_chain.append_entry(connection, audit_id, replace(draw, drawn_at=utc_now()))
        _insert_units(connection, audit_id, draw_id, units, 0)

    write_log(db, job)


def extend_draw(db: Database, audit_id: int, draw: LabelDraw, units: Sequence[DrawnUnit], n_before: int) -> None:
    """Append units to a stored sample of `n_before` units, after the others; as `save_draw`."""

    def job(connection: Connection) -> None:
        table = table_of(DrawnUnit)
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
        entry = replace(drawn, draw=draw_id, position=position, drawn_at=drawn_at)
        hash_chain.append_entry(connection, audit_id, entry)
        failpoint("draw")


def _load_draw(connection: Connection, audit_id: int, kind: LabelKind) -> LabelDraw | None:
    """Implement `load_draw` inside a transaction."""
    c = table_of(LabelDraw).c
    conditions = c.audit_id == audit_id, c.kind == kind.value
    draws = select_records(connection, LabelDraw, *conditions, order_by=[c.id.desc()], limit=1)
    return draws[0] if draws else None


def _load_units(connection: Connection, draw_id: int) -> list[DrawnUnit]:
    """Load a sample's units, in labelling order."""
    c = table_of(DrawnUnit).c
    return select_records(connection, DrawnUnit, c.draw == draw_id, order_by=[c.position])
