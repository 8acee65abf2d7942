"""Batches as OpenAI has them: a file of requests, a batch of the file, files of answers and of errors.

Source: https://platform.openai.com/docs/guides/batch
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from auditor.models.batches.client import FILE_TRANSFER_TIMEOUT_S, BatchClient, BatchRequestFailed, quote_path_segment
from auditor.models.batches.provider import BatchCallResponse, BatchStatus, encode_body

CHAT_ENDPOINT = "/v1/chat/completions"
TAG_KEY = "auditor"
"""The key of a batch's metadata that holds our name for it."""
END_STATUSES = ("completed", "failed", "expired", "cancelled")
QUEUE_FULL_CODE = "token_limit_exceeded"
NO_BATCHES_STATUSES = (404, 405, 501)
PAGE_SIZE = 100


class _OpenAIBatches:
    call_path = "/chat/completions"
    max_calls = 50_000
    is_match_certain = True

    async def has_batches(self, client: BatchClient) -> bool:
        """Whether the list of batches is there."""
        try:
            found = await client.request_json("GET", "/batches", params={"limit": 1})
        except BatchRequestFailed as error:
            if error.http_status in NO_BATCHES_STATUSES or error.http_status == 200:
                return False
            raise
        return isinstance(found.get("data"), list)

    def format_call(self, key: str, body: bytes) -> bytes:
        """A line of the file of requests."""
        told = json.dumps({"custom_id": key, "method": "POST", "url": CHAT_ENDPOINT})
        return told[:-1].encode() + b', "body": ' + body.replace(b"\n", b" ") + b"}"

    async def submit(self, client: BatchClient, formatted_calls: Sequence[bytes], tag: str) -> str:
        """The file first, then the batch."""
        file = ("requests.jsonl", b"\n".join(formatted_calls) + b"\n", "application/jsonl")
        put = await client.request_json(
            "POST", "/files", total_timeout_s=FILE_TRANSFER_TIMEOUT_S, data={"purpose": "batch"}, files={"file": file}
        )
        asked = {"input_file_id": require_id(put), "endpoint": CHAT_ENDPOINT, "completion_window": "24h"}
        return require_id(await client.request_json("POST", "/batches", json={**asked, "metadata": {TAG_KEY: tag}}))

    async def find_submitted(
        self, client: BatchClient, tag: str, n_calls: int, since: datetime, known_ids: set[str]
    ) -> list[str]:
        """By the tag in its metadata; the list begins with the latest."""
        after: dict[str, str] = {}
        while True:
            page = await client.request_json("GET", "/batches", params={"limit": PAGE_SIZE, **after})
            batches = [b for b in page.get("data") or [] if isinstance(b, dict)]
            for batch in batches:
                if (batch.get("metadata") or {}).get(TAG_KEY) == tag:
                    return [require_id(batch)]
            if not page.get("has_more") or not batches or _creation_time(batches[-1]) < since.timestamp():
                return []
            after = {"after": require_id(batches[-1])}

    async def fetch_status(self, client: BatchClient, batch_id: str) -> BatchStatus:
        """Its status, and the files of answers and of errors that are there."""
        batch = await client.request_json("GET", f"/batches/{quote_path_segment(batch_id)}")
        status = str(batch.get("status"))
        files = [f for f in (batch.get("output_file_id"), batch.get("error_file_id")) if isinstance(f, str) and f]
        refused, crowded = None, False
        if status == "failed":
            errors = [e for e in (batch.get("errors") or {}).get("data") or [] if isinstance(e, dict)]
            refused = "; ".join(str(e.get("message")) for e in errors[:3]) or "the provider does not say why"
            crowded = any(e.get("code") == QUEUE_FULL_CODE for e in errors)
        return BatchStatus(
            status,
            status in END_STATUSES,
            refused,
            crowded,
            tuple(f"/files/{quote_path_segment(f)}/content" for f in files),
        )

    def parse_line(self, line: dict[str, Any]) -> BatchCallResponse | None:
        """A line of either file."""
        key, response, error = line.get("custom_id"), line.get("response"), line.get("error")
        if not isinstance(key, str):
            return None
        if isinstance(response, dict) and isinstance(status := response.get("status_code"), int):
            return BatchCallResponse(key, status, encode_body(response.get("body")))
        why = error.get("message") or error.get("code") if isinstance(error, dict) else None
        return BatchCallResponse(key, None, not_sent_reason=str(why or "the batch holds no answer to it"))


def _creation_time(batch: dict[str, Any]) -> float:
    made = batch.get("created_at")
    return float(made) if isinstance(made, (int, float)) else 0.0


def require_id(response_body: dict[str, Any]) -> str:
    """The id in a server's answer.

    Raises:
        NotTaken: there is none.
    """
    if not isinstance(id_ := response_body.get("id"), str) or not id_:
        raise BatchRequestFailed("the server's answer about batches names no id", 200, is_retryable=False)
    return id_


OPENAI = _OpenAIBatches()
