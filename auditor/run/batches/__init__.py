"""Send calls through providers' batch APIs: half the price, answers within a day, collected by any later run."""

from __future__ import annotations

from auditor.run.batches.batching_client import BatchingClient, create_batching_client, describe_waiting_calls

__all__ = ["BatchingClient", "create_batching_client", "describe_waiting_calls"]
