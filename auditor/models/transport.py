"""HTTP transport for all requests to providers: limits the size of responses, also unpacked, and refuses redirects.

A response must not exhaust this process's memory: 450 KB of gzip unpack to 100 MB. litellm creates its HTTP clients by
`AsyncHTTPHandler.create_async_transport` (Anthropic, Gemini, Bedrock, OpenAI, …), or is given one (OpenAI's SDK, for
the completions endpoint). Both use `GuardedTransport`, which also records in `HttpExchange` what was really sent and
received, and counts requests, so that no library's own retry goes unnoticed.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import math
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import httpx

from auditor.config.credential_hosts import is_metadata_host
from auditor.models.response_body import is_event_stream, join_events
from auditor.redaction import redact, register_secrets

MAX_RESPONSE_BYTES = 8_000_000
"""Largest body of one response; a larger one raises `UnacceptableExchange`."""
UNCOMPRESSED_ENCODINGS = frozenset({"", "identity", "none", "utf-8", "utf8"})
"""Values of the header content-encoding of bodies that are not compressed; some servers send a charset there."""
ZLIB_ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})
"""Compressions that are unpacked: some gateways compress every response, though no compression is accepted."""
JSON_TYPE = "application/json"
GZIP_START = b"\x1f\x8b"
ZLIB_HEADER_BITS = 32 + zlib.MAX_WBITS
"""For `zlib.decompressobj`: the data say by their header whether they are gzip or zlib."""
MAX_SILENCE_S = 2.0
"""How long more bytes are awaited after a whole answer, from a server that does not end its response."""
CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "x-amz-security-token")
AWS_SIGNATURE_SCHEME = "AWS4-HMAC-SHA256"
"""Start of an `Authorization` header that holds a signature of this one request, and no secret."""
CONNECT_TIMEOUT_SHARE = 0.9
"""Share of a request's time limit that connecting to the server may take."""
MAX_CONNECT_TIMEOUT_S = 60.0
MAX_RECORDED_BYTES = 65_536
"""Bytes of a response's body that are recorded, from its beginning."""


class UnacceptableExchange(Exception):
    """The server's response, or a request's destination, is not allowed; a retry would not help."""


class RedirectRefused(UnacceptableExchange):
    """The server answered with a redirect; prompts and keys are not sent to another address."""


class ServerUnreachable(httpx.NetworkError):
    """No connection could be made; nothing was sent."""


class UnreadableResponse(Exception):
    """The server's response cannot be read as a JSON answer; a retry may help.

    The message is a noun phrase for what was sent instead, such as "an empty body".
    """


class HttpExchange:
    """Record of the HTTP request and response of one call, as they were sent and received.

    Attributes:
        max_response_bytes: largest allowed body of the response.
        total_timeout_s: time limit of the whole request, in seconds; None for no limit.
        network_s: seconds from sending to the end of the response, of all requests together.
        n_requests: number of requests sent; more than 1 means that a library retried on its own.
        request_body: body of the last request.
        body_start: the first `MAX_RECORDED_BYTES` bytes of its response's body; None before a response begins.
        response_size: bytes of the body received so far.
        status: HTTP status of the response; None before a response begins.
        headers: of the response; empty before a response begins.
        json_body: the JSON object of a successful response; None if it is not one, or was not read in full.
        unreachable: whether no connection could be made for the last request.
        access_token: replaces the credentials that litellm sends; None to leave them.
        is_streamed: whether the body is left to be read by the caller, as that of a large file.
    """

    __slots__ = (
        "access_token",
        "body_start",
        "headers",
        "is_streamed",
        "json_body",
        "max_response_bytes",
        "n_requests",
        "network_s",
        "request_body",
        "response_size",
        "status",
        "total_timeout_s",
        "unreachable",
    )

    def __init__(
        self,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        total_timeout_s: float | None = None,
        *,
        is_streamed: bool = False,
    ) -> None:
        """Create an empty record, with the limits of the request that will be recorded."""
        self.max_response_bytes, self.total_timeout_s = max_response_bytes, total_timeout_s
        self.is_streamed = is_streamed
        self.access_token: str | None = None
        self.n_requests, self.network_s = 0, 0.0
        self.start_request(b"")

    def start_request(self, request_body: bytes) -> None:
        """Reset the record for a new request."""
        self.request_body, self.response_size = request_body, 0
        self.status: int | None = None
        self.body_start: bytearray | None = None
        self.headers = httpx.Headers()
        self.json_body: dict[str, Any] | None = None
        self.unreachable = False

    @property
    def is_fully_recorded(self) -> bool:
        """Whether `body_start` holds all of the body that was received."""
        return self.body_start is not None and len(self.body_start) == self.response_size

    @property
    def is_error_status(self) -> bool:
        """Whether the response's HTTP status is 400 or higher."""
        return self.status is not None and self.status >= 400

    def receive_chunk(self, chunk: bytes) -> None:
        """Count a chunk of the response's body, and record it up to `MAX_RECORDED_BYTES` in all."""
        self.response_size += len(chunk)
        if self.body_start is not None and (bytes_left := MAX_RECORDED_BYTES - len(self.body_start)) > 0:
            self.body_start += chunk[:bytes_left]


