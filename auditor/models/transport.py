"""The HTTP client under litellm's OpenAI-compatible providers: bounded, uncompressed, and never redirected.

A provider is not trusted with this process's memory: 450 KB of gzip unpack to 100 MB. Providers that litellm reaches by
handlers of its own (Anthropic, Gemini, Bedrock) do not take this client; what they send is bounded by `max_tokens`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

MAX_BYTES = 8_000_000
"""Of one answer's body."""
MAX_CONNECTIONS, MAX_IDLE = 1000, 100
METADATA_HOSTS = frozenset({"metadata.google.internal", "metadata", "instance-data"})
"""Names by which clouds hand out a machine's own credentials."""


class Unacceptable(Exception):
    """What a server sent, or where a request would have gone, is not taken; another try would be no better."""


class _Bounded(httpx.AsyncByteStream):
    """A body that is cut off when it grows past the bound."""

    def __init__(self, body: httpx.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._body:
            size += len(chunk)
            if size > MAX_BYTES:
                raise Unacceptable(f"the answer is larger than {MAX_BYTES // 1_000_000} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


def client() -> httpx.AsyncClient:
    """A client for one event loop; close it with the run."""
    limits = httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_IDLE)
    hooks: dict[str, list[Callable[..., Any]]] = {"request": [_before], "response": [_after]}
    return httpx.AsyncClient(follow_redirects=False, limits=limits, event_hooks=hooks, timeout=None)


def is_metadata(host: str) -> bool:
    """Whether a host is a link-local address or one of those that hand out a machine's credentials."""
    if host.lower().rstrip(".") in METADATA_HOSTS:
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_link_local or address == ipaddress.ip_address("fd00:ec2::254")


async def _before(request: httpx.Request) -> None:
    if is_metadata(request.url.host):
        raise Unacceptable(f"{request.url.host} is an address of the machine's own network, not a model's")
    request.headers["accept-encoding"] = "identity"


async def _after(response: httpx.Response) -> None:
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise Unacceptable(f"the answer is compressed ({encoding[:20]!r}), though that was not asked for")
    if isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = _Bounded(response.stream)
