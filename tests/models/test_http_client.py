"""The minimal HTTP client sends the requests that httpx sends and reads responses as httpx does."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from auditor.models.http_client import MinimalHttpClient
from auditor.models.transport import GuardedTransport
from tests.support.fake_server import FakeServer, Reply, completion

URL = "https://example.org/v1/chat/completions"
HEADERS = {"Authorization": "Bearer k", "Content-Type": "application/json", "X-One": "one", "x-one": "two"}


class RecordingTransport(httpx.AsyncBaseTransport):
    """Record requests and answer each with a fixed response or error."""

    def __init__(self, response: httpx.Response | Exception) -> None:
        self.response = response
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if isinstance(self.response, Exception):
            raise self.response
        return self.response


def request_fields(request: httpx.Request) -> tuple[Any, ...]:
    return request.method, str(request.url), sorted(request.headers.raw), request.content, request.extensions


@pytest.mark.parametrize(
    "request_kwargs",
    [
        {"content": b"{}", "headers": HEADERS, "timeout": 3.0},
        {"content": "{}", "headers": {"USER-AGENT": "own"}, "timeout": 3},
        {"json": {"a": 1}, "headers": HEADERS, "timeout": 3.0},
        {"content": b"", "headers": None, "timeout": httpx.Timeout(1.0)},
        {"content": b"{}", "headers": HEADERS, "timeout": 3.0, "params": {"q": "1"}},
    ],
)
async def test_a_request_equals_the_one_httpx_builds(request_kwargs: dict[str, Any]) -> None:
    default_headers = {"User-Agent": "litellm"}
    async with (
        MinimalHttpClient(RecordingTransport(httpx.Response(200)), default_headers) as minimal_client,
        httpx.AsyncClient(headers=default_headers) as httpx_client,
    ):
        minimal_request, httpx_request = (
            minimal_client.build_request("POST", URL, **request_kwargs),
            httpx_client.build_request("POST", URL, **request_kwargs),
        )
        assert {k.lower(): v for k, v in minimal_request.headers.items()} == {
            k.lower(): v for k, v in httpx_request.headers.items()
        }
        assert request_fields(minimal_request)[3:] == request_fields(httpx_request)[3:]
        assert request_fields(minimal_request)[:2] == request_fields(httpx_request)[:2]


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=latin-1", "text/plain", None])
async def test_text_is_decoded_with_the_declared_charset(content_type: str | None) -> None:
    body = '{"a": "é"}'.encode("latin-1" if content_type and "latin" in content_type else "utf-8")
    headers = {} if content_type is None else {"content-type": content_type}
    transport = RecordingTransport(httpx.Response(200, headers=headers, stream=httpx.ByteStream(body)))
    async with MinimalHttpClient(transport) as client:
        request = client.build_request("POST", URL, content=b"{}", headers={}, timeout=1.0)
        response = await client.send(request)
    assert response.text == '{"a": "é"}'
    assert response.request is request
    assert response.is_closed


async def test_credentials_in_a_url_become_basic_authentication() -> None:
    transport = RecordingTransport(httpx.Response(200, stream=httpx.ByteStream(b"")))
    async with MinimalHttpClient(transport) as client:
        request = client.build_request("POST", URL.replace("//", "//me:pw@"), content=b"", headers={}, timeout=1.0)
        await client.send(request)
    assert transport.requests[0].headers["authorization"].startswith("Basic ")


async def test_a_transport_error_names_its_request() -> None:
    async with MinimalHttpClient(RecordingTransport(httpx.ReadError("gone"))) as client:
        request = client.build_request("POST", URL, content=b"", headers={}, timeout=1.0)
        with pytest.raises(httpx.ReadError) as raised:
            await client.send(request)
    assert raised.value.request is request


@pytest.mark.parametrize("stream", [False, True])
async def test_it_sets_no_cookie_and_can_stream(server: FakeServer, stream: bool) -> None:
    server.script = lambda _: Reply(body=completion("hello").body, headers={"Set-Cookie": "a=b"})
    async with MinimalHttpClient(GuardedTransport(httpx.AsyncHTTPTransport())) as client:
        for _ in range(2):
            request = client.build_request(
                "POST", f"{server.url}/chat/completions", content=b"{}", headers={}, timeout=5.0
            )
            response = await client.send(request, stream=stream)
            assert b"hello" in (await response.aread() if stream else response.content)
            await response.aclose()
    assert all("Cookie" not in r.headers for r in server.requests)
