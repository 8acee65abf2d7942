"""The HTTP client that litellm is given: of httpx's, what a request with a key to one server needs.

A client as it comes merges cookies, log-ins, proxies and redirects into each request and looks for them in each answer:
two fifths of the CPU time of sending. None of them may play a part here.
"""

from __future__ import annotations

import codecs
import functools
import inspect
import ssl
from typing import Any

import httpx

from auditor.models.transport import CURRENT_EXCHANGE, GuardedTransport, parse_json_object

HTTP_CACHE_SIZE = 256
"""Addresses, and sets of headers, that need not be read again."""
parse_url = functools.lru_cache(maxsize=HTTP_CACHE_SIZE)(httpx.URL)
HeaderItems = tuple[tuple[str, str], ...]


@functools.lru_cache(maxsize=HTTP_CACHE_SIZE)
def _merge_headers(default_headers: HeaderItems, request_headers: HeaderItems) -> httpx.Headers:
    """A request's headers, with a client's for what it does not say; each request copies them."""
    found = httpx.Headers(list(default_headers))
    found.update(httpx.Headers(list(request_headers)))
    return found


DEFAULT_TIMEOUT = httpx.Timeout(600.0, connect=5.0)
"""litellm's own time limit where a request says none."""


class MinimalHttpClient(httpx.AsyncClient):
    """Sends what was built through one transport; what is unusual goes httpx's own way."""

    def __init__(
        self, transport: httpx.AsyncBaseTransport, headers: dict[str, str] | None = None, timeout: Any = None
    ) -> None:
        """A client for one event loop; close it with the run.

        Args:
            transport: what sends.
            headers: of every request.
            timeout: of a request that says none.
        """
        super().__init__(transport=transport, headers=headers, follow_redirects=False, timeout=timeout, trust_env=False)
        self._single_transport = transport
        self._default_header_items = tuple(self.headers.items())

    def build_request(
        self,
        method: str,
        url: Any,
        *,
        content: Any = None,
        headers: Any = None,
        timeout: Any = None,
        **options: Any,
    ) -> httpx.Request:
        """As httpx does."""
        usual = isinstance(headers, dict) and isinstance(content, (str, bytes)) and isinstance(timeout, (int, float))
        if not usual or any(value is not None for value in options.values()):
            options |= {"content": content, "headers": headers, "timeout": timeout}
            return super().build_request(method, url, **options)
        return httpx.Request(
            method,
            parse_url(url) if isinstance(url, str) else url,
            content=content,
            headers=_merge_headers(self._default_header_items, tuple(headers.items())),
            extensions={"timeout": dict.fromkeys(("connect", "read", "write", "pool"), timeout)},
        )

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send, and read all of the answer, unless it is to be streamed.

        Raises:
            httpx.RequestError: it could not be sent, or not answered.
            Unreadable: it succeeded, but what came is no JSON object; only where the request is noted.
        """
        if request.url.userinfo or "timeout" not in request.extensions:
            return await super().send(request, stream=stream, **options)
        try:
            response = await self._single_transport.handle_async_request(request)
            response.request = request
            return response if stream else await _read_response(response, request)
        except httpx.RequestError as error:
            error.request = request
            raise


async def _read_response(response: httpx.Response, request: httpx.Request) -> httpx.Response:
    """All of an answer that is not compressed. One that says that all went well must be a JSON object.

    litellm's handlers differ in what they make of any other body: some retry, some report a bad request or a server
    that cannot be reached. So it is decided here, for all of them.
    """
    assert isinstance(response.stream, httpx.AsyncByteStream)
    try:
        data = b"".join([chunk async for chunk in response.stream])
    finally:
        await response.aclose()
    if response.is_success and (wire := CURRENT_EXCHANGE.get()) is not None:
        data = data.removeprefix(codecs.BOM_UTF8)  # not every handler skips it
        wire.json_body = parse_json_object(data)
    whole = httpx.Response(response.status_code, headers=response.headers, content=data, request=request)
    if whole.headers.get("content-type") == "application/json":
        whole.encoding = "utf-8"  # which JSON is: httpx would look for it in each answer
    return whole


def install_minimal_client(handler: type[Any]) -> None:
    """Have litellm's handlers use such clients, and keep no time of each request, from now on.

    Args:
        handler: litellm's asynchronous HTTP handler, whose transports are guarded.
    """
    if getattr(handler, "light", False):
        return
    from litellm.llms.custom_httpx.http_handler import get_default_headers, get_ssl_configuration

    def create_client(
        _: Any, timeout: Any = None, event_hooks: Any = None, ssl_verify: Any = None, shared_session: Any = None
    ) -> MinimalHttpClient:
        found = get_ssl_configuration(ssl_verify)
        context = found if isinstance(found, ssl.SSLContext) else None
        verify = found if isinstance(found, bool) else None
        transport: GuardedTransport = handler.create_async_transport(
            ssl_context=context, ssl_verify=verify, shared_session=shared_session
        )
        return MinimalHttpClient(transport, get_default_headers(), DEFAULT_TIMEOUT if timeout is None else timeout)

    handler.create_client = create_client
    handler.post = inspect.unwrap(handler.post)
    handler.light = True
