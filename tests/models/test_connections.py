"""Connections pass through the proxies of the environment, trust its authorities, and reach no metadata service."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from auditor.config import ModelSection
from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.errors import ConfigError, ModelSetupError
from auditor.models import connections, litellm_client
from auditor.models.connections import create_client, create_tls_context
from auditor.models.transport import (
    CURRENT_EXCHANGE,
    GuardedTransport,
    HttpExchange,
    UnacceptableExchange,
    UnreadableResponse,
)
from tests.support.fake_server import FakeServer, Reply, completion
from tests.support.gateway_calls import ask as ask_gateway
from tests.support.local_servers import QuietHandler, make_certificate, serve

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
METADATA_ADDRESS = "169.254.169.254"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy and no authority in the environment."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in connections.AUTHORITY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(connections, "_direct_addresses", set())


class Proxy:
    """A proxy that answers plain requests itself, and connects every CONNECT to one server, or refuses it."""

    def __init__(self, server_address: tuple[str, int] | None = None, status: int = 407) -> None:
        outer = self
        self.requests: list[tuple[str, str]] = []
        self.authorizations: list[str | None] = []

        class ProxyHandler(QuietHandler):
            def do_POST(self) -> None:
                outer.requests.append(("POST", self.path))
                outer.authorizations.append(self.headers["Proxy-Authorization"])
                self.read_body()
                self.reply(completion("by proxy").body)

            def do_CONNECT(self) -> None:
                outer.requests.append(("CONNECT", self.path))
                if server_address is None:
                    self.reply({}, status)
                    return
                self.send_response(200)
                self.end_headers()
                with socket.create_connection(server_address) as upstream:
                    pair = [self.connection, upstream]
                    while ready := select.select(pair, [], [], 5)[0]:
                        data = ready[0].recv(65_536)
                        if not data:
                            break
                        pair[1 - pair.index(ready[0])].sendall(data)
                self.close_connection = True

        self._serving = serve(ProxyHandler)

    def __enter__(self) -> Proxy:
        self.url = f"http://127.0.0.1:{self._serving.__enter__()}"
        return self

    def __exit__(self, *error: Any) -> None:
        self._serving.__exit__(*error)


CALL = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT)


async def ask(api_base: str, **settings: Any) -> Answer:
    section = ModelSection(name="m", model="openai/x", api_base=api_base, price={"input": 1, "output": 1}, **settings)
    [answer] = await ask_gateway(section, CALL, max_attempts=1)
    return answer


def resolve_as(monkeypatch: pytest.MonkeyPatch, addresses: dict[str, str]) -> None:
    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *arguments: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return resolve(
            addresses.get(name, name if name == "127.0.0.1" else "no.such.name.invalid"), port, *arguments, **more
        )

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@contextmanager
def watched_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    hosts: list[str] = []
    connect = socket.socket.connect

    def record(self: socket.socket, address: Any) -> None:
        hosts.append(str(address[0]))
        connect(self, address)

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "connect", record)
        yield hosts


# --- metadata services ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", [METADATA_ADDRESS, "100.100.100.200", "168.63.129.16", "169.254.1.1"])
async def test_a_name_that_resolves_to_a_metadata_service_is_not_connected_to(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_as(monkeypatch, {"models.example.org": address})
    message = rf"cannot be used: {address} is an address on this machine's network"
    with watched_connections(monkeypatch) as hosts, pytest.raises(ModelSetupError, match=message) as refused:
        await ask("http://models.example.org/v1")
    assert hosts == []
    assert refused.value.answer is not None
    assert refused.value.answer.cost_usd == 0.0


async def test_a_name_is_checked_at_each_connection(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that led to a server when the config was read may lead elsewhere later."""
    port = urlsplit(server.url).port
    addresses = {"models.example.org": "127.0.0.1"}
    resolve_as(monkeypatch, addresses)
    assert (await ask(f"http://models.example.org:{port}/v1")).outcome is Outcome.OK
    addresses["models.example.org"] = METADATA_ADDRESS
    with pytest.raises(ModelSetupError, match="is an address on this machine's network"):
        await ask(f"http://models.example.org:{port}/v1")
    assert len(server.requests) == 1


