"""Gemini's batch API: all requests are sent in one body, and the finished batch holds all responses.

Source: https://ai.google.dev/gemini-api/docs/batch-api and https://ai.google.dev/api/batch-api. Batches of Vertex AI
read requests from a bucket, and are another API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import IO, Any

from auditor.models.batches.openai import PAGE_SIZE
from auditor.models.batches.provider import (
    FILE_TRANSFER_TIMEOUT_S,
    BatchCallResponse,
    BatchClient,
    BatchStatus,
    encode_body,
    quote_path_segment,
    read_count,
    require_text,
)

CALL_URL_PATTERN = re.compile(r"(?P<base>.+)/(?P<model>models/[^/:]+):generateContent")
STATUS_FIELDS = "name,done,error,metadata(state,displayName,createTime,batchStats)"
"""Fields of a batch's status: without them, that of a finished one has all responses."""
END_STATES = ("succeeded", "failed", "cancelled", "expired")
RESOURCE_EXHAUSTED = 8
HTTP_STATUS_BY_CODE = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}
"""HTTP status of each error code (google.rpc.Code) in the response to a single call."""


class _GeminiBatches:
    """`BatchProvider` for the Gemini API."""

    max_calls = 50_000
    max_bytes = 19_000_000  # requests are limited to 20 MB; larger batches need an uploaded file
    is_match_certain = True

    def base_url(self, call_url: str) -> str | None:
        """The URL before the model's name."""
        match = CALL_URL_PATTERN.fullmatch(call_url.partition("?")[0])
        return match["base"] if match else None

    async def has_batches(self, client: BatchClient) -> bool:
        """Whether batches can be listed; the list of none is empty."""
        return await client.has_list("/batches", "operations", size_param="pageSize", may_be_absent=True)

    def format_call(self, key: str, body: bytes) -> bytes:
        """Format one call as an element of the list of requests: its key, and the body of a single request as JSON."""
        return b'{"request": ' + body + b', "metadata": {"key": "' + key.encode() + b'"}}'

    async def submit(self, client: BatchClient, formatted_calls: Sequence[bytes], tag: str) -> str:
        """Submit all calls in one request, with the tag as the batch's name, and return the batch's id."""
        head = b'{"batch": {"display_name": ' + json.dumps(tag).encode()
        requests = b', "input_config": {"requests": {"requests": [' + b",".join(formatted_calls) + b"]}}}}"
        match = CALL_URL_PATTERN.fullmatch(client.call_url.partition("?")[0])
        assert match is not None
        operation = await client.request_json(
            "POST",
            f"/{match['model']}:batchGenerateContent",
            total_timeout_s=FILE_TRANSFER_TIMEOUT_S,
            content_type="application/json",
            content=head + requests,
        )
        return require_text(operation, "name")

    async def find_submitted(
        self, client: BatchClient, tag: str, n_calls: int, since: datetime, known_ids: set[str]
    ) -> list[str]:
        """Return the id of the batch with this tag as its name, as a list of one; empty if there is none."""
        fields = f"operations({STATUS_FIELDS}),nextPageToken"
        page_token: dict[str, str] = {}
        while True:
            page = await client.request_json(
                "GET", "/batches", params={"pageSize": PAGE_SIZE, "fields": fields, **page_token}
            )
            for operation in page.get("operations") or []:
                if isinstance(operation, dict) and _metadata(operation).get("displayName") == tag:
                    return [require_text(operation, "name")]
            if not isinstance(next_token := page.get("nextPageToken"), str) or not next_token:
                return []
            page_token = {"pageToken": next_token}

    async def fetch_status(self, client: BatchClient, batch_id: str) -> BatchStatus:
        """Fetch a batch's state; its responses are read by the same path, without the selection of fields."""
        path = f"/batches/{quote_path_segment(batch_id.removeprefix('batches/'))}"
        operation = await client.request_json("GET", path, params={"fields": STATUS_FIELDS})
        state = _state(operation)
        has_ended = state in END_STATES or operation.get("done") is True
        error = operation["error"] if isinstance(operation.get("error"), dict) else {}
        n_succeeded = read_count(_metadata(operation).get("batchStats"), "successfulRequestCount")
        rejection_reason = None
        if _has_failed(operation) and not n_succeeded:
            rejection_reason = str(error.get("message") or "the provider gave no reason")
        is_readable = has_ended and rejection_reason is None and state != "expired"
        return BatchStatus(
            state or "done",
            has_ended,
            rejection_reason,
            error.get("code") == RESOURCE_EXHAUSTED,
            (path,) if is_readable else (),
            n_succeeded,
        )

    def iter_responses(self, file: IO[bytes], call_keys: Sequence[str]) -> Iterator[BatchCallResponse | None]:
        """Yield the response to each call, by the key in its metadata; None for one of several without a key.

        The API reference promises the order of the requests, but the service mixes up large batches
        (https://github.com/googleapis/python-genai/issues/1909): by their order, answers would get to other questions.
        """
        try:
            operation = json.load(file)
        except (ValueError, RecursionError):
            operation = None
        responses = _find_responses(operation)
        # Only a batch that did not succeed may have none; others have them elsewhere, such as in a file.
        may_be_empty = isinstance(operation, dict) and (_state(operation) == "cancelled" or _has_failed(operation))
        if not responses and not may_be_empty:
            yield None
        only_key = call_keys[0] if len(call_keys) == len(responses) == 1 else None
        for response in responses:
            yield _parse_response(_key_of(response) or only_key, response)


