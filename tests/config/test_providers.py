"""The table of providers."""

from __future__ import annotations

import re

import pytest

from auditor.config import ModelSection
from auditor.config.providers import PROVIDER_BY_NAME, PROVIDERS, ProviderSetup
from auditor.config.signed_providers import SIGNED_PROVIDERS
from auditor.config.supported_providers import unsupported_reason


def test_names_are_unique_and_the_table_has_each_provider_of_the_docs() -> None:
    assert len(PROVIDER_BY_NAME) == len(PROVIDERS) == 21


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_each_provider_makes_a_valid_and_supported_model(provider: ProviderSetup) -> None:
    assert unsupported_reason(provider.prefix) is None
    section = ModelSection(
        name="m",
        model=provider.model_id(provider.example_model),
        api_key=provider.key_variable and f"os.environ/{provider.key_variable}",
        api_base=provider.api_base,
        params=dict(provider.params),
    )
    assert section.model.split("/", 1) == [provider.prefix, provider.example_model]


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_model_id_gets_the_prefix_once(provider: ProviderSetup) -> None:
    assert provider.model_id(f"{provider.prefix}/x") == provider.model_id("x") == f"{provider.prefix}/x"


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_provider_takes_a_key_or_signs_or_is_a_server_of_the_users_own(provider: ProviderSetup) -> None:
    is_signed = provider.prefix in SIGNED_PROVIDERS
    assert (provider.key_variable is not None) + is_signed + provider.is_local == 1
    assert provider.key_variable is None or re.fullmatch(r"[A-Z_]+", provider.key_variable)
    assert bool(provider.notes) == (is_signed or provider.api_base is not None)


def test_only_azure_needs_an_address_of_the_users_own() -> None:
    assert [provider.name for provider in PROVIDERS if provider.needs_address] == ["azure"]
