"""Interface of a provider's batch API: what differs between providers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Protocol

from auditor.models.batches.client import BatchClient, BatchRequestFailed
from auditor.models.transport import MAX_RESPONSE_BYTES


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """Status of a batch.

    Attributes:
        provider_status: the provider's name of the status.
        has_ended: whether all its results are available.
        rejection_reason: why the whole batch was rejected, so that nothing was charged; None if it was not.
        is_queue_full: whether it was rejected because of other batches in the queue, and may be accepted later.
        result_paths: URL paths of its files of results, or whole URLs; they are read as one file.
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
        max_calls: maximum number of calls in one batch.
        max_bytes: size limit of one batch, which is held in memory.
        is_match_certain: whether a batch that `find_submitted` returns is certainly the submitted one; if not, its
            results must be checked.
    """

    max_calls: int
    max_bytes: int
    is_match_certain: bool

    def base_url(self, call_url: str) -> str | None:
        """The base URL of the batch endpoints beside the URL of a single call; None if it is another API's."""
        ...

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

    def iter_responses(self, file: IO[bytes], call_keys: Sequence[str]) -> Iterator[BatchCallResponse | None]:
        """Yield the response to each call in the results; None for a malformed one.

        Args:
            file: all files of results, one after the other; at its beginning.
            call_keys: of the batch's calls, in the order in which they were submitted.
        """
        ...


def iter_json_lines(file: IO[bytes]) -> Iterator[dict[str, Any] | None]:
    """Yield the object in each line of a file; None for a line that is none. At most one line is read at once."""
    while line := file.readline(MAX_RESPONSE_BYTES):
        if not line.strip():
            continue
        try:
            parsed_line = json.loads(line)
        except (ValueError, RecursionError):
            parsed_line = None
        yield parsed_line if isinstance(parsed_line, dict) else None


def iter_lines(
    file: IO[bytes], parse_line: Callable[[dict[str, Any]], BatchCallResponse | None]
) -> Iterator[BatchCallResponse | None]:
    """Yield the response in each line of a file; None for an invalid line.

    Args:
        file: lines of JSON objects.
        parse_line: parses the object of a line; None if it is malformed.
    """
    for parsed_line in iter_json_lines(file):
        yield None if parsed_line is None else parse_line(parsed_line)


def require_text(response_body: dict[str, Any], field: str) -> str:
    """A field of a server's response that must be a text, such as an id.

    Raises:
        BatchRequestFailed: it is missing.
    """
    if not isinstance(text := response_body.get(field), str) or not text:
        raise BatchRequestFailed(f"the batch API's response has no {field}", 200, is_retryable=False)
    return text


def encode_body(parsed_body: Any) -> bytes:
    """Encode the part of a result line that is the body of a single call's response as JSON."""
    return json.dumps(parsed_body).encode()
