"""Clients send all requests by the guarded transport, keep no cookie, and read responses as JSON."""

from __future__ import annotations

import httpx
import pytest

from auditor.models import litellm_client
from auditor.models.connections import create_client
from auditor.models.transport import CURRENT_EXCHANGE, GuardedTransport, HttpExchange, UnreadableResponse
from tests.support.fake_server import FakeServer, Reply, completion

URL = "https://example.org/v1/chat/completions"


class ScriptedTransport(httpx.AsyncBaseTransport):
    """Answer each request with a fixed response."""

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
