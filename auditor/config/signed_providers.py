"""Providers whose requests are signed with this machine's credentials instead of a key that the config names.

Naming such a model in a config is enough to use the credentials. So the user must have allowed it, as for a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class SignedProvider(NamedTuple):
    """The credentials that sign a provider's requests, and the host that gets them unless a config names another."""

    credentials: str
    """Name of the credentials in the trust file."""
    description: str
    host: str


SIGNED_PROVIDERS = {
    "bedrock": SignedProvider(
        "AWS_CREDENTIALS",
        "this machine's AWS credentials (environment, profile or role of the machine)",
        "amazonaws.com",
    ),
    "vertex_ai": SignedProvider(
        "GOOGLE_CREDENTIALS",
        "this machine's Google credentials (credentials file or service account of the machine)",
        "googleapis.com",
    ),
}


ENTRA_ID = SignedProvider(
    "AZURE_CREDENTIALS", "this machine's Azure credentials (Microsoft Entra ID)", "openai.azure.com"
)
"""Credentials of Azure's models without a key."""
ENTRA_ID_PROVIDERS = frozenset({"azure", "azure_ai"})


def uses_entra_id(model: str, api_key: str | Sequence[str] | None) -> bool:
    """Whether a model's requests carry an access token of Microsoft Entra ID in place of a key."""
    return api_key is None and extract_provider(model) in ENTRA_ID_PROVIDERS


def extract_provider(model: str) -> str:
    """The provider in a model's id: the part before the first slash."""
    return model.split("/", 1)[0]


def find_signed_provider(model: str, api_key: str | Sequence[str] | None) -> SignedProvider | None:
    """Return the credentials of this machine that sign a model's requests; None if none do."""
    if uses_entra_id(model, api_key):
        return ENTRA_ID
    signed_provider = SIGNED_PROVIDERS.get(extract_provider(model))
    has_key = api_key is not None and extract_provider(model) == "bedrock"  # Bedrock takes a key of its own instead
    return None if has_key else signed_provider
