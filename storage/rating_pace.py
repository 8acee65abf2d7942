"""How fast a rater decides, and who rates at the moment, from the rating log."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select

from auditor.domain import Rating, RatingAction
from auditor.storage.database import Database
from auditor.storage.rating_log import resolves_conflict
from auditor.storage.row_writing import table_of


def load_decision_durations(db: Database, audit_id: int, rater: str, limit: int) -> list[float]:
    """Load the seconds that a rater's last decisions took, latest first.

    A decision that settled several conflicts of a cell counts once.
    """
    c = table_of(Rating).c
    query = select(c.duration_s).where(
        c.audit_id == audit_id,
        c.rater == rater,
        c.act == RatingAction.DECIDE.value,
        resolves_conflict(c.decision),
        c.duration_s.is_not(None),
    )
    with db.read() as connection:
        return [float(duration) for duration in connection.execute(query.order_by(c.id.desc()).limit(limit)).scalars()]


def load_last_rating_id(db: Database, audit_id: int) -> int | None:
    """Load the id of the last entry in an audit's rating log; None if it is empty."""
    c = table_of(Rating).c
    with db.read() as connection:
        last_id: int | None = connection.execute(select(func.max(c.id)).where(c.audit_id == audit_id)).scalar_one()
    return last_id


def load_active_raters(db: Database, audit_id: int, since: datetime) -> set[str]:
    """Load the names of the raters who acted in an audit since a time, which must be in UTC."""
    c = table_of(Rating).c
    query = select(c.rater).where(c.audit_id == audit_id, c.decided_at >= since.isoformat(timespec="milliseconds"))
    with db.read() as connection:
        return set(connection.execute(query.distinct()).scalars())
