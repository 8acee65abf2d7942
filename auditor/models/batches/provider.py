"""Interface of a provider's batch API: what differs between OpenAI's and Anthropic's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from auditor.models.batches.client import BatchClient


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """Status of a batch.

    Attributes:
        provider_status: the provider's name of the status.
        has_ended: whether all its results are available.
        rejection_reason: why the whole batch was rejected, so that nothing was charged; None if it was not.
        is_queue_full: whether it was rejected because of other batches in the queue, and may be accepted later.
        result_paths: URL paths of its results.
    """

    provider_status: str
    has_ended: bool
    rejection_reason: str | None = None
    is_queue_full: bool = False
    result_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchCallResponse:
    """A batch's response to one call.

    Attributes:
        key: of the call.
        http_status: of the response; None if the call was never sent.
        body: of the response, as JSON.
        not_sent_reason: why the call was never sent; empty if it was.
    """

    key: str
    http_status: int | None
    body: bytes = b""
    not_sent_reason: str = ""


class BatchProvider(Protocol):
    """A provider's batch API.

    Attributes:
        call_path: end of the URL of a single call; the part before it is the base URL of the batch endpoints.
        max_calls: maximum number of calls in one batch.
        is_match_certain: whether a batch that `find_submitted` returns is certainly the submitted one; if not, its
            results must be checked.
    """

    call_path: str
    max_calls: int
    is_match_certain: bool

    async def has_batches(self, client: BatchClient) -> bool:
        """Whether the server has batch endpoints."""
        ...

    def format_call(self, key: str, body: bytes) -> bytes:
        """Format one call as an element of a batch.

        Args:
            key: the call's key, which its result will carry.
            body: body of a single request, as JSON.
        """
        ...

    async def submit(self, client: BatchClient, formatted_calls: Sequence[bytes], tag: str) -> str:
        """Submit calls as one batch and return its id; `tag` is stored with it if the provider supports that.

        Raises:
            BatchRequestFailed: the batch was not accepted.
        """
        ...

    async def find_submitted(
        self, client: BatchClient, tag: str, n_calls: int, since: datetime, known_ids: set[str]
    ) -> list[str]:
        """Find a batch that was submitted, but whose id was not received; return the ids of all candidates.

        Args:
            client: of the server.
            tag: the tag passed to `submit`.
            n_calls: number of its calls.
            since: earliest time at which it was created.
            known_ids: ids of other batches, which are left out.

        Raises:
            BatchRequestFailed: the batches cannot be listed.
        """
        ...

    async def fetch_status(self, client: BatchClient, batch_id: str) -> BatchStatus:
        """Fetch the status of a batch.

        Raises:
            BatchRequestFailed: the request failed.
        """
        ...

    def parse_line(self, line: dict[str, Any]) -> BatchCallResponse | None:
        """Parse one line of the results, a JSON object, into the response to one call; None if it is malformed."""
        ...


def encode_body(parsed_body: Any) -> bytes:
    """Encode the part of a result line that is the body of a single call's response as JSON."""
    return json.dumps(parsed_body).encode()