async def test_behind_a_proxy_the_name_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        for host in ("metadata.google.internal", "0xa9fea9fe"):
            request_to_metadata = await ask_transport(f"http://{host}/v1")
            assert "is an address on this machine's network" in request_to_metadata
        assert proxy.requests == []
        assert (await ask("http://models.example.org/v1")).text == "by proxy"


async def ask_transport(url: str) -> str:
    """The error of a request by a client, past the config's own check of addresses."""
    with pytest.raises(UnacceptableExchange) as refused:
        await litellm_client.get_http_client().post(url, content=b"{}")
    await litellm_client.close_http_clients()
    return str(refused.value)


# --- proxies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_requests_pass_through_the_proxy(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxy() as proxy:
        monkeypatch.setenv(variable, proxy.url.replace("//", "//ada:secret-word@"))
        assert (await ask("http://models.example.org/v1")).text == "by proxy"
    assert proxy.requests == [("POST", "http://models.example.org/v1/chat/completions")]
    assert proxy.authorizations == ["Basic YWRhOnNlY3JldC13b3Jk"]


@pytest.mark.parametrize("exception", ["models.example.org", ".example.org", "models.example.org:{port}", "*"])
async def test_hosts_of_no_proxy_are_asked_directly(
    exception: str, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = urlsplit(server.url).port
    resolve_as(monkeypatch, {"models.example.org": "127.0.0.1"})
    with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", exception.format(port=port))
        assert (await ask(f"http://models.example.org:{port}/v1")).outcome is Outcome.OK
    assert (proxy.requests, len(server.requests)) == ([], 1)


async def test_servers_of_this_process_are_asked_directly(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    connections.bypass_proxies(server.url)
    with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert (await ask(server.url)).outcome is Outcome.OK
    assert (proxy.requests, len(server.requests)) == ([], 1)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_dead_proxy_is_named_and_costs_nothing(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = f"{scheme.upper()}_PROXY"
    monkeypatch.setenv(variable, "http://ada:secret-word@127.0.0.1:9")
    answer = await ask(f"{scheme}://models.example.org/v1")
    assert (answer.outcome, answer.cost_usd) == (Outcome.SERVER_ERROR, 0.0)
    assert answer.error == f"the proxy 127.0.0.1:9 (environment variable {variable}) cannot be reached"


async def test_a_dead_proxy_ends_the_run_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "127.0.0.1:9")
    section = ModelSection(name="m", model="openai/x", api_base="https://models.example.org/v1")
    with pytest.raises(ModelSetupError, match=r"the proxy 127\.0\.0\.1:9 .* cannot be reached") as failure:
        await ask_gateway(section, CALL)
    assert "NO_PROXY" in (failure.value.how_to_fix or "")


async def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxy(status=407) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        answer = await ask("https://models.example.org/v1")
    assert (answer.cost_usd, proxy.requests) == (0.0, [("CONNECT", "models.example.org:443")])
    assert "refuses to connect to the server: HTTP status 407" in (answer.error or "")


async def test_a_proxy_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(ModelSetupError, match="is not an HTTP proxy"):
        await ask("https://models.example.org/v1")


# --- certificate authorities ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("cryptography", reason="needs cryptography to make a certificate")
    return make_certificate(tmp_path_factory.mktemp("tls"), "models.example.org")


class AnswerHandler(QuietHandler):
    def do_POST(self) -> None:
        self.read_body()
        self.reply(completion("by TLS").body)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
@pytest.mark.parametrize("is_proxied", [False, True])
async def test_authorities_of_the_environment_are_trusted(
    variable: str, is_proxied: bool, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        port = stack.enter_context(serve(AnswerHandler, certificate))
        url = f"https://127.0.0.1:{port}/v1"
        if is_proxied:
            url = "https://models.example.org/v1"
            monkeypatch.setenv("HTTPS_PROXY", stack.enter_context(Proxy(("127.0.0.1", port))).url)
        refused = await ask(url)
        assert (refused.outcome, refused.cost_usd) == (Outcome.SERVER_ERROR, 0.0)
        assert "certificate" in (refused.error or "").lower()
        monkeypatch.setenv(variable, str(certificate))
        assert (await ask(url)).text == "by TLS"


def test_authorities_of_all_variables_are_trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import certifi

    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    n_public = create_tls_context().cert_store_stats()["x509"]
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    assert create_tls_context().cert_store_stats()["x509"] == n_public + 1
    assert create_tls_context().verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(("content", "problem"), [(None, "does not exist"), ("no", "is not a file with certificates")])
def test_a_wrong_file_of_authorities_is_named(
    content: str | None, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "authorities.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(path))
    with pytest.raises(ConfigError, match=rf"REQUESTS_CA_BUNDLE names .*{problem}"):
        create_tls_context()


URL = "https://example.org/v1/chat/completions"


class ScriptedTransport(httpx.AsyncBaseTransport):
    def __init__(self, response: httpx.Response) -> None:
        self.response = response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.response


async def read(body: bytes, status: int = 200, content_type: str | None = "application/json") -> httpx.Response:
    """The response with this body, as a client reads it."""
    headers = {} if content_type is None else {"content-type": content_type}
    response = httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))
    async with create_client(GuardedTransport(ScriptedTransport(response))) as client:
        return await client.post(URL, content=b"{}")


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=latin-1", "text/plain", None])
async def test_text_is_decoded_with_the_declared_charset(content_type: str | None) -> None:
    CURRENT_EXCHANGE.set(None)
    body = '{"a": "é"}'.encode("latin-1" if content_type and "latin" in content_type else "utf-8")
    assert (await read(body, content_type=content_type)).text == '{"a": "é"}'


@pytest.mark.parametrize("charset", ["latin-1", "iso-8859-1", "utf-8"])
async def test_json_in_another_declared_charset_is_an_answer(charset: str) -> None:
    CURRENT_EXCHANGE.set(exchange := HttpExchange())
    response = await read('{"a": "é"}'.encode(charset), content_type=f"application/json; charset={charset}")
    assert (response.json(), response.text, exchange.json_body) == ({"a": "é"}, '{"a": "é"}', {"a": "é"})


async def test_a_successful_response_is_recorded_as_json_and_must_be_json() -> None:
    CURRENT_EXCHANGE.set(exchange := HttpExchange())
    assert (await read(b'\xef\xbb\xbf{"a": 1}')).json() == {"a": 1}
    assert exchange.json_body == {"a": 1}
    assert (await read(b"no", status=500)).text == "no"
    with pytest.raises(UnreadableResponse, match="not JSON"):
        await read(b"no")


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_client_keeps_no_cookie_and_can_stream(server: FakeServer, is_streamed: bool) -> None:
    server.script = lambda _: Reply(body=completion("hello").body, headers={"Set-Cookie": "a=b"})
    CURRENT_EXCHANGE.set(HttpExchange(is_streamed=is_streamed))
    async with create_client(GuardedTransport(httpx.AsyncHTTPTransport())) as client:
        for _ in range(2):
            request = client.build_request("POST", f"{server.url}/chat/completions", content=b"{}")
            response = await client.send(request, stream=is_streamed)
            assert b"hello" in (await response.aread() if is_streamed else response.content)
            await response.aclose()
    assert all("Cookie" not in r.headers for r in server.requests)


async def test_no_client_of_litellm_can_pass_by_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither litellm's clients nor the one that it gives to OpenAI's SDK mount another transport, as for a proxy."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    litellm_client.open_http_clients()
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    for client in (AsyncHTTPHandler().client, litellm_client.get_http_client()):
        assert isinstance(client, httpx.AsyncClient)
        assert isinstance(client._transport, GuardedTransport)
        assert client._mounts == {}
        assert not client.follow_redirects
        await client.aclose()
    await litellm_client.close_http_clients()
