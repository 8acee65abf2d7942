"""HTTP client for litellm: httpx's client without cookies, authentication, proxies and redirects.

httpx merges these into each request and looks for them in each response, which takes two fifths of the CPU time of
sending. None of them may affect a request here.
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
"""Number of parsed URLs and of merged sets of headers that are cached."""
parse_url = functools.lru_cache(maxsize=HTTP_CACHE_SIZE)(httpx.URL)
HeaderItems = tuple[tuple[str, str], ...]


@functools.lru_cache(maxsize=HTTP_CACHE_SIZE)
def _merge_headers(default_headers: HeaderItems, request_headers: HeaderItems) -> httpx.Headers:
    """Merge a client's default headers with a request's, which take precedence.

    The result is cached and shared: `httpx.Request` copies it.
    """
    merged_headers = httpx.Headers(list(default_headers))
    merged_headers.update(httpx.Headers(list(request_headers)))
    return merged_headers


DEFAULT_TIMEOUT = httpx.Timeout(600.0, connect=5.0)
"""litellm's default time limits, for requests that set none."""


class MinimalHttpClient(httpx.AsyncClient):
    """HTTP client that sends all requests through one transport; unusual requests are left to httpx's client."""

    def __init__(
        self, transport: httpx.AsyncBaseTransport, headers: dict[str, str] | None = None, timeout: Any = None
    ) -> None:
        """Create a client for one event loop; close it at the end of the run.

        Args:
            transport: sends all requests.
            headers: default headers of every request.
            timeout: of requests that set none.
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
        """Build a request as httpx does, but faster if it has only headers, a body and a timeout in seconds."""
        is_simple = (
            isinstance(headers, dict) and isinstance(content, (str, bytes)) and isinstance(timeout, (int, float))
        )
        if not is_simple or any(value is not None for value in options.values()):
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
        """Send a request and read the whole response, unless it is to be streamed.

        Raises:
            httpx.RequestError: the request failed, or there was no response.
            UnreadableResponse: a successful response is not a JSON object; only if the exchange is recorded.
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
    """Read a whole, uncompressed response; parse a successful one as JSON into the exchange's record.

    litellm's handlers differ in how they treat a body that is not JSON: some retry, some report a bad request or an
    unreachable server. So it is rejected here, for all of them.

    Raises:
        UnreadableResponse: a successful response is not a JSON object.
    """
    assert isinstance(response.stream, httpx.AsyncByteStream)
    try:
        body = b"".join([chunk async for chunk in response.stream])
    finally:
        await response.aclose()
    if response.is_success and (exchange := CURRENT_EXCHANGE.get()) is not None:
        body = body.removeprefix(codecs.BOM_UTF8)  # not every handler skips it
        exchange.json_body = parse_json_object(body)
    full_response = httpx.Response(response.status_code, headers=response.headers, content=body, request=request)
    if full_response.headers.get("content-type") == "application/json":
        full_response.encoding = "utf-8"  # JSON is always UTF-8; httpx would detect the encoding of each response
    return full_response


def install_minimal_client(handler: type[Any]) -> None:
    """Make a litellm handler class create `MinimalHttpClient`s and stop timing its requests, from now on.

    Args:
        handler: litellm's asynchronous HTTP handler class, whose transports are guarded already.
    """
    # `light` marks a class that this function has changed already.
    if getattr(handler, "light", False):
        return
    from litellm.llms.custom_httpx.http_handler import get_default_headers, get_ssl_configuration

    def create_client(
        _: Any, timeout: Any = None, event_hooks: Any = None, ssl_verify: Any = None, shared_session: Any = None
    ) -> MinimalHttpClient:
        """Create a client as litellm's method of this name does; event hooks are ignored."""
        ssl_setting = get_ssl_configuration(ssl_verify)
        context = ssl_setting if isinstance(ssl_setting, ssl.SSLContext) else None
        verify = ssl_setting if isinstance(ssl_setting, bool) else None
        transport: GuardedTransport = handler.create_async_transport(
            ssl_context=context, ssl_verify=verify, shared_session=shared_session
        )
        return MinimalHttpClient(transport, get_default_headers(), DEFAULT_TIMEOUT if timeout is None else timeout)

    handler.create_client = create_client
    # The decorator of `post` times each request.
    handler.post = inspect.unwrap(handler.post)
    handler.light = True
