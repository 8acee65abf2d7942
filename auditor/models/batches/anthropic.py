"""Anthropic's batch API: all requests are sent in one body, and the results are lines of JSON.

Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, Any

from auditor.models.batches.openai import PAGE_SIZE
from auditor.models.batches.provider import (
    FILE_TRANSFER_TIMEOUT_S,
    BatchCallResponse,
    BatchClient,
    BatchStatus,
    encode_body,
    iter_lines,
    quote_path_segment,
    read_count,
    require_text,
)

CALL_PATH = "/messages"
HTTP_STATUS_BY_ERROR = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP status of each type of error in the response to a single call."""
REQUEST_STATES = ("processing", "succeeded", "errored", "canceled", "expired")


class _AnthropicBatches:
    """`BatchProvider` for Anthropic's Message Batches."""

    max_calls = 100_000
    max_bytes = 100_000_000  # the provider accepts 200 MB or more
    is_match_certain = False

    def base_url(self, call_url: str) -> str | None:
        """The URL before the path of a single call."""
        return call_url.removesuffix(CALL_PATH) if call_url.endswith(CALL_PATH) else None

    async def has_batches(self, client: BatchClient) -> bool:
        """Whether batches can be listed."""
        return await client.has_list("/messages/batches")

    def format_call(self, key: str, body: bytes) -> bytes:
        """Format one call as an element of the list of requests: its key, and the body of a single request as JSON."""
        return b'{"custom_id": "' + key.encode() + b'", "params": ' + body + b"}"

    async def submit(self, client: BatchClient, formatted_calls: Sequence[bytes], tag: str) -> str:
        """Submit all calls in one request and return the batch's id; the API has no field for a tag."""
        body = b'{"requests": [' + b",".join(formatted_calls) + b"]}"
        created_batch = await client.request_json(
            "POST",
            "/messages/batches",
            total_timeout_s=FILE_TRANSFER_TIMEOUT_S,
            content_type="application/json",
            content=body,
        )
        return require_text(created_batch, "id")

    async def find_submitted(
        self, client: BatchClient, tag: str, n_calls: int, since: datetime, known_ids: set[str]
    ) -> list[str]:
        """Return the ids of batches not in `known_ids` that have `n_calls` calls and were created at `since` or later.

        Only their results show which one was submitted, as the API stores no tag. Pages list the latest batch first.
        """
        candidate_ids: list[str] = []
        # Query parameter for the page after the last batch seen; empty for the first page.
        cursor: dict[str, str] = {}
        while True:
            page = await client.request_json("GET", "/messages/batches", params={"limit": PAGE_SIZE, **cursor})
            batches = [batch for batch in page.get("data") or [] if isinstance(batch, dict)]
            candidate_ids += [
                require_text(batch, "id")
                for batch in batches
                if _creation_time(batch) >= since
                and _call_count(batch) == n_calls
                and require_text(batch, "id") not in known_ids
            ]
            if not page.get("has_more") or not batches or _creation_time(batches[-1]) < since:
                return candidate_ids
            cursor = {"after_id": require_text(batches[-1], "id")}

    async def fetch_status(self, client: BatchClient, batch_id: str) -> BatchStatus:
        """Fetch a batch's status; the path of the results is derived from its id, not read from the response."""
        path = f"/messages/batches/{quote_path_segment(batch_id)}"
        batch = await client.request_json("GET", path)
        status = str(batch.get("processing_status"))
        has_ended = status == "ended"
        n_succeeded = read_count(batch.get("request_counts"), "succeeded")
        result_paths = (f"{path}/results",) if has_ended else ()
        return BatchStatus(status, has_ended, result_paths=result_paths, n_succeeded=n_succeeded)

    def iter_responses(self, file: IO[bytes], call_keys: Sequence[str]) -> Iterator[BatchCallResponse | None]:
        """Yield the response in each line of a file of results."""
        return iter_lines(file, self._parse_line)

    def _parse_line(self, line: dict[str, Any]) -> BatchCallResponse | None:
        """Parse one line of the results into the response to one call; None if the line is malformed."""
        key, result = line.get("custom_id"), line.get("result")
        if not isinstance(key, str) or not isinstance(result, dict):
            return None
        result_type = result.get("type")
        if result_type == "succeeded":
            return BatchCallResponse(key, 200, encode_body(result.get("message")))
        error = result.get("error")
        if result_type == "errored" and isinstance(error, dict):
            error_details = error.get("error")
            error_type = error_details.get("type") if isinstance(error_details, dict) else None
            return BatchCallResponse(key, HTTP_STATUS_BY_ERROR.get(str(error_type), 500), encode_body(error))
        return BatchCallResponse(
            key, None, not_sent_reason=f"the batch ended before this call was processed ({result_type})"
        )


def _call_count(batch: dict[str, Any]) -> int:
    """Number of calls in a batch, in any state."""
    counts = batch.get("request_counts") or {}
    return sum(int(counts.get(name) or 0) for name in REQUEST_STATES)


def _creation_time(batch: dict[str, Any]) -> datetime:
    """Time at which a batch was created; the earliest possible time if unknown."""
    try:
        return datetime.fromisoformat(str(batch.get("created_at")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


ANTHROPIC = _AnthropicBatches()
