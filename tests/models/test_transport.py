"""Redirects are refused, and connecting has a limit; families of providers test what is too large or compressed."""

from __future__ import annotations

import httpx
import pytest

from auditor.config import LimitsSection
from auditor.domain import Answer, Outcome
from auditor.models import transport
from auditor.models.gateway import Gateway
from tests.models.test_gateway import call, section
from tests.support.fake_server import FakeServer, Reply, answer


async def second_answer(server: FakeServer, reply: Reply) -> Answer:
    """Answer to a run's second call, for which the server sends `reply`."""
    server.script = lambda r: answer(r) if r.number == 0 else reply
    gateway = Gateway([section(server)], LimitsSection(max_attempts=3))
    try:
        assert (await gateway.complete(call(0))).outcome is Outcome.OK
        return await gateway.complete(call(1))
    finally:
        await gateway.close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(server: FakeServer, status: int) -> None:
    with FakeServer() as elsewhere:
        failed_answer = await second_answer(
            server, Reply(status, headers={"location": f"{elsewhere.url}/chat/completions"})
        )
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
