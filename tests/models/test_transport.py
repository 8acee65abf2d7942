"""Redirects are refused, and connecting has a limit; families of providers test what is too large or compressed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncIterator
from unittest import mock

import httpx
import pytest

from auditor.domain import Outcome
from auditor.models import transport
from tests.models.test_gateway import call
from tests.support.fake_server import FakeServer, Reply, answer, completion
from tests.support.gateway_calls import ask, model_section


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(server: FakeServer, status: int) -> None:
    with FakeServer() as elsewhere:
        redirect = Reply(status, headers={"location": f"{elsewhere.url}/chat/completions"})
        server.script = lambda r: redirect if r.number else answer(r)
        _, failed_answer = await ask(model_section(server), call(0), call(1))
        assert elsewhere.requests == []
    assert (failed_answer.outcome, len(server.requests)) == (Outcome.CLIENT_ERROR, 2)
    assert "redirect" in (failed_answer.error or "")


BODY = json.dumps(completion("hello").body).encode()
GZIP_BODY = gzip.compress(BODY)
CHUNKS = b"".join(
    f"data: {json.dumps({'id': '1', 'choices': [choice]})}\n\n".encode()
    for choice in (
        {"index": 0, "delta": {"role": "assistant", "content": "hello"}},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    )
)
EVENT_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
READABLE: dict[str, tuple[bytes, ...]] = {
    "a header in UTF-8": (HEAD, "x-city: Köln\r\n".encode(), b"content-length: %d\r\n\r\n" % len(BODY), BODY),
    "a header in Latin-1": (HEAD, b"x-city: K\xf6ln\r\ncontent-length: %d\r\n\r\n" % len(BODY), BODY),
    "a header of 20 kB": (HEAD, b"x-policy: " + b"x" * 20_000, b"\r\ncontent-length: %d\r\n\r\n" % len(BODY), BODY),
    "300 headers": (HEAD, b"x-a: b\r\n" * 300, b"content-length: %d\r\n\r\n" % len(BODY), BODY),
    "a charset as encoding": (HEAD, b"content-encoding: UTF-8\r\ncontent-length: %d\r\n\r\n" % len(BODY), BODY),
    "no encoding by name": (HEAD, b"content-encoding: none\r\ncontent-length: %d\r\n\r\n" % len(BODY), BODY),
    "the type of a stream": (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n",
        b"content-length: %d\r\n\r\n" % len(BODY),
        BODY,
    ),
    "too large a length": (HEAD, b"content-length: %d\r\n\r\n" % (len(BODY) + 1), BODY),
    "a byte order mark": (HEAD, b"content-length: %d\r\n\r\n\xef\xbb\xbf" % (len(BODY) + 4), BODY),
    "gzip": (HEAD, b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(GZIP_BODY), GZIP_BODY),
    "deflate": (HEAD, b"content-encoding: Deflate\r\n\r\n", zlib.compress(BODY)),
    "deflate without zlib's header": (
        HEAD,
        b"content-encoding: deflate\r\n\r\n",
        zlib.compress(BODY, wbits=-zlib.MAX_WBITS),
    ),
    "gzip without a header": (HEAD, b"content-length: %d\r\n\r\n" % len(GZIP_BODY), GZIP_BODY),
    "gzip in two members": (
        HEAD,
        b"content-encoding: gzip\r\n\r\n",
        gzip.compress(BODY[:9]),
        gzip.compress(BODY[9:]),
    ),
    "gzip with padding": (HEAD, b"content-encoding: gzip\r\n\r\n", GZIP_BODY, bytes(20)),
    "gzip without its checksum": (HEAD, b"content-encoding: gzip\r\n\r\n", GZIP_BODY[:-8]),
    "a stream that its length cuts off": (EVENT_HEAD, b"content-length: %d\r\n\r\n" % (len(CHUNKS) + 1), CHUNKS),
    "no last chunk": (HEAD, b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(BODY), BODY, b"\r\n"),
}
"""Responses with a whole answer that was paid for, and an odd frame, as bytes of the wire."""


@pytest.mark.parametrize("frame", READABLE)
async def test_a_whole_answer_in_an_odd_frame_is_read_at_once(server: FakeServer, frame: str) -> None:
    server.script = lambda _: Reply(wire=(b"".join(READABLE[frame]),))
    [read_answer] = await ask(model_section(server), call())
    assert (read_answer.outcome, read_answer.text, len(server.requests)) == (Outcome.OK, "hello", 1), read_answer.error


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (HEAD + b"content-length: %d\r\n\r\n" % (len(BODY) + 1), BODY),
        (HEAD + b"\r\n", BODY),
        (EVENT_HEAD + b"\r\n", CHUNKS + b"data: [DONE]\n\n"),
    ],
)
async def test_a_whole_answer_whose_connection_stays_open_is_read(
    server: FakeServer, head: bytes, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_SILENCE_S", 0.2)
    server.script = lambda _: Reply(wire=(head + body[:20], 0.4, body[20:], 30.0))
    [read_answer] = await ask(model_section(server), call())
    assert (read_answer.outcome, read_answer.text, len(server.requests)) == (Outcome.OK, "hello", 1), read_answer.error


async def test_a_body_of_many_parts_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing at each part that may be the last took time by the square of the body's length."""
    parse = mock.Mock(side_effect=transport.parse_json_object)
    monkeypatch.setattr(transport, "parse_json_object", parse)

    async def parts() -> AsyncIterator[bytes]:
        yield b'{"text": "'
        for _ in range(1_000):
            yield b"}"
        yield b'"}'

    response = httpx.Response(200, headers={"content-type": "application/json"}, content=parts())
    transport.CURRENT_EXCHANGE.set(transport.HttpExchange())
    handler = httpx.MockTransport(lambda _: response)
    async with httpx.AsyncClient(transport=transport.GuardedTransport(handler)) as client:
        read_response = await client.post("http://127.0.0.1", json={})
    assert (len(read_response.json()["text"]), parse.call_count) == (1_000, 1)


