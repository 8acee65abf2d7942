"""Requests to every provider's own address go to a local server, which sees the address that they were sent to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from auditor.models import litellm_client
from auditor.models.transport import GuardedTransport, HttpExchange
from tests.support.audit_configs import KEY
from tests.support.fake_server import FakeServer, Reply

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


@pytest.fixture(scope="session")
def google_account_key() -> str:
    """A private key in PEM; making one takes a tenth of a second."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture
def credentials(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, google_account_key: str
) -> Iterator[pytest.MonkeyPatch]:
    """Set credentials of an AWS and a Google Cloud machine; a local server issues Google's access tokens.

    `GOOGLE_TOKEN` is issued, or the value of the variable TEST_GOOGLE_TOKEN.
    """
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    # litellm keeps an access token for each project, which would be the right one in a test of a wrong one.
    litellm_client.load_litellm().main.vertex_chat_completion._credentials_project_mapping.clear()

    def issue(_: object) -> Reply:
        return Reply(body={"access_token": os.environ.get("TEST_GOOGLE_TOKEN", GOOGLE_TOKEN), "expires_in": 3600})

    with FakeServer(issue) as tokens:
        account = {"type": "service_account", "client_email": "a@b.org", "token_uri": tokens.url}
        (tmp_path / "account.json").write_text(json.dumps({**account, "private_key": google_account_key}))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        monkeypatch.setenv("VERTEXAI_PROJECT", "moral-audit")
        monkeypatch.setenv("VERTEXAI_LOCATION", "europe-west1")
        yield monkeypatch
