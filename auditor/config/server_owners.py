"""Whose server a host is: the provider's own, of this machine or network, or somebody else's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from auditor.config.credential_bindings import extract_host, is_private_address, strip_port
from auditor.config.providers import PROVIDERS

OWN_HOSTS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("api.anthropic.com",),
    "azure": (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
    "azure_ai": (".services.ai.azure.com", ".inference.ai.azure.com", ".models.ai.azure.com"),
    "bedrock": ("amazonaws.com",),
    "cohere_chat": ("api.cohere.com", "api.cohere.ai"),
    "deepseek": ("api.deepseek.com",),
    "fireworks_ai": ("api.fireworks.ai",),
    "gemini": ("generativelanguage.googleapis.com",),
    "groq": ("api.groq.com",),
    "mistral": ("api.mistral.ai",),
    "openai": ("api.openai.com", ".api.openai.com"),
    "openrouter": ("openrouter.ai",),
    "together_ai": ("api.together.xyz", "api.together.ai"),
    "vertex_ai": ("googleapis.com",),
    "xai": ("api.x.ai", ".api.x.ai"),
}
"""Hosts of providers, by litellm's prefix; one that begins with a dot stands for all names with this end."""
SERVICE_HOSTS: Mapping[str, re.Pattern[str]] = {
    "bedrock": re.compile(
        r"(?:vpce-[\w-]+\.)?bedrock(?:-[a-z]+)*\.[a-z]{2}(?:-[a-z]+)+-\d(?:\.vpce)?\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
    ),
    "vertex_ai": re.compile(r"(?:[a-z0-9-]+-)?aiplatform\.(?:(?:us|eu)\.rep\.)?googleapis\.com"),
}
"""Hosts of a cloud's service, by litellm's prefix: customers have servers under the same domain."""
TITLES = {setup.prefix: setup.title for setup in reversed(PROVIDERS)}
"""Names of providers for people, by litellm's prefix."""


def describe_owner(host: str, provider: str) -> str:
    """Whose server gets a key: "a server of OpenAI", "this machine or your network", or "NOT a server of OpenAI".

    Args:
        host: host and port, as `extract_host` returns them.
        provider: litellm's prefix of the model.
    """
    name, title = strip_port(host), TITLES.get(provider, provider)
    if any(
        name == pattern or (pattern.startswith(".") and name.endswith(pattern))
        for pattern in OWN_HOSTS.get(provider, ())
    ) or (provider in SERVICE_HOSTS and SERVICE_HOSTS[provider].fullmatch(name)):
        return f"a server of {title}"
    if is_private_address(name):
        return "this machine or your network"
    known_titles = [
        setup.title
        for setup in PROVIDERS
        if setup.api_base and setup.prefix == provider and extract_host(setup.api_base) == name
    ]
    return f"a server of {known_titles[0]}" if known_titles else f"NOT a server of {title}"


def display_host(url: str) -> str:
    """A URL's host as a connection uses it (punycode), with its other letters in parentheses if it has any."""
    host = extract_host(url)
    written = urlsplit(url).netloc.rsplit("@", 1)[-1].lower()
    return host if host == written else f"{host} (written as {written}, with letters that may look like others)"
