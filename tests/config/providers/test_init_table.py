"""The table of providers; each one sends its requests only through the guarded transport, or is refused."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest

import auditor
from auditor.config import EMBEDDED, REPLAY, SIMULATED, AuditConfig, ModelSection
from auditor.config.providers import (
    PROVIDER_BY_NAME,
    PROVIDER_BY_PREFIX,
    PROVIDERS,
    Provider,
    provider_of,
    unsupported_reason,
)
from auditor.config.trust import require_trust
from auditor.domain import Call, Message, Purpose
from auditor.domain.terms import split_model_id
from auditor.errors import ConfigError
from auditor.models import litellm_client
from auditor.models.endpoint import Endpoint
from auditor.models.provider_request import send_request
from auditor.models.transport import SERVER_STUB
from tests.models.test_gateway_provider_families import FAMILIES
from tests.support.audit_configs import KEY, config
from tests.support.fake_server import completion

PACKAGE = Path(auditor.__file__).parent
MODELS = {"bedrock": "bedrock/anthropic.claude-3-haiku-20240307-v1:0", "ragflow": "ragflow/chat/1/x"}
"""Model names for providers that validate them; any name works for the others."""
SUPPORTED = {row.prefix for row in PROVIDERS if not row.refusal} - {EMBEDDED.prefix, REPLAY.prefix, SIMULATED.prefix}
WITHOUT_ADDRESS = {row.prefix for row in PROVIDERS if row.address_advice}
SERVER_FIELDS = {
    *("prefix", "short_name", "title", "example_model", "key_variable", "environment", "api_base", "params", "notes"),
    *("hosts", "service_hosts"),
}
"""What a record says about a server, and not about the requests of its prefix."""
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
        Endpoint(model, base, None, api_key=KEY), call, attempt_number=1, timeout_s=60, total_timeout_s=240
    )


async def test_each_provider_uses_the_guarded_transport_or_is_refused(
    connections: list[object], sent: list[httpx.Request]
) -> None:
    stub, faults, sent_to_openai = SERVER_STUB.get(), dict[str, Any](), set[str]()
    litellm_client.open_http_clients()
    try:
        for name in sorted(providers() - ELSEWHERE):
            if unsupported_reason(provider_of(name)) is not None:
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
    assert sent_to_openai - {"openai", "text-completion-openai"} == WITHOUT_ADDRESS


@pytest.mark.parametrize("provider", sorted(WITHOUT_ADDRESS))
def test_a_provider_without_an_address_needs_one(provider: str) -> None:
    with pytest.raises(ConfigError, match=f"'{provider}' has no address of its own") as refused:
        require_trust(audit_of(f"{provider}/x"))
    assert ("ai21_chat/MODEL" in (refused.value.how_to_fix or "")) == (provider == "ai21")


def test_every_allowed_provider_is_known_to_litellm() -> None:
    assert providers() >= SUPPORTED
    assert {row.prefix for row in PROVIDERS if row.is_signed} <= {split_model_id(model)[0] for model in FAMILIES}


def test_one_record_says_how_the_requests_of_a_prefix_are_made() -> None:
    defaults = Provider("")
    for row in PROVIDERS:
        if row is not PROVIDER_BY_PREFIX[row.prefix]:
            assert row.name, f"there are two records of {row.prefix}, and one has no name"
            ignored = {field.name for field in fields(Provider)} - SERVER_FIELDS
            assert {name for name in ignored if getattr(row, name) != getattr(defaults, name)} == set(), row.name


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


def test_names_are_unique_and_the_table_has_each_provider_of_the_docs() -> None:
    assert len(PROVIDER_BY_NAME) == sum(bool(row.name) for row in PROVIDERS) == 21


@pytest.mark.parametrize("provider", PROVIDER_BY_NAME.values(), ids=lambda provider: provider.name)
def test_each_provider_makes_a_valid_and_supported_model(provider: Provider) -> None:
    assert unsupported_reason(provider) is None
    section = ModelSection(
        name="m", model=provider.model_id(provider.example_model),
        api_key=provider.key_variable and f"os.environ/{provider.key_variable}", api_base=provider.api_base,
        params=dict(provider.params),
    )  # fmt: skip
    assert split_model_id(section.model) == (provider.prefix, provider.example_model)


@pytest.mark.parametrize("provider", PROVIDER_BY_NAME.values(), ids=lambda provider: provider.name)
def test_a_model_id_gets_the_prefix_once(provider: Provider) -> None:
    assert provider.model_id(f"{provider.prefix}/x") == provider.model_id("x") == f"{provider.prefix}/x"


@pytest.mark.parametrize("provider", PROVIDER_BY_NAME.values(), ids=lambda provider: provider.name)
def test_a_provider_takes_a_key_or_signs_or_is_a_server_of_the_users_own(provider: Provider) -> None:
    assert (provider.key_variable is not None) + provider.is_signed + provider.is_local == 1
    assert provider.key_variable is None or re.fullmatch(r"[A-Z_]+", provider.key_variable)
    assert bool(provider.notes) == (provider.is_signed or provider.api_base is not None)


def test_only_azure_needs_an_address_of_the_users_own() -> None:
    assert [provider.name for provider in PROVIDER_BY_NAME.values() if provider.needs_address] == ["azure"]


def test_only_the_table_names_providers() -> None:
    known = {row.prefix for row in PROVIDERS if row.name or row.refusal or row.base_model_example}
    quoted_name = re.compile(rf"""(?<!`)["'](?:{"|".join(sorted(known - {"custom"}))})(?:/\S*)?["']""")
    sources = [
        path
        for folder in ("config", "models", "run", "cost_estimation", "cli")
        for path in (PACKAGE / folder).rglob("*.py")
        if path.parent != PACKAGE / "config" / "providers"
    ]
    named = {(path.name, name) for path in sources for name in quoted_name.findall(path.read_text(encoding="utf-8"))}
    # Examples of two keys' values; and the package `azure` of azure-identity.
    examples = {("value_checks.py", '"openai/gpt-4o"'), ("value_checks.py", '"azure/gpt-4o"')}
    assert named == examples | {("endpoint.py", '"azure"')}


def test_the_models_that_continue_the_beginning_of_an_answer_are_those_of_litellms_list() -> None:
    """So that a provider that does not allow it is known before the first call."""
    prefixes = {"anthropic": "anthropic", "bedrock_converse": "bedrock", "vertex_ai-anthropic_models": "vertex_ai"}
    prefixes |= {"mistral": "mistral", "openai": "openai", "gemini": "gemini", "xai": "xai", "groq": "groq"}
    wrong = []
    for name, entry in litellm_client._read_price_list().items():
        prefix = prefixes.get(entry.get("litellm_provider", ""))
        is_claude = "claude" in name
        if prefix is None or entry.get("mode") != "chat" or (prefix in ("bedrock", "vertex_ai") and not is_claude):
            continue
        model = ModelSection(name="m", model=f"{prefix}/{name.removeprefix(f'{prefix}/')}")
        if (model.prefill is not None) != bool(entry.get("supports_assistant_prefill")):
            wrong.append(name)
    assert wrong == []


@pytest.mark.parametrize(
    ("model", "settings", "continues"),
    [
        ("openai/gpt-4o", {}, False), ("openai/local", {"capabilities": {"prefill": True}}, True),
        ("hosted_vllm/x", {}, True), ("hosted_vllm/x", {"capabilities": {"prefill": False}}, False),
        ("hosted_vllm/x", {"reasoning": {"effort": "low"}}, False),
        ("hosted_vllm/x", {"reasoning": {"effort": "none"}}, True), ("embedded/smollm2-135m", {}, True),
        ("replay/x", {}, False),
    ],
)  # fmt: skip
def test_a_model_continues_an_answer_as_its_section_says(model: str, settings: dict[str, Any], continues: bool) -> None:
    assert (ModelSection(name="m", model=model, **settings).prefill is not None) is continues
