"""Azure without a key: access tokens come from a scripted Entra ID, over TLS as azure-identity requires."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from auditor.config import ModelSection
from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.errors import ConfigError, ModelSetupError
from auditor.models import endpoint
from tests.support.fake_server import FakeServer, completion
from tests.support.gateway_calls import ask as ask_gateway
from tests.support.local_servers import QuietHandler, make_certificate, serve

TENANT, CLIENT_SECRET = "11111111-2222-3333-4444-555555555555", "client-secret-0123456789"
TOKEN = "entra-access-token-0123456789"
KEY_OF_ENVIRONMENT = "key-that-no-config-names"


class ScriptedEntraId:
    """A token server: `forms` has those of requests; `lifetime_s` is a token's validity; `error` refuses requests."""

    def __init__(self) -> None:
        self.forms: list[dict[str, list[str]]] = []
        self.lifetime_s, self.error, self.url = 3600, "", ""

    def handler(self) -> type[QuietHandler]:
        owner = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                base = f"{owner.url}/{TENANT}"
                paths = {"token_endpoint": "oauth2/v2.0/token", "authorization_endpoint": "oauth2/v2.0/authorize"}
                self.reply({name: f"{base}/{path}" for name, path in (paths | {"issuer": "v2.0"}).items()})

            def do_POST(self) -> None:
                owner.forms.append(parse_qs(self.read_body().decode()))
                if owner.error:
                    self.reply({"error": "invalid_client", "error_description": owner.error}, 401)
                else:
                    token = f"{TOKEN}-{len(owner.forms)}"
                    self.reply({"token_type": "Bearer", "expires_in": owner.lifetime_s, "access_token": token})

        return Handler


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture
def token_server(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEntraId]:
    """The token server that the environment names, with the credentials of a service."""
    running = ScriptedEntraId()
    with serve(running.handler(), certificate) as port:
        running.url = f"https://localhost:{port}"
        settings = {
            "AZURE_AUTHORITY_HOST": running.url, "AZURE_TENANT_ID": TENANT,
            "AZURE_CLIENT_ID": "99999999-8888-7777-6666-555555555555",
            "AZURE_CLIENT_SECRET": CLIENT_SECRET, "REQUESTS_CA_BUNDLE": str(certificate),
            "AZURE_API_KEY": KEY_OF_ENVIRONMENT, "AZURE_OPENAI_API_KEY": KEY_OF_ENVIRONMENT,
        }  # fmt: skip
        for name, text in settings.items():
            monkeypatch.setenv(name, text)
        yield running


async def ask(
    server: FakeServer, n_calls: int = 2, model: str = "azure/my-deployment", **settings: Any
) -> list[Answer]:
    base = server.url.removesuffix("/v1")
    keys = {"name": "m", "model": model, "api_base": base, "params": {"api_version": "2024-10-21"}}
    section = ModelSection.model_validate({**keys, **settings})
    calls = [
        Call("m", model, (Message("user", f"{number}?"),), Purpose.DIRECT, server=base, params=section.params)
        for number in range(n_calls)
    ]
    return await ask_gateway(section, *calls, max_attempts=1)


@pytest.mark.parametrize("model", ["azure/my-deployment", "azure_ai/gpt-4o"])
async def test_requests_carry_a_token_of_entra_id_and_no_key(
    server: FakeServer, token_server: ScriptedEntraId, model: str
) -> None:
    server.script = lambda _: completion("SCORE = 0.5")
    answers = await ask(server, model=model)
    assert [answer.outcome for answer in answers] == [Outcome.OK, Outcome.OK]
    assert [form["scope"] for form in token_server.forms] == [[endpoint.DEFAULT_SCOPE]]
    assert token_server.forms[0]["client_secret"] == [CLIENT_SECRET]
    for request in server.requests:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}-1"
        assert "api-key" not in {name.lower() for name in request.headers}
        assert KEY_OF_ENVIRONMENT not in str(request.headers)


async def test_the_responses_api_gets_the_token_too(server: FakeServer, token_server: ScriptedEntraId) -> None:
    await ask(server, 1, "azure/gpt-5-pro")
    assert server.requests[-1].path.endswith("/responses")
    assert server.requests[-1].headers["Authorization"] == f"Bearer {TOKEN}-1"
    assert KEY_OF_ENVIRONMENT not in str(server.requests[-1].headers)


async def test_a_token_is_replaced_before_it_expires(
    server: FakeServer, token_server: ScriptedEntraId, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = lambda _: completion("SCORE = 0.5")
    tokens = endpoint.EntraIdTokens()
    first = await tokens.fetch()
    assert await tokens.fetch() == first == f"{TOKEN}-1"
    later = time.time() + token_server.lifetime_s - endpoint.REFRESH_BEFORE_S + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert await tokens.fetch() == f"{TOKEN}-2"


async def test_another_scope_is_that_of_the_environment(
    token_server: ScriptedEntraId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(endpoint.SCOPE_VARIABLE, "https://cognitiveservices.azure.us/.default")
    await endpoint.EntraIdTokens().fetch()
    assert token_server.forms[0]["scope"] == ["https://cognitiveservices.azure.us/.default"]


async def test_refused_credentials_stop_the_run_with_the_reason(
    server: FakeServer, token_server: ScriptedEntraId
) -> None:
    token_server.error = "AADSTS7000215: Invalid client secret provided."
    with pytest.raises(ModelSetupError) as caught:
        await ask(server)
    assert "Microsoft Entra ID issues no access token" in caught.value.message
    assert "AADSTS7000215" in caught.value.message
    assert CLIENT_SECRET not in caught.value.message
    assert "AZURE_CLIENT_SECRET" in (caught.value.how_to_fix or "")
    assert not server.requests


async def test_a_model_with_a_key_needs_no_token(
    server: FakeServer, token_server: ScriptedEntraId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_AZURE_KEY", "key-0123456789")
    server.script = lambda _: completion("SCORE = 0.5")
    await ask(server, api_key="os.environ/MY_AZURE_KEY")
    assert not token_server.forms
    assert server.requests[-1].headers["api-key"] == "key-0123456789"


async def test_without_the_package_the_message_names_it(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="azure-identity is not installed") as caught:
        await ask(server)
    assert "auditor[azure]" in (caught.value.how_to_fix or "")
