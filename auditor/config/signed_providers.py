"""Providers whose requests carry this machine's own credentials instead of a key that a config names.

A line of config is enough to use them, so that whoever runs somebody's config must have allowed it, as for a key.
"""

from __future__ import annotations

from typing import NamedTuple


class SignedProvider(NamedTuple):
    """What signs a provider's requests, and where they go unless a config says otherwise."""

    credentials: str
    """Its name in a line of trust."""
    description: str
    host: str


SIGNED_PROVIDERS = {
    "bedrock": SignedProvider(
        "AWS_CREDENTIALS", "this machine's AWS credentials (environment or profile)", "amazonaws.com"
    ),
    "vertex_ai": SignedProvider(
        "GOOGLE_CREDENTIALS", "this machine's Google credentials (a file of theirs)", "googleapis.com"
    ),
}


def provider_of(model: str) -> str:
    """The provider in a provider string."""
    return model.split("/", 1)[0]


def find_signed_provider(model: str, api_key: str | None) -> SignedProvider | None:
    """What signs a model's requests; None where nothing does but the key that the config names, or none."""
    found = SIGNED_PROVIDERS.get(provider_of(model))
    has_key = api_key is not None and provider_of(model) == "bedrock"  # Bedrock takes a key of its own instead
    return None if has_key else found
