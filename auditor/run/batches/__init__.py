"""Asking through providers' batches: half the price, within a day, over as many runs as that takes."""

from __future__ import annotations

from auditor.run.batches.batching_client import BatchingClient, create_batching_client, describe_waiting_calls

__all__ = ["BatchingClient", "create_batching_client", "describe_waiting_calls"]
