"""Every byte to and from a provider passes here: bounded, uncompressed, never redirected, never sent twice unseen.

A provider is not trusted with this process's memory: 450 KB of gzip unpack to 100 MB. litellm makes its HTTP clients by
`AsyncHTTPHandler.create_async_transport` (Anthropic, Gemini, Bedrock, OpenAI, …) or takes one (the OpenAI SDK behind
its completions endpoint); both doors lead through `Guarded`, which also keeps what was really sent and received.
"""

from __future__ import annotations

import functools
import ipaddress
import json
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import httpx

from auditor.redaction import redact, register_secrets

MAX_RESPONSE_BYTES = 8_000_000
"""Of one answer's body."""
CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "x-amz-security-token")
AWS_SIGNATURE_SCHEME = "AWS4-HMAC-SHA256"
"""Begins an `Authorization` header that holds no secret but a signature of this one request."""
METADATA_HOSTS = frozenset({"metadata.google.internal", "metadata", "instance-data"})
"""Names by which clouds hand out a machine's own credentials."""
CONNECT_TIMEOUT_SHARE = 0.9
"""Of a request's time limit, for connecting to the server."""
MAX_RECORDED_BYTES = 65_536
"""Of an answer's body as it came."""


class UnacceptableExchange(Exception):
    """What a server sent, or where a request would have gone, is not taken; another try would be no better."""


class RedirectRefused(UnacceptableExchange):
    """The server sends us elsewhere, where neither prompts nor keys may go."""


class ServerUnreachable(httpx.NetworkError):
    """No connection could be made, so that nothing was sent."""


class UnreadableResponse(Exception):
    """The server answered, but with something that is no answer; another try may bring one. Says what it is instead."""


class HttpExchange:
    """What went out and came back for one request, below whatever a library makes of it.

    Attributes:
        most: bytes that an answer's body may have.
        limit_s: time limit of the whole request, in seconds; None where it has none.
        requests: how many went out; anything but 1 is a retry that nobody asked for.
        sent: the last request's body.
        received: the beginning of its answer's body, at most `KEPT_BYTES`; None when no answer began.
        size: bytes of the answer that arrived.
        status: its HTTP status; None when no answer began.
        headers: of its answer; empty when no answer began.
        body: the JSON object that a successful answer is; None where it is none, or was not read as a whole.
        unreachable: whether no connection could be made for the last request.
    """

    __slots__ = (
        "body_start",
        "headers",
        "json_body",
        "max_response_bytes",
        "n_requests",
        "request_body",
        "response_size",
        "status",
        "total_timeout_s",
        "unreachable",
    )

    def __init__(self, max_response_bytes: int = MAX_RESPONSE_BYTES, total_timeout_s: float | None = None) -> None:
        self.max_response_bytes, self.total_timeout_s = max_response_bytes, total_timeout_s
        self.n_requests = 0
        self.start_request(b"")

    def start_request(self, request_body: bytes) -> None:
        """A request goes out; what is known of an earlier one is forgotten."""
        self.request_body, self.response_size = request_body, 0
        self.status: int | None = None
        self.body_start: bytearray | None = None
        self.headers = httpx.Headers()
        self.json_body: dict[str, Any] | None = None
        self.unreachable = False

    @property
    def is_fully_recorded(self) -> bool:
        """Whether all of the answer that arrived is kept."""
        return self.body_start is not None and len(self.body_start) == self.response_size

    @property
    def is_error_status(self) -> bool:
        """Whether the answer has an error's status."""
        return self.status is not None and self.status >= 400

    def receive_chunk(self, chunk: bytes) -> None:
        """More of the answer arrived."""
        self.response_size += len(chunk)
        if self.body_start is not None and (room := MAX_RECORDED_BYTES - len(self.body_start)) > 0:
            self.body_start += chunk[:room]


CURRENT_EXCHANGE: ContextVar[HttpExchange | None] = ContextVar("wire", default=None)
"""Where the request of this task is noted."""
ServerStub = Callable[[httpx.Request, bytes], httpx.Response]
SERVER_STUB: ContextVar[ServerStub | None] = ContextVar("stand_in", default=None)
"""What answers the requests of this task in a server's place, so that none goes out: given a request and its body."""


class _BoundedStream(httpx.AsyncByteStream):
    """A body that is cut off when it grows past the bound; of an error's body only the beginning is handed on.

    litellm searches the whole text of an error some fifty times, which takes a second for 8 MB.
    """

    def __init__(self, body: httpx.AsyncByteStream, exchange: HttpExchange) -> None:
        self._body = body
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._body:
            self._exchange.receive_chunk(chunk)
            if self._exchange.response_size > self._exchange.max_response_bytes:
                raise UnacceptableExchange(
                    f"the answer is larger than {self._exchange.max_response_bytes // 1_000_000} MB"
                )
            if self._exchange.is_error_status:
                chunk = chunk[: max(0, MAX_RECORDED_BYTES - (self._exchange.response_size - len(chunk)))]
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


