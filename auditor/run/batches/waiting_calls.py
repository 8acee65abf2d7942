"""Sentences about calls whose batches are still at a provider."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.errors import pluralize
from auditor.storage import batches
from auditor.storage.database import Database


def describe_waiting_calls(calls_per_batch: Sequence[int], *, are_submitted: bool = True) -> str:
    """A phrase with the number of calls and batches that wait at a provider; empty if there are none.

    Args:
        calls_per_batch: number of waiting calls of each batch.
        are_submitted: whether it is known that the batches were submitted.
    """
    if not calls_per_batch:
        return ""
    batch_count = f"{len(calls_per_batch)} batches" if len(calls_per_batch) > 1 else "a batch"
    n_calls = sum(calls_per_batch)
    verb = ("waits" if n_calls == 1 else "wait") if are_submitted else "may wait"
    return f"{pluralize(n_calls, 'call')} {verb} in {batch_count} at the provider"


def abandoned_batches_notice(db: Database, audit_id: int) -> str | None:
    """Notice for a run without batches that calls of earlier runs still wait in some; None if none do."""
    waiting_note = describe_waiting_calls(
        [batch.n_missing_calls for batch in batches.load_uncollected_batches(db, audit_id)]
    )
    return f"{waiting_note}; without [batch] in the config they are sent and charged again." if waiting_note else None
