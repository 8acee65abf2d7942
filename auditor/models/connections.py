"""Connections to providers and HTTP clients: through proxies, never to a metadata service."""

from __future__ import annotations

import functools
import ipaddress
import os
import socket
import ssl
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import certifi
import httpx

from auditor.config.credential_hosts import is_metadata_address
from auditor.errors import ConfigError
from auditor.lazy_imports import import_when_used
from auditor.models.transport import GuardedTransport, ServerUnreachable, UnacceptableExchange, refused_address_message
from auditor.redaction import register_secrets

if not TYPE_CHECKING:
    aiohttp = import_when_used("aiohttp")
    aiohttp_transport = import_when_used("litellm.llms.custom_httpx.aiohttp_transport")
    http_handler = import_when_used("litellm.llms.custom_httpx.http_handler")
else:
    import aiohttp
    from litellm.llms.custom_httpx import aiohttp_transport, http_handler

AUTHORITY_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
"""Environment variables with files or folders of certificate authorities; all of them are trusted."""
KEEPALIVE_S, DNS_CACHE_S = 120, 300
"""How long an idle connection and a resolved name are kept, in seconds, as by litellm."""
MAX_CONNECTIONS, MAX_CONNECTIONS_TO_HOST = 1000, 500
MAX_HEADER_BYTES, MAX_HEADERS = 65_536, 1_000
"""Largest header of a response, and their number: a policy that a gateway adds may have more than aiohttp's 8 kB."""
AddressInfo = tuple[Any, Any, int, str, tuple[Any, ...]]
"""What `socket.getaddrinfo` returns of one address."""

_direct_addresses: set[str] = set()
"""Host and port of this process's own servers."""


class Proxy(NamedTuple):
    """A proxy that the environment names: its URL, and the variable that holds it."""

    url: str
    variable: str

    @property
    def address(self) -> str:
        """Host and port, without user name and password."""
        return urlsplit(self.url).netloc.rpartition("@")[2]


def bypass_proxies(url: str) -> None:
    """Send requests to a server of this process directly, whatever the environment says: no proxy can reach it."""
    _direct_addresses.add(urlsplit(url).netloc)


def find_proxy(url: httpx.URL) -> Proxy | None:
    """The proxy that the environment names for a URL; None if requests go to the server directly.

    Raises:
        UnacceptableExchange: the proxy does not speak HTTP.
    """
    address = f"{url.host}:{url.port or {'http': 80, 'https': 443}.get(url.scheme, 0)}"
    proxies = urllib.request.getproxies()
    scheme = url.scheme if proxies.get(url.scheme) else "all"
    proxy_url = proxies.get(scheme)
    if not proxy_url or address in _direct_addresses or urllib.request.proxy_bypass(address):
        return None
    proxy = Proxy(proxy_url if "://" in proxy_url else f"http://{proxy_url}", f"{scheme.upper()}_PROXY")
    parts = urlsplit(proxy.url)
    register_secrets(parts.password)
    if parts.scheme not in ("http", "https"):
        raise UnacceptableExchange(
            f"the proxy {parts.scheme}://{proxy.address} of the environment variable {proxy.variable} is not an HTTP "
            "proxy, and others are not supported"
        )
    return proxy


def create_tls_context() -> ssl.SSLContext:
    """TLS settings with the certificate authorities that the environment names, else with those of certifi.

    Raises:
        ConfigError: an environment variable names a file that does not exist, or that holds no certificates.
    """
    named = [(name, os.environ[name]) for name in AUTHORITY_VARIABLES if os.environ.get(name)]
    return _load_authorities(tuple(named))


@functools.cache
def _load_authorities(named: tuple[tuple[str, str], ...]) -> ssl.SSLContext:
    """TLS settings with the authorities in the files and folders that environment variables (name, value) name."""
    if not named:
        return ssl.create_default_context(cafile=certifi.where())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for variable, value in named:
        for path in map(Path, value.split(os.pathsep) if variable == "SSL_CERT_DIR" else [value]):
            try:
                context.load_verify_locations(**{"capath" if path.is_dir() else "cafile": str(path)})
            except OSError as error:
                problem = "is not a file with certificates in PEM format" if path.is_file() else "does not exist"
                raise ConfigError(
                    f"the environment variable {variable} names certificate authorities in {path}, which {problem}.",
                    "Correct the variable, or remove it.",
                ) from error
    return context


def open_socket(address_info: AddressInfo) -> socket.socket:
    """Open a socket for a connection to an address that a name was resolved to.

    Raises:
        UnacceptableExchange: the address is link-local or a metadata service's.
    """
    family, kind, protocol, _, address = address_info
    host = str(address[0]).partition("%")[0]
    if is_metadata_address(ipaddress.ip_address(host)):
        raise UnacceptableExchange(refused_address_message(host))
    opened = socket.socket(family, kind, protocol)
    opened.setblocking(False)
    return opened


