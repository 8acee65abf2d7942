"""Write, read and count rows of a database, as no command of the program does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import func, select

from auditor.config import AuditConfig
from auditor.domain import Decision, Rating, RatingAction
from auditor.run import fingerprint, load_planned_survey
from auditor.storage import audits, hash_chain, rating_log
from auditor.storage.audits import Audit
from auditor.storage.call_records import StoredAttempt
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.database import Database, open_database
from auditor.storage.rating_log import RatingChange
from auditor.storage.row_classes import table_of

R = TypeVar("R")


def load_stored(storage: str, load: Callable[..., R], *arguments: Any, name: str = "scripted") -> R:
    """What a function of the storage loads of an audit, by its id."""
    with open_database(storage, create=False) as db:
        return load(db, audits.get_audit(db, name).id, *arguments)


def save_configured(db: Database, audit: AuditConfig, stored_config: str | None = None) -> Audit:
    """Save an audit as a run does before its first call, with another text of its configuration if one is given."""
    text, config_hash = stored_config or audit.model_dump_json(), fingerprint(audit)
    survey = load_planned_survey(audit)
    return audits.save_audit(db, name=audit.name, config=text, config_hash=config_hash, survey=survey, environment={})


def find_part(owner: Any, figures: type[R]) -> R:
    """The part of a report or of a configuration that has this class, which must be there."""
    part = owner.find(figures)
    assert isinstance(part, figures)
    return part


def add_rating(db: Database, audit_id: int, rating: Rating) -> None:
    """Append a rating as it is, though no person saw the conflict; durable when this returns."""
    db.write(lambda connection: hash_chain.append_entry(connection, audit_id, rating))


def decide(db: Database, audit: Audit, key: ConflictKey, decision: Decision, rater: str = "ada") -> None:
    rating_log.append_rating(db, audit.id, key, rater, RatingChange(RatingAction.DECIDE, decision=decision))


def count_attempts(db: Database) -> int:
    """Number of all requests that are recorded in a database."""
    with db.read() as connection:
        return connection.execute(select(func.count()).select_from(table_of(StoredAttempt))).scalar_one()