class GuardedTransport(httpx.AsyncBaseTransport):
    """A transport under another's rules."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request.

        Raises:
            Unacceptable: where it would go, or what comes back, is not taken.
            Unreachable: there was no connection.
            Unreadable: the answer's headers cannot be read.
        """
        if is_metadata_host(request.url.host):
            raise UnacceptableExchange(f"{request.url.host} is an address of the machine's own network, not a model's")
        request.headers["accept-encoding"] = "identity"
        wire = CURRENT_EXCHANGE.get() or HttpExchange()
        wire.n_requests += 1
        wire.start_request(await request.aread())
        _remember_credentials(request.headers)
        response = await self._forward_request(request, wire)
        wire.status, wire.headers = response.status_code, response.headers
        if 300 <= response.status_code < 400:
            await response.aclose()
            raise RedirectRefused("the server redirects, which is not followed")
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            await response.aclose()
            raise UnacceptableExchange(
                f"the answer is compressed ({redact(encoding)[:20]!r}), though that was not asked for"
            )
        wire.body_start = bytearray()
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _BoundedStream(response.stream, wire)
        return response

    async def _forward_request(self, request: httpx.Request, exchange: HttpExchange) -> httpx.Response:
        if (stand_in := SERVER_STUB.get()) is not None:
            return stand_in(request, await request.aread())
        _cap_connect_timeout(request, exchange.total_timeout_s)
        # litellm's handlers send again, at once, what ends in one of these two: a paid request that nobody counts.
        try:
            return await self._inner.handle_async_request(request)
        except httpx.ConnectTimeout:
            exchange.unreachable = True
            raise
        except (httpx.ConnectError, httpx.ProtocolError) as error:
            exchange.unreachable = _never_connected(error)
            raise (ServerUnreachable if exchange.unreachable else httpx.ReadError)(str(error)) from error
        except UnicodeError as error:  # of the library that reads the headers
            raise UnreadableResponse("headers that are not ASCII text") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _cap_connect_timeout(request: httpx.Request, total_timeout_s: float | None) -> None:
    """End connecting before the request's own time limit: a request that was never sent costs nothing."""
    timeout = request.extensions.get("timeout") or {}
    limits = {
        name: CONNECT_TIMEOUT_SHARE
        * (timeout[name] if total_timeout_s is None else min(timeout[name], total_timeout_s))
        for name in ("connect", "pool")
        if timeout.get(name)
    }
    request.extensions = {**request.extensions, "timeout": {**timeout, **limits}}


def _remember_credentials(headers: httpx.Headers) -> None:
    """What a library signs in with may be a token that it fetched by itself, as Google's do."""
    for name in CREDENTIAL_HEADERS:
        if (value := headers.get(name)) is not None and not value.startswith(AWS_SIGNATURE_SCHEME):
            register_secrets(value.rpartition(" ")[2])


def install_guarded_transport(handler: type[Any]) -> None:
    """Make a litellm handler's clients guarded ones, from now on."""
    make = handler.create_async_transport
    if getattr(make, "guarded", False):
        return

    def guarded(*args: Any, **kwargs: Any) -> GuardedTransport:
        return GuardedTransport(make(*args, **kwargs) or httpx.AsyncHTTPTransport())

    guarded.guarded = True  # type: ignore[attr-defined]
    handler.create_async_transport = staticmethod(guarded)


def disable_sync_requests(handler: type[Any]) -> None:
    """Make a litellm handler send nothing, from now on.

    litellm asks servers by its synchronous handler for what it does not need: an Ollama server at a fixed address for
    the sizes of models, Hugging Face for chat templates. Each time the event loop waits, and no bound holds.
    """

    def refuse(*_: Any, **__: Any) -> httpx.Response:
        raise ServerUnreachable("only the guarded transport may send requests")

    for method in ("get", "post", "patch", "put", "delete"):
        setattr(handler, method, refuse)


@functools.cache
def is_metadata_host(host: str) -> bool:
    """Whether a host is a link-local address or one of those that hand out a machine's credentials."""
    if host.lower().rstrip(".") in METADATA_HOSTS:
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_link_local or address == ipaddress.ip_address("fd00:ec2::254")


def _never_connected(error: httpx.TransportError) -> bool:
    """Whether the connection failed (refused, no such host, TLS), and not what was sent over it."""
    import aiohttp

    cause = error.__cause__
    if isinstance(error, httpx.ConnectError) and not isinstance(cause, aiohttp.ClientOSError):
        return True
    return isinstance(cause, (aiohttp.ClientConnectorError, aiohttp.ClientSSLError))


def parse_json_object(data: bytes) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        Unreadable: it is none, and what it is instead.
    """
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise UnreadableResponse("something that is not text in UTF-8") from None
    except RecursionError:
        raise UnreadableResponse("JSON that is nested too deeply") from None
    except json.JSONDecodeError:
        raise UnreadableResponse("something that is not JSON" if data.strip() else "an empty body") from None
    except ValueError:
        raise UnreadableResponse("JSON with a number of too many digits") from None
    if not isinstance(value, dict):
        raise UnreadableResponse("JSON that is not an object")
    return value
