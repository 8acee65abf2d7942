"""Rows of the tests of judges: guesses of a trace's origin, restated and altered traces, two traces side by side."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.domain import AlteredTraceVerdict, Contest, Guess, Restatement
from auditor.storage.database import Database
from auditor.storage.records import load_records, save_records


def save_guesses(db: Database, audit_id: int, guesses: Sequence[Guess]) -> None:
    """Store guesses; a stored one of the same judge and trace is replaced."""
    save_records(db, audit_id, guesses)


def save_restatements(db: Database, audit_id: int, restatements: Sequence[Restatement]) -> None:
    """Store restatements; a stored one of the same trace is replaced."""
    save_records(db, audit_id, restatements)


def save_altered_trace_verdicts(db: Database, audit_id: int, verdicts: Sequence[AlteredTraceVerdict]) -> None:
    """Store verdicts on altered traces; a stored one of the same alteration, judge and trace is replaced."""
    save_records(db, audit_id, verdicts)


def save_contests(db: Database, audit_id: int, contests: Sequence[Contest]) -> None:
    """Store contests; a stored one of the same judge, pair and order is replaced."""
    save_records(db, audit_id, contests)


def load_guesses(db: Database, audit_id: int) -> list[Guess]:
    """Load an audit's guesses."""
    return load_records(db, audit_id, Guess)


def load_altered_trace_verdicts(db: Database, audit_id: int) -> list[AlteredTraceVerdict]:
    """Load an audit's verdicts on altered traces."""
    return load_records(db, audit_id, AlteredTraceVerdict)


def load_contests(db: Database, audit_id: int) -> list[Contest]:
    """Load an audit's contests."""
    return load_records(db, audit_id, Contest)
