"""What differs between providers' batch interfaces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from auditor.models.batches.client import BatchClient


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """How far a batch is.

    Attributes:
        words: the provider's own for it.
        ended: whether all that will come of it is there.
        refused: why it was not taken at all, so that nothing of it was done or paid for.
        crowded: whether that is for others that are under way, and it may be taken later.
        results: paths of what came of it.
    """

    provider_status: str
    has_ended: bool
    rejection_reason: str | None = None
    is_queue_full: bool = False
    result_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchCallResponse:
    """What a batch says of one call.

    Attributes:
        status: HTTP status of its answer; None where the call was never made.
        body: of its answer.
        why: it was never made.
    """

    key: str
    http_status: int | None
    body: bytes = b""
    not_sent_reason: str = ""


class BatchProvider(Protocol):
    """A provider's batch interface.

    Attributes:
        suffix: how the address of a single call ends; what stands before is the base of the batches' addresses.
        most: calls of one batch.
        is_sure: whether what `find` finds is the batch; else its results must be seen first.
    """

    call_path: str
    max_calls: int
    is_match_certain: bool

    async def has_batches(self, client: BatchClient) -> bool:
        """Whether the server has batches at all."""
        ...

    def format_call(self, key: str, body: bytes) -> bytes:
        """One call as a part of a batch."""
        ...

    async def submit(self, client: BatchClient, formatted_calls: Sequence[bytes], tag: str) -> str:
        """Submit calls; the batch's id."""
        ...

    async def find_submitted(
        self, client: BatchClient, tag: str, n_calls: int, since: datetime, known_ids: set[str]
    ) -> list[str]:
        """Ids of what may be the batch that was submitted under this tag, though nobody heard its id.

        Args:
            tag: as given to `submit`.
            calls: how many it has.
            since: it is not older.
            known: ids of batches that it is not.
        """
        ...

    async def fetch_status(self, client: BatchClient, batch_id: str) -> BatchStatus:
        """How far a batch is."""
        ...

    def parse_line(self, line: dict[str, Any]) -> BatchCallResponse | None:
        """One line of the results; None where it makes no sense."""
        ...


def encode_body(parsed_body: Any) -> bytes:
    """A part of a line as the body it would have been by itself."""
    return json.dumps(parsed_body).encode()
