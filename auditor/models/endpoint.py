"""From a model's section in the config to what litellm is called with: provider, server, key, price."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from auditor.config import EMBEDDED_PREFIX, ModelSection, resolve_secret
from auditor.config.signed_providers import find_signed_provider
from auditor.domain import Call
from auditor.errors import ConfigError
from auditor.models import litellm_client
from auditor.models.litellm_client import TokenPrice
from auditor.models.structured import SCHEMA_BY_NAME, enumerate_bounded_numbers, response_format, to_required_tool
from auditor.redaction import register_secrets

COMPLETIONS_PROVIDER = "text-completion-openai"
"""litellm's name for a completions endpoint; under any other it sends a known chat model's prompt as a chat message."""

PLACEHOLDER_KEY = "none"
"""Sent to a server of the user's own that has no key: litellm would take the provider's out of the environment."""

SIGNING_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")
"""Variables that hold what signs requests, for a server might echo it."""

# Sent when asked for, but a provider without them still answers the same question.
OPTIONAL_PARAMS = ("seed",)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model's requests go.

    Attributes:
        model: provider string for litellm.
        server: base URL, or None for the provider's own.
        slots: requests that an embedded model's server takes at once; None for a provider.
        replicas: address and key of each of an embedded model's servers, all alike.
        key: the secret, or None; never stored or shown.
        price: US dollars per input and output token; None when unknown.
    """

    model: str
    base_url: str | None
    price: TokenPrice | None
    slots: int | None = None
    replicas: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_key: str | None = field(default=None, repr=False)

    def request_kwargs(self, call: Call, timeout_s: float) -> dict[str, Any]:
        """Keyword arguments of one litellm request; litellm's and the SDK's own retries are off."""
        kwargs: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": m.role, "content": m.content} for m in call.messages],
            "timeout": timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            **self.drop_unsupported_params(dict(call.params)),
        }
        server, key = self.base_url, self.api_key
        if self.replicas:
            server, key = self.replicas[int(call.key[:8], 16) % len(self.replicas)]
        if server is not None:
            kwargs["api_base"] = server
        if key is None and server is not None and find_signed_provider(self.model, key) is None:
            key = PLACEHOLDER_KEY
        if key is not None:
            kwargs["api_key"] = key
        if call.measure is not None and call.measure.needs_completions_endpoint:
            return _to_completions_request(kwargs, call)
        return (
            kwargs
            if call.schema is None
            else {**kwargs, **self._structured_output_kwargs(call.schema, call.max_words or 0)}
        )

    def _structured_output_kwargs(self, schema: str, max_words: int) -> dict[str, Any]:
        """What asks for a structure: its JSON schema, or a tool; where the provider has neither, the words must do."""
        supported, asked = (
            litellm_client.supported_params(self.model),
            response_format(SCHEMA_BY_NAME[schema], max_words),
        )
        if "response_format" in supported:
            return {"response_format": self._adapt_response_format(asked)}
        return (
            {**to_required_tool(asked), **litellm_client.SKIP_MCP_TOOLS}
            if {"tools", "tool_choice"} <= supported
            else {}
        )

    def _adapt_response_format(self, requested_format: dict[str, Any]) -> dict[str, Any]:
        """The response format in the dialect of this endpoint."""
        if self.slots is not None:
            return dict(enumerate_bounded_numbers(requested_format))
        refused = (
            litellm_client.UNSUPPORTED_SCHEMA_KEYWORDS.get(self.model.split("/", 1)[0])
            if self.base_url is None
            else None
        )
        return dict(litellm_client.drop_schema_keywords(requested_format, refused)) if refused else requested_format

    def drop_unsupported_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters that this provider takes; only those of `OPTIONAL_PARAMS` may be left out."""
        supported = litellm_client.supported_params(self.model)
        return {k: v for k, v in params.items() if k not in OPTIONAL_PARAMS or k in supported}


def _to_completions_request(kwargs: dict[str, Any], call: Call) -> dict[str, Any]:
    """The request as one to the completions endpoint, with every end of the sentence as a prompt."""
    kwargs.pop("messages")
    kwargs["model"] = f"{COMPLETIONS_PROVIDER}/{kwargs['model'].split('/', 1)[1]}"
    if "prompt_logprobs" in kwargs:  # not OpenAI's, so its client takes it only beside its own
        kwargs["extra_body"] = {"prompt_logprobs": kwargs.pop("prompt_logprobs"), **kwargs.get("extra_body", {})}
    kwargs["prompt"] = [call.messages[0].content + end for end in call.continuations]
    return kwargs


def resolve_endpoint(section: ModelSection) -> Endpoint:
    """The endpoint of a model; an embedded one is started if it does not run yet.

    Raises:
        ConfigError: its key is not in the environment, or a parameter would say who is asked, or as whom.
        ModelSetupError: an embedded model's weights or package are missing.
    """
    if name := next(filter(litellm_client.is_routing_param, section.params), None):
        raise ConfigError(
            f"model '{section.name}': the parameter '{name}' is no matter of the model's.",
            "Say where a model is with api_base, and name its key with api_key; leave the parameter out.",
        )
    if section.model.startswith(EMBEDDED_PREFIX):
        from auditor.models.embedded_server import SLOTS, start_server_replicas

        name = section.model.removeprefix(EMBEDDED_PREFIX)
        servers = start_server_replicas(name)
        return Endpoint(
            model=f"openai/{name}", base_url=servers[0][0], price=token_price(section), slots=SLOTS, replicas=servers
        )
    key = resolve_secret(section.api_key) if section.api_key else None
    if find_signed_provider(section.model, section.api_key):
        register_secrets(*(os.environ.get(name) for name in SIGNING_VARIABLES))
    return Endpoint(model=section.model, base_url=section.api_base, price=token_price(section), api_key=key)


def embedded_slots(model: str) -> int | None:
    """Requests that an embedded model's server takes at once; None for a provider."""
    if not model.startswith(EMBEDDED_PREFIX):
        return None
    from auditor.models.embedded_server import SLOTS

    return SLOTS


def token_price(section: ModelSection) -> TokenPrice | None:
    """What a token costs; None when unknown."""
    if section.model.startswith(EMBEDDED_PREFIX):
        return TokenPrice(0.0, 0.0, 0.0)
    if (price := section.price) is not None:
        kept = price.input if price.cached_input is None else price.cached_input
        return TokenPrice(price.input / 1e6, price.output / 1e6, kept / 1e6)
    # A server of one's own may serve anything under a listed name, so its price is not known.
    return None if section.api_base else litellm_client.listed_token_price(section.model)
