"""Batches as Anthropic has them: requests in one body, results as lines.

Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from auditor.models.batches.client import FILE_TRANSFER_TIMEOUT_S, BatchClient, BatchRequestFailed, quote_path_segment
from auditor.models.batches.openai import NO_BATCHES_STATUSES, PAGE_SIZE, require_id
from auditor.models.batches.provider import BatchCallResponse, BatchStatus, encode_body

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
"""The HTTP status that each kind of error has where a call goes out by itself."""
REQUEST_STATES = ("processing", "succeeded", "errored", "canceled", "expired")


class _AnthropicBatches:
    call_path = "/messages"
    max_calls = 100_000
    is_match_certain = False

    async def has_batches(self, client: BatchClient) -> bool:
        """Whether the list of batches is there."""
        try:
            found = await client.request_json("GET", "/messages/batches", params={"limit": 1})
        except BatchRequestFailed as error:
            if error.http_status in NO_BATCHES_STATUSES or error.http_status == 200:
                return False
            raise
        return isinstance(found.get("data"), list)

    def format_call(self, key: str, body: bytes) -> bytes:
        """An element of the list of requests."""
        return b'{"custom_id": "' + key.encode() + b'", "params": ' + body + b"}"

    async def submit(self, client: BatchClient, formatted_calls: Sequence[bytes], tag: str) -> str:
        """All in one; there is no place for a tag."""
        body = b'{"requests": [' + b",".join(formatted_calls) + b"]}"
        made = await client.request_json(
            "POST",
            "/messages/batches",
            total_timeout_s=FILE_TRANSFER_TIMEOUT_S,
            content_type="application/json",
            content=body,
        )
        return require_id(made)

    async def find_submitted(
        self, client: BatchClient, tag: str, n_calls: int, since: datetime, known_ids: set[str]
    ) -> list[str]:
        """All of its number of calls that are not older, and not known; only their results say whose they are."""
        found: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = await client.request_json("GET", "/messages/batches", params={"limit": PAGE_SIZE, **after})
            batches = [b for b in page.get("data") or [] if isinstance(b, dict)]
            found += [
                require_id(b)
                for b in batches
                if _creation_time(b) >= since and _call_count(b) == n_calls and require_id(b) not in known_ids
            ]
            if not page.get("has_more") or not batches or _creation_time(batches[-1]) < since:
                return found
            after = {"after_id": require_id(batches[-1])}

    async def fetch_status(self, client: BatchClient, batch_id: str) -> BatchStatus:
        """Its status; the results lie beside it, whatever address the answer names for them."""
        path = f"/messages/batches/{quote_path_segment(batch_id)}"
        status = str((await client.request_json("GET", path)).get("processing_status"))
        ended = status == "ended"
        return BatchStatus(status, ended, result_paths=(f"{path}/results",) if ended else ())

    def parse_line(self, line: dict[str, Any]) -> BatchCallResponse | None:
        """A line of the results."""
        key, result = line.get("custom_id"), line.get("result")
        if not isinstance(key, str) or not isinstance(result, dict):
            return None
        kind = result.get("type")
        if kind == "succeeded":
            return BatchCallResponse(key, 200, encode_body(result.get("message")))
        error = result.get("error")
        if kind == "errored" and isinstance(error, dict):
            inner = error.get("error")
            what = inner.get("type") if isinstance(inner, dict) else None
            return BatchCallResponse(key, HTTP_STATUS_BY_ERROR.get(str(what), 500), encode_body(error))
        return BatchCallResponse(key, None, not_sent_reason=f"the batch ended before it was asked ({kind})")


def _call_count(batch: dict[str, Any]) -> int:
    counts = batch.get("request_counts") or {}
    return sum(int(counts.get(name) or 0) for name in REQUEST_STATES)


def _creation_time(batch: dict[str, Any]) -> datetime:
    try:
        return datetime.fromisoformat(str(batch.get("created_at")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


ANTHROPIC = _AnthropicBatches()