@pytest.mark.parametrize("wbits", [31, zlib.MAX_WBITS, -zlib.MAX_WBITS])
async def test_a_compressed_answer_may_come_byte_by_byte(wbits: int) -> None:
    packed = zlib.compress(BODY, wbits=wbits)

    async def parts() -> AsyncIterator[bytes]:
        for position in range(len(packed)):
            yield packed[position : position + 1]

    response = httpx.Response(200, headers={"content-encoding": "deflate"}, content=parts())
    handler = httpx.MockTransport(lambda _: response)
    async with httpx.AsyncClient(transport=transport.GuardedTransport(handler)) as client:
        assert (await client.post("http://127.0.0.1", json={})).content == BODY


@pytest.mark.parametrize("packed", [GZIP_BODY, gzip.compress(b"") * 10, GZIP_BODY[:3] + b"\x08" + bytes(6)])
async def test_a_body_that_unpacks_to_little_ends_at_the_limit(packed: bytes) -> None:
    """Of bytes after the end, of empty members, and of a name of a file, no end came, and some filled the memory."""
    n_parts = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal n_parts
        yield packed
        for _ in range(100):
            n_parts += 1
            yield packed if packed.startswith(gzip.compress(b"")) else b"a" * 1_000

    response = httpx.Response(200, headers={"content-encoding": "gzip"}, content=parts())
    transport.CURRENT_EXCHANGE.set(transport.HttpExchange(10_000))
    handler = httpx.MockTransport(lambda _: response)
    async with httpx.AsyncClient(transport=transport.GuardedTransport(handler)) as client:
        with pytest.raises(transport.UnacceptableExchange, match="larger"):
            await client.post("http://127.0.0.1", json={})
    assert n_parts <= 60


async def test_a_byte_that_is_not_utf8_is_replaced_in_a_text(server: FakeServer) -> None:
    server.script = lambda _: Reply(raw=BODY.replace(b"hello", b"caf\xe9"))
    [read_answer] = await ask(model_section(server), call())
    assert (read_answer.outcome, read_answer.text, len(server.requests)) == (Outcome.OK, "caf\ufffd", 1)


async def test_an_answer_whose_connection_is_closed_too_early_is_none(server: FakeServer) -> None:
    server.script = lambda _: Reply(wire=(HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY[:-1],))
    [failed_answer] = await ask(model_section(server), call(), max_attempts=1)
    assert (failed_answer.outcome, failed_answer.text) == (Outcome.SERVER_ERROR, None)


@pytest.mark.parametrize(
    ("timeout_s", "total_timeout_s", "connect_s", "pool_s"),
    [(60.0, None, 54.0, 54.0), (600.0, None, 54.0, 540.0), (600.0, 10.0, 9.0, 9.0), (5.0, 10.0, 4.5, 4.5)],
)
def test_connecting_takes_no_longer_because_a_model_may_be_slow(
    timeout_s: float, total_timeout_s: float | None, connect_s: float, pool_s: float
) -> None:
    request = httpx.Request("POST", "http://127.0.0.1", extensions={"timeout": httpx.Timeout(timeout_s).as_dict()})
    transport._cap_connect_timeout(request, total_timeout_s)
    timeouts = request.extensions["timeout"]
    assert (timeouts["connect"], timeouts["pool"], timeouts["read"]) == pytest.approx((connect_s, pool_s, timeout_s))


@pytest.mark.parametrize(
    ("error", "raised", "is_unreachable"),
    [
        (httpx.RemoteProtocolError("gone"), httpx.ReadError, False),
        (httpx.ConnectError("refused"), transport.ServerUnreachable, True),
    ],
)
async def test_litellm_retries_no_error_of_a_connection(
    error: httpx.TransportError, raised: type[Exception], is_unreachable: bool
) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error

    transport.CURRENT_EXCHANGE.set(exchange := transport.HttpExchange())
    async with httpx.AsyncClient(transport=transport.GuardedTransport(httpx.MockTransport(fail))) as client:
        with pytest.raises(raised) as raised_error:
            await client.post("http://127.0.0.1/v1", content=b"{}")
    assert not isinstance(raised_error.value, (httpx.RemoteProtocolError, httpx.ConnectError))
    assert (exchange.unreachable, exchange.n_requests) == (is_unreachable, 1)
