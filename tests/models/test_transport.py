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
