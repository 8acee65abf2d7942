"""Requests about batches: through the guarded door of all calls, to the server of the calls, with their headers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import IO, Any
from urllib.parse import quote

import httpx

from auditor.models.failures import MAX_ERROR_CHARS, parse_retry_after
from auditor.models.litellm_client import get_http_client
from auditor.models.responses import sanitize, sanitize_strings
from auditor.models.transport import CURRENT_EXCHANGE, HttpExchange, UnacceptableExchange, UnreadableResponse

BATCH_REQUEST_TIMEOUT_S, FILE_TRANSFER_TIMEOUT_S = 60.0, 1800.0
"""Time limits: of a question about a batch, and of moving a file."""
CONTENT_HEADERS = ("host", "content-length", "content-type", "accept", "accept-encoding", "connection", "user-agent")
"""Headers of a call that say nothing of who asks."""


class BatchRequestFailed(Exception):
    """A request about a batch did not succeed.

    Attributes:
        status: HTTP status; None when no answer came.
        again: whether the same request may succeed later.
        wait_s: how long the server asks to wait.
    """

    def __init__(
        self, message: str, http_status: int | None, *, is_retryable: bool, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.is_retryable = is_retryable
        self.retry_after_s = retry_after_s


class BatchClient:
    """The way to one server's batches."""

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        """Keep where to, and as whom.

        Args:
            base: what the paths begin with.
            headers: of a call, the key among them.
        """
        self._base_url = base_url
        self._headers = {k: v for k, v in headers.items() if k.lower() not in CONTENT_HEADERS}

    async def request_json(
        self,
        method: str,
        path: str,
        *,
        total_timeout_s: float = BATCH_REQUEST_TIMEOUT_S,
        content_type: str | None = None,
        **httpx_options: Any,
    ) -> dict[str, Any]:
        """The JSON object that a request brings.

        Args:
            kind: the content's type, where it is bytes.
            parts: as httpx takes them: json, content, data, files, params.

        Raises:
            NotTaken: it brings none.
        """
        wire = HttpExchange()
        CURRENT_EXCHANGE.set(wire)
        headers = self._headers | ({"content-type": content_type} if content_type else {})
        request = get_http_client().build_request(method, self._base_url + path, headers=headers, **httpx_options)
        try:
            async with asyncio.timeout(total_timeout_s):
                response = await get_http_client().send(request)
        except UnreadableResponse as error:
            raise BatchRequestFailed(
                f"asked about its batches, the server answered with {error}", wire.status, is_retryable=True
            ) from None
        except (httpx.HTTPError, TimeoutError, OSError, UnacceptableExchange) as error:
            raise self._connection_failure(error) from error
        self._require_success(response)
        body: dict[str, Any] = sanitize_strings(wire.json_body or {})  # ids, statuses and messages are stored and shown
        return body

    async def download_file(self, path: str, file: IO[bytes], max_response_bytes: int) -> None:
        """Write a file of the server's to a file.

        Args:
            most: bytes that it may have.

        Raises:
            NotTaken: it does not come, or not whole.
        """
        CURRENT_EXCHANGE.set(HttpExchange(max_response_bytes))
        request = get_http_client().build_request("GET", self._base_url + path, headers=self._headers)
        try:
            async with asyncio.timeout(FILE_TRANSFER_TIMEOUT_S):
                response = await get_http_client().send(request, stream=True)
                try:
                    if response.is_error:
                        await response.aread()
                    self._require_success(response)
                    async for chunk in response.aiter_bytes():
                        file.write(chunk)
                finally:
                    await response.aclose()
        except (httpx.HTTPError, TimeoutError, OSError, UnacceptableExchange, UnreadableResponse) as error:
            raise self._connection_failure(error) from error

    def _connection_failure(self, error: Exception) -> BatchRequestFailed:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, UnacceptableExchange):
            cause = cause.__cause__
        text = sanitize(str(cause or error) or type(error).__name__)
        return BatchRequestFailed(text[:MAX_ERROR_CHARS], None, is_retryable=cause is None)

    def _require_success(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        status, text = response.status_code, sanitize(_error_message(response))
        again = status in (408, 409, 429) or status >= 500
        raise BatchRequestFailed(
            text[:MAX_ERROR_CHARS], status, is_retryable=again, retry_after_s=parse_retry_after(response.headers)
        )


def _error_message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return " ".join(response.text.split()) or f"HTTP status {response.status_code}"


def quote_path_segment(segment: str) -> str:
    """A provider's id as one part of a path, whatever it holds."""
    return quote(segment, safe="")
