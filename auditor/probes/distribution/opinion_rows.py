"""Distributions of answers: models' opinions, and people's shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from auditor.probes.distribution.opinions import Opinion, SurveyShares
from auditor.storage.database import Database
from auditor.storage.records import load_records, replace_records

if TYPE_CHECKING:
    from sqlalchemy import Connection


def replace_opinions(connection: Connection, audit_id: int, opinions: Sequence[Opinion], survey_shares: str) -> None:
    """Store opinions, and the shares of people's answers as JSON, in place of those an audit had, in a transaction."""
    replace_records(connection, audit_id, Opinion, opinions)
    replace_records(connection, audit_id, SurveyShares, [SurveyShares(survey_shares)])


def replace_survey_shares(db: Database, audit_id: int, survey_shares: str) -> None:
    """Store the shares of people's answers as JSON in place of those that an audit had."""
    db.write(lambda connection: replace_records(connection, audit_id, SurveyShares, [SurveyShares(survey_shares)]))


def load_survey_shares(db: Database, audit_id: int) -> str | None:
    """Load the shares of people's answers that an audit compares with, as JSON; None without opinions."""
    stored = load_records(db, audit_id, SurveyShares)
    return stored[0].shares if stored else None