CURRENT_EXCHANGE: ContextVar[HttpExchange | None] = ContextVar("wire", default=None)
"""The record of this asyncio task's request."""
ServerStub = Callable[[httpx.Request, bytes], httpx.Response]
SERVER_STUB: ContextVar[ServerStub | None] = ContextVar("stand_in", default=None)
"""Answers this asyncio task's requests in place of a server, so that none is sent; called with request and body."""


class _Unpacker:
    """Unpacks a body of gzip, which may have several members, of zlib, or of deflate without zlib's header.

    Some servers send the last as `deflate`, as do old ones of Microsoft. What follows the end, such as padding, is
    ignored.
    """

    def __init__(self) -> None:
        self._packed = b""
        self._member: zlib._Decompress | None = None
        self._has_begun = False

    def unpack(self, chunk: bytes, max_bytes: int) -> bytes:
        """Unpack the next chunk to at most `max_bytes`; raises `zlib.error` if it is damaged."""
        self._packed += chunk
        unpacked = bytearray()
        while self._packed and len(unpacked) < max_bytes:
            if self._member is None and not self._begin_member():
                break
            assert self._member is not None
            unpacked += self._member.decompress(self._packed, max_bytes - len(unpacked))
            self._packed = self._member.unused_data
            if self._member.eof:
                self._member = None
        return bytes(unpacked)

    def _begin_member(self) -> bool:
        """Begin the body, or a further member of gzip; False if nothing to unpack has come yet."""
        if len(self._packed) < len(GZIP_START):
            return False
        is_gzip = self._packed.startswith(GZIP_START)
        if self._has_begun and not is_gzip:
            self._packed = b""
            return False
        # RFC 1950, "Data format": deflate's method is 8, and the first two bytes are a multiple of 31.
        is_zlib = self._packed[0] & 0x0F == 8 and int.from_bytes(self._packed[:2]) % 31 == 0
        self._member = zlib.decompressobj(ZLIB_HEADER_BITS if is_gzip or is_zlib else -zlib.MAX_WBITS)
        self._has_begun = True
        return True


