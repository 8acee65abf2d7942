"""Resolve a model's section in the config into litellm's arguments: provider, server, key or token."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from auditor.config import EMBEDDED, ENV_PREFIX, ModelSection, resolve_secret
from auditor.config.providers import COMPLETIONS, OPENAI, Prefill, provider_of
from auditor.config.trust import secret_header_variables
from auditor.domain import AnswerForm, Call, Capability, LogprobMeasure
from auditor.domain.terms import split_model_id
from auditor.errors import ConfigError
from auditor.lazy_imports import import_when_used
from auditor.models import litellm_client
from auditor.models.litellm_client import ListedPrice, TokenPrice, find_listed_price, token_price
from auditor.models.reasoning import add_reasoning
from auditor.models.structured import enumerate_bounded_numbers, find_schema, response_format, to_required_tool
from auditor.redaction import register_secrets

if not TYPE_CHECKING:
    embedded_server = import_when_used("auditor.models.embedded_server")
    exceptions = import_when_used("azure.core.exceptions")
    identity = import_when_used("azure.identity")
else:
    from azure import identity
    from azure.core import exceptions

    from auditor.models import embedded_server

DEFAULT_SCOPE = "https://cognitiveservices.azure.com/.default"
SCOPE_VARIABLE = "AZURE_SCOPE"
"""Environment variable with another scope, as litellm names it; national clouds have scopes of their own."""
AUTHORITY_VARIABLE = "AZURE_AUTHORITY_HOST"
REFRESH_BEFORE_S = 300.0
"""A token is replaced so long before it expires."""
MAX_REASON_CHARS = 300


class AccessTokenRefused(Exception):
    """Entra ID issues no token to this machine's credentials, or it has none."""


class EntraIdTokens:
    """Access tokens for one model, fetched when they are needed. Use it in one event loop."""

    def __init__(self) -> None:
        """Create a source of tokens; nothing is sent yet."""
        self._lock = asyncio.Lock()
        self._credential: Any = None
        self._token, self._expires_at = "", 0.0

    async def fetch(self) -> str:
        """Return a token that is valid for some minutes, from memory if there is one.

        Raises:
            AccessTokenRefused: there are no credentials, or they are refused.
            Exception: Entra ID cannot be reached.
        """
        async with self._lock:
            if time.time() > self._expires_at - REFRESH_BEFORE_S:
                self._token, self._expires_at = await asyncio.to_thread(self._request_token)
        return self._token

    def _request_token(self) -> tuple[str, float]:
        """Request a token; returns it, and when it expires, in seconds since 1970."""
        if self._credential is None:
            # A cloud of its own, which the user's environment names, is not listed by the public one.
            is_own_cloud = AUTHORITY_VARIABLE in os.environ
            self._credential = identity.DefaultAzureCredential(disable_instance_discovery=is_own_cloud)
        try:
            token = self._credential.get_token(os.environ.get(SCOPE_VARIABLE) or DEFAULT_SCOPE)
        except (exceptions.ClientAuthenticationError, identity.CredentialUnavailableError, ValueError) as error:
            reason = " ".join(str(getattr(error, "message", None) or error).split())[:MAX_REASON_CHARS]
            raise AccessTokenRefused(f"Microsoft Entra ID issues no access token: {reason}") from None
        return token.token, float(token.expires_on)


def require_azure_identity(model_name: str) -> None:
    """Require the package that finds Azure's credentials, for a model without a key.

    Raises:
        ConfigError: it is not installed.
    """
    if importlib.util.find_spec("azure") is None or importlib.util.find_spec("azure.identity") is None:
        raise ConfigError(
            f"model '{model_name}' has no api_key, so it needs Microsoft Entra ID; azure-identity is not installed.",
            "Install it: pip install 'auditor[azure]'. Or add api_key to the model.",
        )


PLACEHOLDER_KEY = "none"
"""Key sent to a user's own server that needs none; otherwise litellm would send the provider's from the environment."""

OPENAI_PARAMS = frozenset(
    (
        "temperature",
        "top_p",
        "seed",
        "stop",
        "n",
        "max_tokens",
        "max_completion_tokens",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "response_format",
        "tools",
        "tool_choice",
        "reasoning_effort",
    )
)
"""Parameters of OpenAI's chat completions that litellm checks against its tables."""

STREAM_OPTIONS = "stream_options"
"""Parameter that asks for the token counts of a stream, which come in its last chunk."""

