"""The record of a provider: everything that the program knows about one of litellm's providers before it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal, NamedTuple

ADDRESS_PLACEHOLDER = "RESOURCE"
"""Part of an address that each user replaces by a name of their own."""
LENGTH_BOUNDS, NUMBER_BOUNDS = frozenset({"maxLength", "minLength"}), frozenset({"maximum", "minimum"})
"""Keywords of a JSON schema that small models need. A server that refuses one of a pair refuses the other too: OpenAI,
Anthropic and Bedrock document them together, and each further refusal costs a request."""


class Credentials(NamedTuple):
    """Credentials of this machine that a provider's requests carry without a key that the config names.

    Naming such a model in a config is enough to use them. So the user must have allowed it, as for a key.

    Attributes:
        name: in the trust file.
        description: for people.
        host: gets them, unless a config names another one.
        secret_variables: environment variables whose values are secret; a server or an error might repeat them.
        yields_to_key: whether a key that the config names is used in their place.
        is_access_token: whether an access token is fetched with them, and sent as a key is; if not, they sign requests.
    """

    name: str
    description: str
    host: str
    secret_variables: tuple[str, ...] = ()
    yields_to_key: bool = True
    is_access_token: bool = False


class BatchApi(NamedTuple):
    """A provider's batch API.

    Attributes:
        place: "module:attribute" in the package `auditor.models.batches`.
        models: beginning of the names of models that have it.
        needs_bucket: whether batches are files in a bucket of the user's, so that `place` is made with one.
    """

    place: str
    models: str = ""
    needs_bucket: bool = False


class Reasoning(Enum):
    """How a provider is asked for the reasoning that a config sets."""

    EFFORT = auto()
    """An effort, which litellm translates if its table lists the model, and which is sent as it is if not."""
    BUDGET = auto()
    """An effort, and a number of tokens, which litellm translates from Anthropic's `thinking`."""
    OBJECT = auto()
    """A number of tokens or else an effort, in an object `reasoning`."""
    UNTRANSLATED = auto()
    """An effort, as it is: litellm replaces those that its table does not list, and adds a prompt of its own."""
    TEMPLATE = auto()
    """An effort; `none` is a switch of the model's template too."""


class Prefill(Enum):
    """How a provider is asked to continue a last message of the assistant, the beginning of an answer."""

    LAST_MESSAGE = auto()
    """It continues such a message as it is."""
    MARKED = auto()
    """The message is marked as a prefix; litellm returns it again for some providers."""
    TEMPLATE = auto()
    """By two parameters of the chat template, as in vLLM; servers of llama.cpp and SGLang know them too."""


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """What is known of a provider. A default says what holds for most.

    Attributes:
        prefix: litellm's name, the part of a model's id before the first slash. The first record of a prefix says how
            requests are made and read; others with the same prefix are further servers that speak its protocol.
        title: for people; empty if `auditor init` does not offer it.
        example_model: a model's name after the prefix.
        key_variable: environment variable that holds the key; None if no key is sent.
        short_name: for `auditor init --provider`, if it is not the prefix.
        environment: environment variables that must be set besides.
        api_base: base URL that the config names; with `ADDRESS_PLACEHOLDER` if each user has an address of their
            own; None for the provider's own servers, which litellm knows.
        params: entries of the table `params` that each model needs.
        notes: what else a user must know; empty if nothing.
        hosts: its servers; one that begins with a dot stands for all names with this end.
        service_hosts: its servers among those of a cloud, where customers have servers under the same domain.
        credentials: of this machine, in place of a key.
        refusal: why auditor cannot control where keys are sent, so that its models are refused; empty if they are not.
        address_advice: what to do without `api_base` if litellm knows no server and would send prompts and key to
            OpenAI; empty if it knows one.
        has_model_limits: whether it documents rate limits of each model (read in November 2026).
        reasoning: how reasoning is requested.
        prefill: how it is asked to continue the beginning of an answer; None if it does not, or is not known to.
        prefill_models: its models that do; None for all.
        effort_only_models: ids of models that refuse a number of tokens beside an effort.
        completions: whether it has a completions endpoint (`always`), or may have one besides the chat endpoint if the
            server is the user's own (`own_server`).
        batches: its batch API.
        speaks_openai: whether requests have OpenAI's format; None if litellm's class for the provider is derived from
            OpenAI's exactly if they have.
        refused_keywords: of a JSON schema, in its strict mode. Others are sent, since small models need the bounds.
        replaces_schema: whether litellm sends a tool in place of a JSON schema if its table does not list the model.
        builds_directly: whether litellm builds its requests without waiting for a file, a token or a server, if it is
            given a key.
        has_candidates: whether responses have Gemini's format.
        base_model_example: a listed model, if models have the names of customers' deployments; else empty.
        telemetry_name: in OpenTelemetry's conventions; empty if it is the prefix.
    """

    prefix: str
    title: str = ""
    example_model: str = ""
    key_variable: str | None = None
    short_name: str = ""
    environment: tuple[str, ...] = ()
    api_base: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    notes: str = ""
    hosts: tuple[str, ...] = ()
    service_hosts: re.Pattern[str] | None = None
    credentials: Credentials | None = None
    refusal: str = ""
    address_advice: str = ""
    has_model_limits: bool = False
    reasoning: Reasoning = Reasoning.EFFORT
    prefill: Prefill | None = None
    prefill_models: re.Pattern[str] | None = None
    effort_only_models: re.Pattern[str] | None = None
    completions: Literal["always", "own_server"] | None = None
    batches: BatchApi | None = None
    speaks_openai: bool | None = None
    refused_keywords: frozenset[str] = frozenset()
    replaces_schema: bool = False
    builds_directly: bool = False
    has_candidates: bool = False
    base_model_example: str = ""
    telemetry_name: str = ""

    @property
    def name(self) -> str:
        """Its name for `auditor init --provider`; empty if it is not offered there."""
        return self.short_name or (self.prefix if self.title else "")

    @property
    def needs_address(self) -> bool:
        """Whether each user has an address of their own, so that `api_base` is only an example."""
        return ADDRESS_PLACEHOLDER in (self.api_base or "")

    def owns_server(self, api_base: str | None) -> bool:
        """Whether requests go to the provider: with a base URL, to another server that speaks its protocol."""
        return api_base is None or self.needs_address

    @property
    def is_local(self) -> bool:
        """Whether it is a server of the user's own on this machine."""
        return self.api_base is not None and self.api_base.startswith("http://localhost")

    @property
    def is_signed(self) -> bool:
        """Whether its requests are signed with credentials of this machine."""
        return self.credentials is not None and not self.credentials.is_access_token

    def model_id(self, model: str) -> str:
        """The model as a config names it: with litellm's prefix, which may already be there."""
        return model if model.startswith(f"{self.prefix}/") else f"{self.prefix}/{model}"

    def used_credentials(self, api_key: str | Sequence[str] | None) -> Credentials | None:
        """Credentials of this machine that requests carry; None if they carry none.

        Args:
            api_key: the config's reference to a key, or to several.
        """
        is_replaced = api_key is not None and self.credentials is not None and self.credentials.yields_to_key
        return None if is_replaced else self.credentials

    def owns_host(self, host: str) -> bool:
        """Whether a host, without a port, is one of the provider's own servers."""
        if self.service_hosts is not None and self.service_hosts.fullmatch(host):
            return True
        return any(host == name or (name.startswith(".") and host.endswith(name)) for name in self.hosts)
