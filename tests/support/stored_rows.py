"""Write and count rows of a database, as no command of the program does."""

from __future__ import annotations

from sqlalchemy import func, select

from auditor.domain import Rating
from auditor.storage import hash_chain
from auditor.storage.call_records import StoredAttempt
from auditor.storage.database import Database
from auditor.storage.row_classes import table_of


def add_rating(db: Database, audit_id: int, rating: Rating) -> None:
    """Append a rating as it is, though no person saw the conflict; durable when this returns."""
    db.write(lambda connection: hash_chain.append_entry(connection, audit_id, rating))


def count_attempts(db: Database) -> int:
    """Number of all requests that are recorded in a database."""
    with db.read() as connection:
        return connection.execute(select(func.count()).select_from(table_of(StoredAttempt))).scalar_one()