DEFAULT_CAPABILITY = Capability()
"""Nothing is dropped: a server is taken to accept all until it says otherwise."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how a model's requests are sent.

    Attributes:
        model: provider and model name for litellm.
        base_url: of the server; None for the provider's own.
        price: in US dollars per token; None if unknown.
        listed_price: where `price` stands in litellm's list, so that a request in another tier has its own; None if it
            is not from there, or all requests have this price.
        slots: requests that an embedded model's servers process at the same time; None for a provider.
        replicas: base URL and key of each of an embedded model's servers, which are interchangeable.
        api_key: the secret, or None; never stored or shown.
        stream: whether all answers are requested as streams.
        tokens: of Microsoft Entra ID, which replace the key; None for other models.
        secret_headers: values of the headers for which the config names an environment variable; never stored or shown.
        prefill: how the server is asked to continue a last message of the assistant.
    """

    model: str
    base_url: str | None
    price: TokenPrice | None
    listed_price: ListedPrice | None = None
    slots: int | None = None
    replicas: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_key: str | None = field(default=None, repr=False)
    stream: bool = False
    tokens: EntraIdTokens | None = field(default=None, repr=False, compare=False)
    secret_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    prefill: Prefill | None = None

    def request_kwargs(
        self, call: Call, timeout_s: float, capability: Capability = DEFAULT_CAPABILITY
    ) -> dict[str, Any]:
        """Keyword arguments of the litellm request for a call, with litellm's and the SDK's own retries turned off.

        Args:
            call: the call to send.
            timeout_s: time limit of each read from the connection, in seconds.
            capability: what the model's server accepts.
        """
        kwargs: dict[str, Any] = {
            "model": self.model,
            "messages": _request_messages(call, capability),
            "timeout": timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            **_sent_params(call, capability),
        }
        base_url, api_key = self.base_url, self.api_key
        if self.replicas:
            # The key is a hexadecimal hash, so its beginning spreads calls evenly over the servers, and a repeated call
            # reaches the same server.
            base_url, api_key = self.replicas[int(call.key[:8], 16) % len(self.replicas)]
        if base_url is not None:
            kwargs["api_base"] = base_url
        # A signed provider's requests carry a signature in place of a key.
        if api_key is None and base_url is not None and provider_of(self.model).used_credentials(api_key) is None:
            api_key = PLACEHOLDER_KEY
        if api_key is not None:
            kwargs["api_key"] = api_key
        if self.secret_headers:
            kwargs["extra_headers"] = {**kwargs.get("extra_headers", {}), **self.secret_headers}
        if call.prefill:
            kwargs = _add_prefill(kwargs, self.prefill)
        kwargs = add_reasoning(kwargs, call, capability)
        if call.measure is not None and call.measure.needs_completions_endpoint:
            return _to_completions_request(kwargs, call)
        if call.schema is not None:
            kwargs = self._add_structured_output(kwargs, call.schema, call.max_words or 0, capability)
        if self.stream or capability.stream:
            options = {} if STREAM_OPTIONS in capability.dropped_params else {STREAM_OPTIONS: {"include_usage": True}}
            kwargs = {**kwargs, "extra_body": {**kwargs.get("extra_body", {}), "stream": True, **options}}
        unlisted_params = self._unlisted_params(kwargs)
        return {**kwargs, "allowed_openai_params": unlisted_params} if unlisted_params else kwargs

    def _add_structured_output(
        self, kwargs: dict[str, Any], schema: str, max_words: int, capability: Capability
    ) -> dict[str, Any]:
        """Copy a request's arguments with those that request a structured answer in the capability's form.

        Args:
            kwargs: arguments of the request.
            schema: name of the structure, see `find_schema`.
            max_words: limit on each text of the structure.
            capability: what the model's server accepts.
        """
        form = capability.form or AnswerForm.JSON_SCHEMA
        if form is AnswerForm.TEXT:
            return kwargs
        if form is AnswerForm.JSON_OBJECT:
            return {**kwargs, "response_format": {"type": form.value}}
        requested_format = response_format(find_schema(schema), max_words)
        if self.slots is not None:
            requested_format = dict(enumerate_bounded_numbers(requested_format))
        elif capability.dropped_keywords:
            requested_format = dict(
                litellm_client.drop_schema_keywords(requested_format, set(capability.dropped_keywords))
            )
        if form is AnswerForm.TOOL:
            return {**kwargs, **to_required_tool(requested_format)}
        if litellm_client.replaces_json_schema(self.model):
            # litellm does not read the fields of `extra_body`.
            return {**kwargs, "extra_body": {**kwargs.get("extra_body", {}), "response_format": requested_format}}
        return {**kwargs, "response_format": requested_format}

    def _unlisted_params(self, kwargs: dict[str, Any]) -> list[str]:
        """Parameters that litellm's table denies to a server which takes them in OpenAI's format, as they are."""
        supported_params = litellm_client.supported_params(self.model)
        params = [name for name in kwargs if name in OPENAI_PARAMS and name not in supported_params]
        return params if params and litellm_client.speaks_openai(self.model) else []


