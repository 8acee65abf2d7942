"""OpenAI's batch API: a batch is created from an uploaded file of requests; two files hold its results and errors.

Source: https://platform.openai.com/docs/guides/batch
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import IO, Any

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

CALL_PATH = "/chat/completions"
CHAT_ENDPOINT = f"/v1{CALL_PATH}"
TAG_KEY = "auditor"
"""Key in a batch's metadata that holds our tag."""
END_STATUSES = ("completed", "failed", "expired", "cancelled")
STATUS_ALIASES = {"canceled": "cancelled", "ended": "completed", "succeeded": "completed", "success": "completed"}
"""Other servers' words for them; some write statuses in capitals (Together AI)."""
QUEUE_FULL_CODE = "token_limit_exceeded"
PAGE_SIZE = 100


class _OpenAIBatches:
    """`BatchProvider` for OpenAI's protocol."""

    max_calls = 50_000
    max_bytes = 100_000_000  # the provider accepts 200 MB or more
    is_match_certain = True

    def base_url(self, call_url: str) -> str | None:
        """The URL before the path of a single call."""
        return call_url.removesuffix(CALL_PATH) if call_url.endswith(CALL_PATH) else None

    async def has_batches(self, client: BatchClient) -> bool:
        """Whether batches can be listed."""
        return await client.has_list("/batches")

    def format_call(self, key: str, body: bytes) -> bytes:
        """Format one call as a line of the file of requests: its key, and the body of a single request as JSON."""
        line_start = json.dumps({"custom_id": key, "method": "POST", "url": CHAT_ENDPOINT})
        # Without its closing brace, which follows the body; a line must not contain line breaks.
        return line_start[:-1].encode() + b', "body": ' + body.replace(b"\n", b" ") + b"}"

    async def submit(self, client: BatchClient, formatted_calls: Sequence[bytes], tag: str) -> str:
        """Upload the file, create the batch and return the batch's id."""
        # As httpx takes it: name, content, content type.
        file = ("requests.jsonl", b"\n".join(formatted_calls) + b"\n", "application/jsonl")
        uploaded_file = await client.request_json(
            "POST", "/files", total_timeout_s=FILE_TRANSFER_TIMEOUT_S, data={"purpose": "batch"}, files={"file": file}
        )
        batch_params = {
            "input_file_id": require_text(uploaded_file, "id"),
            "endpoint": CHAT_ENDPOINT,
            "completion_window": "24h",
        }
        metadata = {TAG_KEY: tag}
        created_batch = await client.request_json("POST", "/batches", json={**batch_params, "metadata": metadata})
        return require_text(created_batch, "id")

    async def find_submitted(
        self, client: BatchClient, tag: str, n_calls: int, since: datetime, known_ids: set[str]
    ) -> list[str]:
        """Return the id of the batch with this tag in its metadata, as a list of one; empty if there is none.

        The pages list the latest batch first, so the search ends at a batch created before `since`.
        """
        # Query parameter for the page after the last batch seen; empty for the first page.
        cursor: dict[str, str] = {}
        while True:
            page = await client.request_json("GET", "/batches", params={"limit": PAGE_SIZE, **cursor})
            batches = [batch for batch in page.get("data") or [] if isinstance(batch, dict)]
            for batch in batches:
                if (batch.get("metadata") or {}).get(TAG_KEY) == tag:
                    return [require_text(batch, "id")]
            if not page.get("has_more") or not batches or _creation_time(batches[-1]) < since.timestamp():
                return []
            cursor = {"after": require_text(batches[-1], "id")}

    async def fetch_status(self, client: BatchClient, batch_id: str) -> BatchStatus:
        """Fetch a batch's status and the paths of its files of results and errors."""
        batch = await client.request_json("GET", f"/batches/{quote_path_segment(batch_id)}")
        status = str(batch.get("status")).lower()
        status = STATUS_ALIASES.get(status, status)
        file_ids = [
            file_id
            for file_id in (batch.get("output_file_id"), batch.get("error_file_id"))
            if isinstance(file_id, str) and file_id
        ]
        n_succeeded = read_count(batch.get("request_counts"), "completed")
        rejection_reason, is_queue_full = None, False
        # One that failed half-way has answers, which were charged.
        if status == "failed" and not batch.get("output_file_id") and not n_succeeded:
            errors = [error for error in (batch.get("errors") or {}).get("data") or [] if isinstance(error, dict)]
            rejection_reason = (
                "; ".join(str(error.get("message")) for error in errors[:3]) or "the provider gave no reason"
            )
            is_queue_full = any(error.get("code") == QUEUE_FULL_CODE for error in errors)
        return BatchStatus(
            status,
            status in END_STATUSES,
            rejection_reason,
            is_queue_full,
            tuple(f"/files/{quote_path_segment(file_id)}/content" for file_id in file_ids),
            n_succeeded,
        )

    def iter_responses(self, file: IO[bytes], call_keys: Sequence[str]) -> Iterator[BatchCallResponse | None]:
        """Yield the response in each line of a file of results."""
        return iter_lines(file, self._parse_line)

    def _parse_line(self, line: dict[str, Any]) -> BatchCallResponse | None:
        """Parse one line of the file of results or of errors into the response to one call; None if it is malformed."""
        key, response, error = line.get("custom_id"), line.get("response"), line.get("error")
        if not isinstance(key, str):
            return None
        response = response if isinstance(response, dict) else {}
        # Servers with OpenAI's protocol may write the status and the body as texts, or leave out the status.
        body = response.get("body")
        error = error or _find_error(body)
        if not (status := read_count(response, "status_code")):
            code = read_count(error, "code")
            status = code if 400 <= code < 600 else HTTPStatus.OK if body and not error else 0
        if status:
            return BatchCallResponse(key, status, body.encode() if isinstance(body, str) else encode_body(body))
        reason = error.get("message") or error.get("code") if isinstance(error, dict) else error
        return BatchCallResponse(key, None, not_sent_reason=str(reason or "the batch has no result for this call"))


def _find_error(body: Any) -> Any:
    """The error that a response's body holds, which may be a text of JSON; None if it holds none."""
    try:
        parsed_body = json.loads(body) if isinstance(body, str) else body
    except (ValueError, RecursionError):
        return None
    return parsed_body.get("error") if isinstance(parsed_body, dict) else None


def _creation_time(batch: dict[str, Any]) -> float:
    """Time at which a batch was created, in seconds since 1970; 0 if unknown."""
    created_at = batch.get("created_at")
    return float(created_at) if isinstance(created_at, (int, float)) else 0.0


OPENAI = _OpenAIBatches()