def create_provider_transport() -> httpx.AsyncBaseTransport:
    """Create the transport of all requests to providers, by aiohttp.

    Raises:
        ConfigError: see `create_tls_context`.
    """
    tls_context = create_tls_context()

    def open_session() -> aiohttp.ClientSession:
        """Open a session in the running event loop."""
        connector = aiohttp.TCPConnector(
            ssl=tls_context,
            keepalive_timeout=KEEPALIVE_S,
            ttl_dns_cache=DNS_CACHE_S,
            limit=MAX_CONNECTIONS,
            limit_per_host=MAX_CONNECTIONS_TO_HOST,
            socket_factory=open_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            response_class=_response_class(),
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )

    transport: httpx.AsyncBaseTransport = _transport_class()(open_session)
    return transport


@functools.cache
def _response_class() -> Any:
    """The class of responses; aiohttp is imported on first use."""

    class AsciiResponse(aiohttp.ClientResponse):
        """aiohttp's response with ASCII headers: httpx fails on others, which gateways send, and the answer is lost."""

        @property
        def headers(self) -> Any:
            """The headers, with escapes such as `\\xfc` in place of other characters."""
            headers = super().headers
            if all(value.isascii() for value in headers.values()):
                return headers
            escaped = headers.copy()
            escaped.clear()
            escaped.extend(
                (name, value.encode("ascii", "backslashreplace").decode()) for name, value in headers.items()
            )
            return escaped

    return AsciiResponse


@functools.cache
def _transport_class() -> Any:
    """The class of transports; litellm is imported on first use."""

    class ProviderTransport(aiohttp_transport.LiteLLMAiohttpTransport):
        """litellm's transport, which sends requests by `find_proxy` and names a proxy that fails."""

        async def _get_proxy_settings(self, request: httpx.Request) -> str | None:
            """URL of the proxy of a request; None for none. The environment is read once for each server."""
            url = request.url
            server = f"{url.scheme}://{url.host}:{url.port}"  # `copy_with` would parse the URL again
            if server not in self.proxy_cache:
                proxy = find_proxy(request.url)
                self.proxy_cache[server] = proxy and proxy.url
            return self.proxy_cache[server]

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            """Send a request.

            Raises:
                ServerUnreachable: the proxy cannot be reached, or refuses to connect to the server.
                UnacceptableExchange: the request may not go to its destination.
            """
            try:
                return await super().handle_async_request(request)
            except httpx.RequestError as error:
                if (proxy := find_proxy(request.url)) is None or not _is_proxy_failure(error):
                    raise
                source = f"environment variable {proxy.variable}"
                raise ServerUnreachable(
                    f"the proxy {proxy.address} ({source}) {_describe_proxy_failure(error)}"
                ) from error

    return ProviderTransport


def _is_proxy_failure(error: httpx.RequestError) -> bool:
    """Whether a request failed at a proxy, before anything was sent to the server."""
    return isinstance(error, (httpx.ProxyError, httpx.ConnectTimeout)) or isinstance(
        error.__cause__, aiohttp.ClientHttpProxyError
    )


def _describe_proxy_failure(error: httpx.RequestError) -> str:
    """The rest of a sentence about a proxy: why no request passed through it."""
    status = getattr(error.__cause__, "status", None)
    if status is None:
        return "cannot be reached"
    return f"refuses to connect to the server: HTTP status {status}"


DEFAULT_TIMEOUT = httpx.Timeout(600.0, connect=5.0)
"""litellm's default time limits, for requests that set none."""


_parse_url = functools.lru_cache(maxsize=512)(httpx.URL)


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

    def build_request(self, method: str, url: httpx.URL | str, **options: Any) -> httpx.Request:
        """Build a request; the few addresses of a run are parsed once."""
        return super().build_request(method, _parse_url(url) if isinstance(url, str) else url, **options)

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

    def create_guarded_transport(*_: Any, **__: Any) -> GuardedTransport:
        """Create the transport of all requests in place of litellm's, whatever TLS settings and session it asks for."""
        return GuardedTransport(create_provider_transport())

    def create_guarded_client(_: Any, timeout: Any = None, **__: Any) -> httpx.AsyncClient:
        """Create a client as litellm's method of this name does, without event hooks and proxies."""
        return create_client(
            create_guarded_transport(),
            http_handler.get_default_headers(),
            DEFAULT_TIMEOUT if timeout is None else timeout,
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
