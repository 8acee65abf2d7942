"""Requests to every provider's own address go to a local server, which sees the address that they were sent to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from auditor.models import litellm_client
from auditor.models.transport import GuardedTransport, HttpExchange
from tests.support.audit_configs import KEY
from tests.support.fake_server import FakeServer
from tests.support.google_machine import google_machine

WRONG_KEY = "sk-wrong-9876543210"
AWS = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_REGION_NAME": "eu-central-1"}
GOOGLE_TOKEN = f"ya29.{KEY}"


@pytest.fixture(scope="session")
def provider_server() -> Iterator[FakeServer]:
    """The server behind all providers; a test sets its script."""
    with FakeServer() as running:
        yield running


@pytest.fixture(autouse=True)
def redirected(monkeypatch: pytest.MonkeyPatch, provider_server: FakeServer) -> None:
    """Send every request to `provider_server` instead of its address, which the header `Host` still names."""
    provider_server.requests.clear()
    forward_request = GuardedTransport._forward_request
    local = urlsplit(provider_server.url)

    async def forward(self: GuardedTransport, request: httpx.Request, exchange: HttpExchange) -> httpx.Response:
        request.url = request.url.copy_with(scheme="http", host=local.hostname, port=local.port)
        return await forward_request(self, request, exchange)

    monkeypatch.setattr(GuardedTransport, "_forward_request", forward)
    litellm_client.load_litellm()


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """Set credentials of an AWS and a Google Cloud machine; a local server issues Google's access tokens.

    `GOOGLE_TOKEN` is issued, or the value of the variable TEST_GOOGLE_TOKEN.
    """
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    with google_machine(monkeypatch, tmp_path, lambda: os.environ.get("TEST_GOOGLE_TOKEN", GOOGLE_TOKEN)):
        yield monkeypatch
