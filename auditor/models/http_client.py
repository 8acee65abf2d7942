"""HTTP clients of litellm and of batches: httpx's, with a `GuardedTransport` and nothing that could pass it by."""

from __future__ import annotations

from typing import Any

import httpx

from auditor.models.connections import create_provider_transport
from auditor.models.transport import GuardedTransport, ServerUnreachable

DEFAULT_TIMEOUT = httpx.Timeout(600.0, connect=5.0)
"""litellm's default time limits, for requests that set none."""


class _NoCookies(httpx.Cookies):
    """Keeps no cookie of a response, without making a request for Python's cookie jar first."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Do nothing."""


class _GuardedClient(httpx.AsyncClient):
    """httpx's client, without cookies, and whose responses do not wait for the garbage collector."""

    @property
    def cookies(self) -> httpx.Cookies:
        """No cookies, whatever is set."""
        return _NO_COOKIES

    @cookies.setter
    def cookies(self, _: Any) -> None:
        pass

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send a request; a response that has been read no longer refers to its stream, which refers to it."""
        response = await super().send(request, stream=stream, **options)
        if not stream:
            response.stream = httpx.ByteStream(b"")
        return response


_NO_COOKIES = _NoCookies()


def create_client(
    transport: GuardedTransport, headers: dict[str, str] | None = None, timeout: Any = DEFAULT_TIMEOUT
) -> httpx.AsyncClient:
    """Create a client for one event loop that sends all requests by a transport; close it at the end of the run.

    It follows no redirect, keeps no cookie, and takes neither proxies nor passwords from the environment.
    """
    return _GuardedClient(
        transport=transport,
        headers=headers,
        follow_redirects=False,
        timeout=timeout,
        trust_env=False,
    )


def install_guarded_clients(handler: type[Any]) -> None:
    """Make a litellm handler class create guarded transports and clients that send all requests by them, from now on.

    Args:
        handler: litellm's asynchronous HTTP handler class.
    """
    if getattr(handler.create_async_transport, "guarded", False):
        return
    from litellm.llms.custom_httpx.http_handler import get_default_headers

    def create_guarded_transport(*_: Any, **__: Any) -> GuardedTransport:
        """Create the transport of all requests in place of litellm's, whatever TLS settings and session it asks for."""
        return GuardedTransport(create_provider_transport())

    def create_guarded_client(_: Any, timeout: Any = None, **__: Any) -> httpx.AsyncClient:
        """Create a client as litellm's method of this name does, without event hooks and proxies."""
        return create_client(
            create_guarded_transport(), get_default_headers(), DEFAULT_TIMEOUT if timeout is None else timeout
        )

    create_guarded_transport.guarded = True  # type: ignore[attr-defined]
    handler.create_async_transport = staticmethod(create_guarded_transport)
    handler.create_client = create_guarded_client


def disable_sync_requests(handler: type[Any]) -> None:
    """Make every request of litellm's synchronous handler class raise `ServerUnreachable` from now on.

    litellm uses it for requests that are not needed here: to an Ollama server at a fixed address for the sizes of
    models, to Hugging Face for chat templates. Each one blocks the event loop, and bypasses `GuardedTransport`.
    """

    def refuse(*_: Any, **__: Any) -> httpx.Response:
        """Raise ServerUnreachable for any request."""
        raise ServerUnreachable("only the guarded transport may send requests")

    for method in ("get", "post", "patch", "put", "delete"):
        setattr(handler, method, refuse)
