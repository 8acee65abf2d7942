"""A provider's batch API: its interface, the client of its endpoints, and calls as lines of batches."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO, Any, Protocol, TypeVar
from urllib.parse import quote

import httpx

from auditor.domain import Call, Capability
from auditor.error_messages import MAX_MESSAGE_CHARS, provider_message
from auditor.errors import ModelSetupError
from auditor.models.capability_discovery import initial_capability
from auditor.models.endpoint import Endpoint
from auditor.models.failures import parse_retry_after
from auditor.models.litellm_client import get_http_client
from auditor.models.provider_request import ProviderReply, send_request
from auditor.models.responses import sanitize, sanitize_strings
from auditor.models.transport import (
    CURRENT_EXCHANGE,
    MAX_RESPONSE_BYTES,
    SERVER_STUB,
    HttpExchange,
    ServerStub,
    UnacceptableExchange,
    UnreadableResponse,
)

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

    @property
    def is_refusal(self) -> bool:
        """Whether the server certainly did nothing; after other failures it may have done what was requested."""
        return self.http_status is not None and 400 <= self.http_status < 500


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
                            _write(file, chunk)
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


def _write(file: IO[bytes], chunk: bytes) -> None:
    """Write a part of a file that is downloaded.

    Raises:
        ModelSetupError: it cannot be written, such as for a full disk.
    """
    try:
        file.write(chunk)
        file.flush()
    except OSError as error:
        raise full_disk_error(error) from None


def full_disk_error(error: OSError) -> ModelSetupError:
    """The error for results that cannot be written on this machine, or be read again."""
    return ModelSetupError(
        f"the results of a batch cannot be written into the folder {tempfile.gettempdir()}: {error.strerror}.",
        "Free space there, or set TMPDIR to another folder. Then run the same command again.",
    )


def _select_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a call that requests about batches need too."""
    return {name: value for name, value in headers.items() if name.lower() not in CONTENT_HEADERS}


def quote_path_segment(segment: str) -> str:
    """Quote a provider's id as one segment of a URL path, slashes included."""
    return quote(segment, safe="")


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """Status of a batch.

    Attributes:
        provider_status: the provider's name of the status.
        has_ended: whether all its results are available.
        rejection_reason: why the whole batch was rejected, so that nothing was charged; None if it was not.
        is_queue_full: whether it was rejected because of other batches in the queue, and may be accepted later.
        result_paths: URL paths of its files of results, or whole URLs; they are read as one file.
        n_succeeded: number of its calls that were answered, as the provider counts them; 0 if it does not.
    """

    provider_status: str
    has_ended: bool
    rejection_reason: str | None = None
    is_queue_full: bool = False
    result_paths: tuple[str, ...] = ()
    n_succeeded: int = 0


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
        text = line.decode("utf-8", "replace").removeprefix("\ufeff")  # a stray byte or a mark loses no answer
        if not text.strip():
            continue
        try:
            parsed_line = json.loads(text)
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


def read_count(counts: Any, field: str) -> int:
    """A number of calls in a server's response, which Google writes as a text; 0 if it is missing or unreadable."""
    count = counts.get(field) if isinstance(counts, dict) else None
    if isinstance(count, str) and count.isascii() and count.isdigit() and len(count) < 10:
        return int(count)
    return count if isinstance(count, int) and count >= 0 else 0


def encode_body(parsed_body: Any) -> bytes:
    """Encode the part of a result line that is the body of a single call's response as JSON."""
    return json.dumps(parsed_body).encode()


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request as litellm would have sent it."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


async def prepare_request(
    endpoint: Endpoint, call: Call, timeout_s: float, capability: Capability | None = None
) -> PreparedRequest | ProviderReply:
    """Build the request that would be sent for a call, byte for byte; if that fails, return the failed reply.

    It asks for no stream, which batches do not have.

    Without a capability it is the request that discovery would begin with.
    """
    endpoint = replace(endpoint, stream=False)
    capability = replace(capability or initial_capability(call.model, call.server), stream=False)
    captured_requests: list[PreparedRequest] = []

    def capture_request(request: httpx.Request, body: bytes) -> httpx.Response:
        """Keep the request, and answer it with an error; the reply made of that is discarded."""
        captured_requests.append(PreparedRequest(str(request.url), dict(request.headers), body))
        return httpx.Response(400, json={"error": {"message": "kept", "type": "invalid_request_error"}})

    reply = await _await_with_stub(
        capture_request, send_request(endpoint, call, attempt_number=1, timeout_s=timeout_s, capability=capability)
    )
    return captured_requests[-1] if captured_requests else reply


async def parse_batch_answer(
    endpoint: Endpoint,
    call: Call,
    call_response: BatchCallResponse,
    *,
    attempt_number: int,
    timeout_s: float,
    capability: Capability | None = None,
) -> ProviderReply:
    """Parse a batch's response to a call as the response to a single request would be.

    Args:
        endpoint: of the model, with the prices of a batch.
        call: the call that was submitted.
        call_response: the batch's response; the call must have been sent.
        attempt_number: number of this attempt at the call, from 1.
        timeout_s: time limit in seconds, passed on to `send_request`.
        capability: what the call was submitted under; None for the one that discovery would begin with.
    """
    capability = capability or initial_capability(call.model, call.server)

    def replay_response(request: httpx.Request, body: bytes) -> httpx.Response:
        """Answer any request with the batch's response to the call."""
        return httpx.Response(
            call_response.http_status or 500, headers={"content-type": "application/json"}, content=call_response.body
        )

    return await _await_with_stub(
        replay_response,
        send_request(endpoint, call, attempt_number=attempt_number, timeout_s=timeout_s, capability=capability),
    )


async def _await_with_stub(server_stub: ServerStub, pending_reply: Awaitable[ProviderReply]) -> ProviderReply:
    """Await a reply while `server_stub` answers all requests in place of a server."""
    token = SERVER_STUB.set(server_stub)
    try:
        return await pending_reply
    finally:
        SERVER_STUB.reset(token)
