"""HTTP client for batch endpoints: uses the guarded transport, the server and the headers of single calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import IO, Any, TypeVar
from urllib.parse import quote

import httpx

from auditor.error_messages import MAX_MESSAGE_CHARS, provider_message
from auditor.models.litellm_client import get_http_client
from auditor.models.responses import sanitize, sanitize_strings
from auditor.models.retry_after import parse_retry_after
from auditor.models.transport import CURRENT_EXCHANGE, HttpExchange, UnacceptableExchange, UnreadableResponse

T = TypeVar("T")
BATCH_REQUEST_TIMEOUT_S, FILE_TRANSFER_TIMEOUT_S = 60.0, 1800.0
"""Time limits of a request about a batch, and of the upload or download of a file."""
CONTENT_HEADERS = ("host", "content-length", "content-type", "accept", "accept-encoding", "connection", "user-agent")
"""Headers of a call that are not needed for authentication, and are not copied to requests about batches."""
NO_BATCHES_STATUSES = (404, 405, 501)
UNAUTHORIZED = 401


class BatchRequestFailed(Exception):
    """A request about a batch failed.

    Attributes:
        http_status: of the response; None if there was none.
        is_retryable: whether the same request may succeed later.
        retry_after_s: how long the server asks to wait; None if it does not say.
    """

    def __init__(
        self, message: str, http_status: int | None, *, is_retryable: bool, retry_after_s: float | None = None
    ) -> None:
        """Store the message, whose secrets the caller has redacted, and the attributes."""
        super().__init__(message)
        self.http_status = http_status
        self.is_retryable = is_retryable
        self.retry_after_s = retry_after_s


class BatchClient:
    """Client for one server's batch endpoints.

    Attributes:
        call_url: URL of a single call.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        call_url: str,
        renew_headers: Callable[[], Awaitable[Mapping[str, str]]] | None = None,
    ) -> None:
        """Store the server's URL and the credentials.

        Args:
            base_url: prefix of all paths.
            headers: headers of a single call, with the API key or an access token.
            call_url: URL of a single call, which may name the model.
            renew_headers: returns the headers that a single call would have now; None if they stay the same. An access
                token expires within an hour, and a batch takes up to a day.
        """
        self._base_url, self.call_url, self._renew_headers = base_url, call_url, renew_headers
        self._headers = _select_headers(headers)

    async def has_list(
        self, path: str, field: str = "data", *, size_param: str = "limit", may_be_absent: bool = False
    ) -> bool:
        """Whether the server lists the batches under a path.

        Args:
            path: appended to the base URL.
            field: of the response, with the list.
            size_param: query parameter with the length of a page; Google refuses names that it does not know.
            may_be_absent: whether an empty object is an empty list.

        Raises:
            BatchRequestFailed: the request failed for another reason than a server without batch endpoints.
        """
        try:
            page = await self.request_json("GET", path, params={size_param: 1})
        except BatchRequestFailed as error:
            # 200: the server answers this path, but not with a JSON object, so it has no batch endpoints.
            if error.http_status in NO_BATCHES_STATUSES or error.http_status == 200:
                return False
            raise
        return isinstance(page.get(field), list) or (may_be_absent and not page)

    async def request_json(
        self,
        method: str,
        path: str,
        *,
        total_timeout_s: float = BATCH_REQUEST_TIMEOUT_S,
        content_type: str | None = None,
        **httpx_options: Any,
    ) -> dict[str, Any]:
        """Send a request and return the JSON object of the response, with its strings sanitized.

        Args:
            method: HTTP method.
            path: appended to the base URL, or a whole URL.
            total_timeout_s: time limit of the request, in seconds.
            content_type: of `content`, if that is bytes.
            httpx_options: httpx's `json`, `content`, `data`, `files` or `params`.

        Raises:
            BatchRequestFailed: the request failed, or the response is not a JSON object.
        """

        async def send() -> dict[str, Any]:
            """Send the request with the present headers."""
            exchange = HttpExchange()
            CURRENT_EXCHANGE.set(exchange)
            headers = self._headers | ({"content-type": content_type} if content_type else {})
            request = get_http_client().build_request(method, self._url(path), headers=headers, **httpx_options)
            try:
                async with asyncio.timeout(total_timeout_s):
                    response = await get_http_client().send(request)
            except UnreadableResponse as error:
                raise BatchRequestFailed(
                    f"the batch API of the provider returned {error}", exchange.status, is_retryable=True
                ) from None
            except (httpx.HTTPError, TimeoutError, OSError, UnacceptableExchange) as error:
                raise self._connection_failure(error) from error
            self._require_success(response)
            # Sanitized, since ids, statuses and messages are stored and shown.
            body: dict[str, Any] = sanitize_strings(exchange.json_body or {})
            return body

        return await self._send_with_renewal(send)

    async def download_file(self, path: str, file: IO[bytes], max_response_bytes: int) -> None:
        """Download a file from the server.

        Args:
            path: appended to the base URL, or a whole URL.
            file: where the bytes are written.
            max_response_bytes: largest allowed size of the file.

        Raises:
            BatchRequestFailed: the download failed, or the file is too large; `file` may hold a part of it.
        """

        async def send() -> None:
            """Download the file with the present headers."""
            CURRENT_EXCHANGE.set(HttpExchange(max_response_bytes, is_streamed=True))
            request = get_http_client().build_request("GET", self._url(path), headers=self._headers)
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

        await self._send_with_renewal(send)

    def _url(self, path: str) -> str:
        """The URL of a path, which may be a whole URL."""
        return self._base_url + path if path.startswith("/") else path

    async def _send_with_renewal(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send a request; once more, with new headers, if the server refuses the old ones, such as an expired token."""
        try:
            return await send()
        except BatchRequestFailed as error:
            if error.http_status != UNAUTHORIZED or self._renew_headers is None:
                raise
            headers = _select_headers(await self._renew_headers())
            if not headers or headers == self._headers:
                raise
            self._headers = headers
        return await send()

    def _connection_failure(self, error: Exception) -> BatchRequestFailed:
        """Convert an error without a response; it is retryable unless `UnacceptableExchange` is among its causes."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, UnacceptableExchange):
            cause = cause.__cause__
        text = sanitize(str(cause or error) or type(error).__name__)
        return BatchRequestFailed(text[:MAX_MESSAGE_CHARS], None, is_retryable=cause is None)

    def _require_success(self, response: httpx.Response) -> None:
        """Raise BatchRequestFailed if the response has an error status; its body must have been read."""
        if response.is_success:
            return
        status, text = (
            response.status_code,
            sanitize(provider_message(response.text) or f"HTTP status {response.status_code}"),
        )
        # Timeout, conflict, too many requests.
        is_retryable = status in (408, 409, 429) or status >= 500
        raise BatchRequestFailed(
            text, status, is_retryable=is_retryable, retry_after_s=parse_retry_after(response.headers)
        )


def _select_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a call that requests about batches need too."""
    return {name: value for name, value in headers.items() if name.lower() not in CONTENT_HEADERS}


def quote_path_segment(segment: str) -> str:
    """Quote a provider's id as one segment of a URL path, slashes included."""
    return quote(segment, safe="")
