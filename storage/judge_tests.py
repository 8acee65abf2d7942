"""Rows of the tests of judges: guesses of a trace's origin, restated and altered traces, two traces side by side."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.domain import AlteredTraceVerdict, Contest, Guess, Restatement
from auditor.storage.database import Database
from auditor.storage.result_tables import AlteredTraceVerdictRow, ContestRow, GuessRow, RestatementRow
from auditor.storage.results import load_records, save_rows


def save_guesses(db: Database, audit_id: int, guesses: Sequence[Guess]) -> None:
    """Store guesses; a stored one of the same judge and trace is replaced."""
    save_rows(db, audit_id, GuessRow, guesses)


def save_restatements(db: Database, audit_id: int, restatements: Sequence[Restatement]) -> None:
    """Store restatements; a stored one of the same trace is replaced."""
    save_rows(db, audit_id, RestatementRow, restatements)


def save_altered_trace_verdicts(db: Database, audit_id: int, verdicts: Sequence[AlteredTraceVerdict]) -> None:
    """Store verdicts on altered traces; a stored one of the same alteration, judge and trace is replaced."""
    save_rows(db, audit_id, AlteredTraceVerdictRow, verdicts)


def save_contests(db: Database, audit_id: int, contests: Sequence[Contest]) -> None:
    """Store contests; a stored one of the same judge, pair and order is replaced."""
    save_rows(db, audit_id, ContestRow, contests)


def load_guesses(db: Database, audit_id: int) -> list[Guess]:
    """Load an audit's guesses."""
    return load_records(db, audit_id, GuessRow, Guess)


def load_altered_trace_verdicts(db: Database, audit_id: int) -> list[AlteredTraceVerdict]:
    """Load an audit's verdicts on altered traces."""
    return load_records(db, audit_id, AlteredTraceVerdictRow, AlteredTraceVerdict)


def load_contests(db: Database, audit_id: int) -> list[Contest]:
    """Load an audit's contests."""
    return load_records(db, audit_id, ContestRow, Contest)