class _BoundedStream(httpx.AsyncByteStream):
    """A response's body, unpacked, that raises `UnacceptableExchange` once it is too large; an error's is shortened.

    Only the first `MAX_RECORDED_BYTES` of an error's body are passed on: litellm searches the whole text of an error
    some fifty times, which takes a second for 8 MB.
    """

    def __init__(self, body: httpx.AsyncByteStream, exchange: HttpExchange, *, is_packed: bool) -> None:
        """Store the response's body, the record that its bytes are counted in, and whether zlib can unpack it."""
        self._body = body
        self._exchange = exchange
        self._unpacker = _Unpacker() if is_packed else None

    def _unpack(self, chunk: bytes) -> bytes:
        """Unpack a chunk, no further than one byte above the limit.

        Raises:
            UnreadableResponse: it is damaged.
        """
        if self._unpacker is None:
            return chunk
        try:
            return self._unpacker.unpack(chunk, self._exchange.max_response_bytes - self._exchange.response_size + 1)
        except zlib.error:
            raise UnreadableResponse("damaged compressed data") from None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body's chunks and record them.

        Raises:
            UnacceptableExchange: the body is larger than `max_response_bytes`.
            UnreadableResponse: it is compressed, and damaged.
        """
        n_received = 0  # what unpacks to nothing counts, too
        async for received_chunk in self._body:
            if not n_received and received_chunk.startswith(GZIP_START[:1]):  # no text begins so
                self._unpacker = self._unpacker or _Unpacker()  # a file stored packed, as by gateways, has no header
            n_received += len(received_chunk)
            chunk = self._unpack(received_chunk)
            self._exchange.receive_chunk(chunk)
            if max(n_received, self._exchange.response_size) > self._exchange.max_response_bytes:
                raise UnacceptableExchange(
                    f"the answer is larger than {self._exchange.max_response_bytes // 1_000_000} MB"
                )
            if self._exchange.is_error_status:
                # What is left of the limit after the bytes received before this chunk.
                chunk = chunk[: max(0, MAX_RECORDED_BYTES - (self._exchange.response_size - len(chunk)))]
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


class GuardedTransport(httpx.AsyncBaseTransport):
    """Wraps an HTTP transport: checks and records each request and response, and bounds the response's size."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and record it in this task's `HttpExchange`.

        Raises:
            UnacceptableExchange: the host is a metadata service, or the response is a redirect, too large, or
                compressed in a way that is not read.
            ServerUnreachable: no connection could be made.
            UnreadableResponse: a successful response is not a JSON object.
        """
        if is_metadata_host(request.url.host):
            raise UnacceptableExchange(refused_address_message(request.url.host))
        request.headers["accept-encoding"] = "identity"
        current_exchange = CURRENT_EXCHANGE.get()
        exchange = current_exchange or HttpExchange()
        exchange.n_requests += 1
        exchange.start_request(await request.aread())
        if exchange.access_token is not None:
            for name in CREDENTIAL_HEADERS:
                request.headers.pop(name, None)
            request.headers["authorization"] = f"Bearer {exchange.access_token}"
        _remember_credentials(request.headers)
        start_s = time.monotonic()
        try:
            return await self._send_and_read(request, exchange, current_exchange)
        finally:
            exchange.network_s += time.monotonic() - start_s

    async def _send_and_read(
        self, request: httpx.Request, exchange: HttpExchange, current_exchange: HttpExchange | None
    ) -> httpx.Response:
        """Send a request, and check and read its response; raises as `handle_async_request`."""
        response = await self._forward_request(request, exchange)
        exchange.status, exchange.headers = response.status_code, response.headers
        if 300 <= response.status_code < 400:
            await response.aclose()
            raise RedirectRefused(
                "the server redirected the request to another address, and redirects are not followed"
            )
        encoding = response.headers.get("content-encoding", "")
        encodings = {name.strip().lower() for name in encoding.split(",")} - UNCOMPRESSED_ENCODINGS
        if len(encodings) > 1 or not encodings <= ZLIB_ENCODINGS:
            await response.aclose()
            raise UnacceptableExchange(
                f"the answer is compressed ({redact(encoding)[:20]!r}), which was not requested and is not read: "
                "turn it off at the server, or at the gateway before it"
            )
        response.headers.pop("content-encoding", None)  # it is unpacked here
        exchange.body_start = bytearray()
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _BoundedStream(response.stream, exchange, is_packed=bool(encodings))
        return response if exchange.is_streamed else await _read_response(response, current_exchange)

    async def _forward_request(self, request: httpx.Request, exchange: HttpExchange) -> httpx.Response:
        """Send a request by the inner transport, or answer it by `SERVER_STUB`; errors never cause litellm to retry."""
        if (server_stub := SERVER_STUB.get()) is not None:
            return server_stub(request, await request.aread())
        _cap_connect_timeout(request, exchange.total_timeout_s)
        # litellm's handlers retry at once after a ConnectError or a ProtocolError: a paid request that is not counted.
        # So both are raised as errors that they do not retry.
        try:
            return await self._inner.handle_async_request(request)
        except httpx.ConnectTimeout:
            exchange.unreachable = True
            raise
        except (ServerUnreachable, UnacceptableExchange):  # by the rules of `connections`: nothing was sent
            exchange.unreachable = True
            raise
        except (httpx.ConnectError, httpx.ProtocolError) as error:
            exchange.unreachable = _never_connected(error)
            raise (ServerUnreachable if exchange.unreachable else httpx.ReadError)(str(error)) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


async def _read_response(response: httpx.Response, exchange: HttpExchange | None) -> httpx.Response:
    """Read a whole response; parse a successful one as JSON into the exchange's record, if there is one.

    litellm's handlers differ in how they treat a body that is not JSON: some retry, some report a bad request or an
    unreachable server. So it is rejected here, for all of them. A streamed answer is joined into one JSON object.

    Raises:
        UnreadableResponse: a successful response is neither a JSON object nor a whole stream.
    """
    body = await _read_body(response)
    if response.is_success and exchange is not None:
        body = body.removeprefix(codecs.BOM_UTF8)  # not every handler skips it
        if is_event_stream(response.headers.get("content-type", ""), body):
            if (joined := join_events(body)) is None:
                raise UnreadableResponse("a stream that breaks off before the end of the answer")
            body = json.dumps(joined).encode()
            response.headers = httpx.Headers({"content-type": JSON_TYPE})
        elif (charset := _find_charset(response)).lower() != "utf-8":  # gateways; JSON should be UTF-8
            with suppress(LookupError, UnicodeDecodeError):
                body = body.decode(charset).encode()
                response.headers = httpx.Headers({"content-type": JSON_TYPE})
        exchange.json_body = parse_json_object(body)
        body = body.decode("utf-8", "replace").encode()  # as it is parsed
    read_response = httpx.Response(response.status_code, headers=response.headers, content=body)
    if read_response.headers.get("content-type") == JSON_TYPE:
        read_response.encoding = "utf-8"  # JSON is always UTF-8; httpx would detect the encoding of each response
    return read_response


def _find_charset(response: httpx.Response) -> str:
    """The encoding that a response names; UTF-8 without one."""
    if response.headers.get("content-type") == JSON_TYPE:  # nearly always; to parse it takes time
        return "utf-8"
    return response.charset_encoding or "utf-8"


async def _read_body(response: httpx.Response) -> bytes:
    """Read a response's body, also one whose server does not end it as announced, if it is whole.

    Some servers announce too long a body, send no last chunk, or leave the connection open. A JSON object that is cut
    off is none, so one that can be read was sent in full, as was a stream with the reason why the answer ends.
    """
    assert isinstance(response.stream, httpx.AsyncByteStream)
    chunks: list[bytes] = []
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None
    try:
        async with asyncio.timeout(None) as limit:

            def end_if_whole() -> None:
                """End the reading if nothing is missing."""
                if _is_whole(response, b"".join(chunks)):
                    limit.reschedule(loop.time())

            async for chunk in response.stream:
                chunks.append(chunk)
                if timer is not None:
                    timer.cancel()
                timer = loop.call_later(MAX_SILENCE_S, end_if_whole)  # parsing at each chunk may take hours
    except (TimeoutError, httpx.ReadError):
        if not _is_whole(response, b"".join(chunks)):
            raise
    finally:
        if timer is not None:
            timer.cancel()
        await response.aclose()
    return b"".join(chunks)


def _is_whole(response: httpx.Response, body: bytes) -> bool:
    """Whether a body is a whole JSON object, or a whole stream of events."""
    body = body.removeprefix(codecs.BOM_UTF8)
    if is_event_stream(response.headers.get("content-type", ""), body):
        return join_events(body) is not None
    try:
        parse_json_object(body)
    except UnreadableResponse:
        return False
    return True


def refused_address_message(host: str) -> str:
    """Message that no request is sent to a host, since it is link-local or a metadata service's."""
    return (
        f"{host} is an address on this machine's network, not a provider's: link-local addresses and metadata services "
        "hand out a machine's credentials"
    )


