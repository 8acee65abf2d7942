"""Redirects are refused, and connecting has a limit; families of providers test what is too large or compressed."""

from __future__ import annotations

import httpx
import pytest

from auditor.domain import Outcome
from auditor.models import transport
from tests.models.test_gateway import call
from tests.support.fake_server import FakeServer, Reply, answer
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
