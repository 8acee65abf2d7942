"""Each provider of litellm sends its requests only through the guarded transport, or is refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any, NoReturn

import httpx
import pytest

from auditor.config import AuditConfig, ModelSection
from auditor.config.signed_providers import SIGNED_PROVIDERS, extract_provider
from auditor.config.supported_providers import (
    GUARDED_PROVIDERS,
    PROVIDERS_WITHOUT_ADDRESS,
    SELF_AUTHENTICATING_PROVIDERS,
    UNGUARDED_PROVIDERS,
    unsupported_reason,
)
from auditor.config.trust import require_trust
from auditor.domain import Call, Message, Purpose
from auditor.errors import ConfigError
from auditor.models import litellm_client
from auditor.models.endpoint import Endpoint
from auditor.models.provider_request import send_request
from auditor.models.transport import SERVER_STUB
from tests.models.test_gateway_provider_families import FAMILIES
from tests.support.audit_configs import KEY, config
from tests.support.fake_server import completion

MODELS = {"bedrock": "bedrock/anthropic.claude-3-haiku-20240307-v1:0", "ragflow": "ragflow/chat/1/x"}
"""Model names for providers that validate them; any name works for the others."""
ELSEWHERE = {"vertex_ai"}
"""Providers that fetch a token first; test_gateway_provider_families.py shows that their requests are guarded."""


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Addresses that code tried to resolve or to connect to. Every attempt fails."""
    attempted_addresses: list[object] = []

    def refuse(*addresses: object, **_: object) -> NoReturn:
        attempted_addresses.append(addresses[-1] if len(addresses) < 3 else addresses[0])
        raise socket.gaierror("no network here")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    return attempted_addresses


@pytest.fixture
def sent() -> Iterator[list[httpx.Request]]:
    """Requests that reached the guarded transport, where a stub answers them."""
    received_requests: list[httpx.Request] = []

    def answer(request: httpx.Request, body: bytes) -> httpx.Response:
        received_requests.append(request)
        return httpx.Response(200, json=completion("hi").body)

    token = SERVER_STUB.set(answer)
    yield received_requests
    SERVER_STUB.reset(token)


def providers() -> set[str]:
    """Names of all providers that litellm knows."""
    from litellm.types.utils import LlmProviders

    listed = {str(getattr(name, "value", name)) for name in litellm_client.load_litellm().provider_list}
    return listed | {provider.value for provider in LlmProviders}


async def ask(model: str, base: str | None) -> None:
    """Send one chat request to a model, with the base URL of the config or the provider's default."""
    call = Call("m", model, (Message("user", "hi"),), Purpose.DIRECT)
    await send_request(
        Endpoint(model, base, None, api_key=KEY), call, attempt_number=1, timeout_s=5, total_timeout_s=20
    )


async def test_each_provider_uses_the_guarded_transport_or_is_refused(
    connections: list[object], sent: list[httpx.Request]
) -> None:
    stub, faults, sent_to_openai = SERVER_STUB.get(), dict[str, Any](), set[str]()
    litellm_client.open_http_clients()
    try:
        for name in sorted(providers() - ELSEWHERE):
            if unsupported_reason(name) is not None:
                continue
            SERVER_STUB.set(stub)
            sent.clear()
            connections.clear()
            await ask(MODELS.get(name, f"{name}/x"), "https://stand-in.example.org/v1")
            guarded_count = len(sent)
            await ask(MODELS.get(name, f"{name}/x"), None)
            if not guarded_count or connections:
                faults[name] = (guarded_count, list(connections))
            if any(request.url.host == "api.openai.com" for request in sent[guarded_count:]):
                sent_to_openai.add(name)
    finally:
        await litellm_client.close_http_clients()
    assert faults == {}
    assert sent_to_openai - {"openai", "text-completion-openai"} == PROVIDERS_WITHOUT_ADDRESS


@pytest.mark.parametrize("provider", sorted(PROVIDERS_WITHOUT_ADDRESS))
def test_a_provider_without_an_address_needs_one(provider: str) -> None:
    with pytest.raises(ConfigError, match=f"'{provider}' has no address of its own") as refused:
        require_trust(audit_of(f"{provider}/x"))
    assert ("ai21_chat/MODEL" in (refused.value.how_to_fix or "")) == (provider == "ai21")


def test_every_allowed_provider_is_known_to_litellm() -> None:
    litellm_providers = providers()
    assert litellm_providers >= GUARDED_PROVIDERS
    assert not GUARDED_PROVIDERS & (SELF_AUTHENTICATING_PROVIDERS | UNGUARDED_PROVIDERS)
    assert set(SIGNED_PROVIDERS) <= {extract_provider(model) for model in FAMILIES}


def audit_of(model: str) -> AuditConfig:
    """A config whose only model is `model`, without base URL and key."""
    audit = config("http://h:1/v1")
    return audit.model_copy(update={"models": [ModelSection(name="m", model=model)]})


@pytest.mark.parametrize(
    "provider", ["aiohttp_openai", "amazon_nova", "custom", "maritalk", "nlp_cloud", "oobabooga", "petals"]
)
async def test_a_provider_that_bypasses_the_guard_is_refused_with_an_alternative(
    connections: list[object], sent: list[httpx.Request], provider: str
) -> None:
    with pytest.raises(ConfigError, match=f"'{provider}' opens its own connections") as refused:
        require_trust(audit_of(f"{provider}/http://evil.example.org/x"))
    assert "openai/MODEL with api_base" in (refused.value.how_to_fix or "")
    litellm_client.open_http_clients()
    try:
        await ask(f"{provider}/x", "https://stand-in.example.org/v1")
    finally:
        await litellm_client.close_http_clients()
    assert sent == []  # the guard was bypassed, which is why the provider is refused


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("petals-team/StableBeluga2", "does not support the provider 'petals-team'"),
        ("opnai/gpt-4o", r"does not support the provider 'opnai'\. Did you mean 'openai'"),
        ("elevenlabs/x", "does not support the provider 'elevenlabs'"),
    ],
)
def test_a_provider_that_is_not_known_to_be_guarded_is_refused(model: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        require_trust(audit_of(model))