def _request_messages(call: Call, capability: Capability) -> list[dict[str, str]]:
    """Messages of a request; in a form that does not carry the schema, the last one of the user describes it."""
    messages = [{"role": message.role, "content": message.content} for message in call.messages]
    if call.structure_instruction and capability.form is not None and capability.form.needs_instruction:
        last_question = next(message for message in reversed(messages) if message["role"] == "user")
        last_question["content"] += f"\n\n{call.structure_instruction}"
    return messages


def _add_prefill(kwargs: dict[str, Any], prefill: Prefill | None) -> dict[str, Any]:
    """Copy a request's arguments with what makes a server continue the last message."""
    if prefill is Prefill.MARKED:
        *messages, last = kwargs["messages"]
        return {**kwargs, "messages": [*messages, {**last, "prefix": True}]}
    if prefill is Prefill.TEMPLATE:
        switches = {"add_generation_prompt": False, "continue_final_message": True}
        return {**kwargs, "extra_body": {**switches, **kwargs.get("extra_body", {})}}
    return kwargs


def _sent_params(call: Call, capability: Capability) -> dict[str, Any]:
    """Parameters of a request: without those that the server refuses, and with its name of the token limit."""
    params = {name: value for name, value in call.params.items() if name not in capability.dropped_params}
    is_chat = call.measure is None or call.measure is LogprobMeasure.CHOICE
    if is_chat and "max_tokens" in params and capability.token_limit_param != "max_tokens":
        params[capability.token_limit_param] = params.pop("max_tokens")
    return params


def _to_completions_request(kwargs: dict[str, Any], call: Call) -> dict[str, Any]:
    """Turn chat arguments into arguments for the completions endpoint, with one prompt per continuation.

    Changes `kwargs` in place and returns it.
    """
    kwargs.pop("messages")
    kwargs["model"] = COMPLETIONS.model_id(split_model_id(kwargs["model"])[1])
    if "prompt_logprobs" in kwargs:  # not a parameter of OpenAI's, so its client accepts it only in `extra_body`
        kwargs["extra_body"] = {"prompt_logprobs": kwargs.pop("prompt_logprobs"), **kwargs.get("extra_body", {})}
    kwargs["prompt"] = [call.messages[0].content + continuation for continuation in call.continuations]
    return kwargs


def resolve_endpoint(section: ModelSection) -> Endpoint:
    """Resolve the endpoint of a model by its first key; an embedded model's servers are started if none are running.

    Raises:
        ConfigError: the key is not in the environment, or streams are not supported.
        ModelSetupError: an embedded model's weights or package are missing.
    """
    if section.provider is EMBEDDED:
        weights_name = section.unprefixed_model
        replicas = embedded_server.start_server_replicas(weights_name)
        return Endpoint(
            model=OPENAI.model_id(weights_name),
            # A replica is (base URL, API key); each request chooses its own replica.
            base_url=replicas[0][0],
            price=token_price(section),
            slots=embedded_server.SLOTS,
            replicas=replicas,
            prefill=section.prefill,
        )
    secret_headers = {
        name: resolve_secret(f"{ENV_PREFIX}{variable}") for name, variable in secret_header_variables(section).items()
    }
    api_key = resolve_secret(section.api_keys[0]) if section.api_keys else None
    tokens, credentials = None, section.used_credentials
    if credentials is not None:
        register_secrets(*(os.environ.get(variable) for variable in credentials.secret_variables))
    if credentials is not None and credentials.is_access_token:
        require_azure_identity(section.name)
        api_key, tokens = PLACEHOLDER_KEY, EntraIdTokens()  # litellm would take a key from the environment
    if section.stream and not litellm_client.speaks_openai(section.model):
        raise ConfigError(
            f"model '{section.name}': stream = true is for servers with OpenAI's protocol only.",
            "Remove stream, or reach the server by openai/MODEL with api_base.",
        )
    return Endpoint(
        model=section.model,
        base_url=section.api_base,
        price=token_price(section),
        listed_price=find_listed_price(section),
        api_key=api_key,
        stream=section.stream,
        tokens=tokens,
        secret_headers=secret_headers,
        prefill=section.prefill,
    )


def embedded_slots(model: str) -> int | None:
    """Number of requests that an embedded model's servers process at the same time; None for other models."""
    if provider_of(model) is not EMBEDDED:
        return None

    return embedded_server.SLOTS
