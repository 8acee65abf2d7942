"""Asking through providers' batches: half the price, within a day, over as many runs as that takes."""

from __future__ import annotations

from auditor.run.batches.batching_client import Batching, batching, waiting_words

__all__ = ["Batching", "batching", "waiting_words"]