def _metadata(operation: dict[str, Any]) -> dict[str, Any]:
    """The batch that an operation describes; empty if there is none."""
    metadata = operation.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _state(operation: dict[str, Any]) -> str:
    """State of a batch, from `BATCH_STATE_SUCCEEDED`, or `JOB_STATE_SUCCEEDED` in earlier versions; may be empty."""
    return str(_metadata(operation).get("state") or "").rpartition("STATE_")[2].lower()


def _has_failed(operation: dict[str, Any]) -> bool:
    """Whether a batch has ended with an error; one that was cancelled or expired may have one too."""
    state, has_error = _state(operation), isinstance(operation.get("error"), dict)
    if state in END_STATES:
        return state == "failed" or (has_error and state == "succeeded")
    return has_error and operation.get("done") is True


def _find_responses(operation: Any) -> list[Any]:
    """The list of responses in a finished batch; empty if there is none."""
    metadata = _metadata(operation) if isinstance(operation, dict) else {}
    holders = (operation.get("response"), metadata.get("output"), metadata) if isinstance(operation, dict) else ()
    for holder in holders:
        inlined = holder.get("inlinedResponses") if isinstance(holder, dict) else None
        responses = inlined.get("inlinedResponses") if isinstance(inlined, dict) else inlined
        if isinstance(responses, list):
            return responses
    return []


def _key_of(response: Any) -> str | None:
    """The key in a response's metadata; None if it has none."""
    key = _metadata(response).get("key") if isinstance(response, dict) else None
    return key if isinstance(key, str) else None


def _parse_response(key: str | None, response: Any) -> BatchCallResponse | None:
    """Parse the response to one call; None if it is malformed."""
    if key is None or not isinstance(response, dict):
        return None
    if isinstance(response.get("response"), dict):
        return BatchCallResponse(key, 200, encode_body(response["response"]))
    if isinstance(error := response.get("error"), dict):
        code = error.get("code")
        status = HTTP_STATUS_BY_CODE.get(code, 500) if isinstance(code, int) else 500
        return BatchCallResponse(key, status, encode_body({"error": {**error, "code": status}}))
    return BatchCallResponse(key, None, not_sent_reason="the batch has no result for this call")


GEMINI = _GeminiBatches()
