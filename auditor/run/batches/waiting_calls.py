"""Sentences about calls whose batches are still at a provider."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.storage import batches
from auditor.storage.database import Database


def describe_waiting_calls(calls_per_batch: Sequence[int]) -> str:
    """A phrase with the number of calls and batches that wait at a provider; empty if there are none.

    Args:
        calls_per_batch: number of waiting calls of each batch.
    """
    if not calls_per_batch:
        return ""
    batch_count = f"{len(calls_per_batch)} batches" if len(calls_per_batch) > 1 else "a batch"
    n_calls = sum(calls_per_batch)
    return f"{n_calls} {'calls wait' if n_calls != 1 else 'call waits'} in {batch_count} at the provider"


def abandoned_batches_notice(db: Database, audit_id: int) -> str | None:
    """Notice for a run without batches that calls of earlier runs still wait in some; None if none do."""
    waiting_note = describe_waiting_calls(
        [batch.n_missing_calls for batch in batches.load_uncollected_batches(db, audit_id)]
    )
    return f"{waiting_note}; without [batch] in the config they are sent and charged again." if waiting_note else None