def _cap_connect_timeout(request: httpx.Request, total_timeout_s: float | None) -> None:
    """Let connecting time out before the whole request does: a request that was never sent costs nothing."""
    timeouts = request.extensions.get("timeout") or {}
    # No server takes longer to accept a connection because its model is slow.
    max_timeouts = {"connect": MAX_CONNECT_TIMEOUT_S, "pool": math.inf}
    capped_timeouts = {
        phase: CONNECT_TIMEOUT_SHARE * min(timeouts[phase], total_timeout_s or math.inf, max_timeouts[phase])
        # httpx's time limits for connecting and for waiting for a free connection.
        for phase in ("connect", "pool")
        if timeouts.get(phase)
    }
    request.extensions = {**request.extensions, "timeout": {**timeouts, **capped_timeouts}}


def _remember_credentials(headers: httpx.Headers) -> None:
    """Register a request's credentials for redaction; libraries such as Google's fetch tokens on their own."""
    for name in CREDENTIAL_HEADERS:
        if (value := headers.get(name)) is not None and not value.startswith(AWS_SIGNATURE_SCHEME):
            # Without the scheme before the last space, such as `Bearer`.
            register_secrets(value.rpartition(" ")[2])


def _never_connected(error: httpx.TransportError) -> bool:
    """Whether the error arose while connecting (refused, unknown host, TLS), before anything was sent."""
    import aiohttp

    cause = error.__cause__
    if isinstance(error, httpx.ConnectError) and not isinstance(cause, aiohttp.ClientOSError):
        return True
    return isinstance(cause, (aiohttp.ClientConnectorError, aiohttp.ClientSSLError))


def parse_json_object(data: bytes) -> dict[str, Any]:
    """Parse a body as a JSON object; a byte of a text that is not UTF-8 becomes U+FFFD, and loses no answer.

    Raises:
        UnreadableResponse: it is not one; the message names what it is instead.
    """
    text = data.decode("utf-8", "replace")
    try:
        parsed = json.loads(text)
    except RecursionError:
        raise UnreadableResponse("JSON with too many nested levels") from None
    except json.JSONDecodeError:
        reason = "text that is not JSON" if text.encode() == data else "text that is not UTF-8"
        raise UnreadableResponse(reason if data.strip() else "an empty body") from None
    except ValueError:
        raise UnreadableResponse("JSON with a number that has too many digits") from None
    if not isinstance(parsed, dict):
        raise UnreadableResponse("JSON that is not an object")
    return parsed
