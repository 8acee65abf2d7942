"""What is known of providers before they are asked: the record of one, and the table of all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from auditor.config.credential_hosts import extract_host, is_private_address, strip_port
from auditor.domain.terms import split_model_id
from auditor.errors import did_you_mean

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
        unlisted_beginning: what the ids of models may begin with besides the prefix that litellm's list leaves out.
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
    unlisted_beginning: re.Pattern[str] | None = None
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


_SIGNED_NOTE = "Requests are signed with this machine's credentials. Allow this once: auditor trust CONFIG."
_NO_KEY_NOTE = "No key is needed. If your server requires one, add api_key and allow it: auditor trust CONFIG."
_ADDRESS_ADVICE = "Set it, for example to http://localhost:8000/v1."
_OWN_CREDENTIALS, _OWN_CONNECTIONS = "looks up credentials and servers itself", "opens its own connections"
_OPENAI_BATCHES = BatchApi("openai:OPENAI")
_EFFORT_ONLY_GEMINI = re.compile(r"gemini-(?!1|2)\d")
_CLAUDE_TO_4_5 = re.compile(r"claude-(?:instant|v?[23]|[a-z]+-4(?:-[0-5])?(?:-2025|@|-v1|$))")
"""Claude's models that continue the beginning of an answer: later ones refuse it (platform.claude.com, "What's new in
Claude 4.6")."""
_AZURE_EXAMPLE = "azure/gpt-4o"
_AWS = Credentials(
    "AWS_CREDENTIALS",
    "this machine's AWS credentials (environment, profile or role of the machine)",
    "amazonaws.com",
    ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"),
)
_GOOGLE = Credentials(
    "GOOGLE_CREDENTIALS",
    "this machine's Google credentials (credentials file or service account of the machine)",
    "googleapis.com",
    yields_to_key=False,
)
_ENTRA_ID = Credentials(
    "AZURE_CREDENTIALS",
    "this machine's Azure credentials (Microsoft Entra ID)",
    "openai.azure.com",
    ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_PASSWORD"),
    is_access_token=True,
)

EMBEDDED = Provider("embedded", prefill=Prefill.LAST_MESSAGE)
"""Models that run on this machine."""
REPLAY = Provider("replay")
"""Models whose answers come from a file."""
SIMULATED = Provider("simulated", prefill=Prefill.LAST_MESSAGE)
"""Simulated models; see `auditor.domain.personas`."""
COMPLETIONS = Provider("text-completion-openai", completions="always")
"""A completions endpoint; with other providers, a known chat model's prompt is sent as a chat message."""
OPENAI = Provider(
    "openai",
    "OpenAI",
    "gpt-4o",
    "OPENAI_API_KEY",
    hosts=("api.openai.com", ".api.openai.com"),
    has_model_limits=True,  # developers.openai.com/api/docs/guides/rate-limits: vary by model; some models share one
    completions="own_server",
    batches=_OPENAI_BATCHES,
    refused_keywords=LENGTH_BOUNDS,
    builds_directly=True,
)
"""The protocol of most servers."""

_OTHER_GUARDED = """
a2a ai21_chat anthropic_text apertis assemblyai baseten bytez cerebras charity_engine chutes cloudflare codestral
cognition cometapi compactifai cortecs darkbloom dashscope datarobot deepinfra docker_model_runner edenai empower
featherless_ai friendliai galadriel github helicone heroku hyperbolic inception lambda_ai langflow langgraph lemonade
libertai meta meta_llama minimax modelscope morph nadir nano-gpt nebius neosantara novita nscale nvidia_nim ollama
ovhcloud parasail perplexity pinstripes poe prism publicai qwen_ai_platform qwencloud ragflow reka replicate sail
sambanova scaleway scx-ai synthetic tencent tensormesh text-completion-codestral text-completion-inception v0
vercel_ai_gateway volcengine wandb xiaomi_mimo zai
"""
_CREDENTIAL_FINDERS = """
sagemaker sagemaker_chat sagemaker_nova bedrock_mantle vertex_ai_beta gdc github_copilot chatgpt databricks oci sap
watsonx watsonx_text gigachat
"""
_UNGUARDED = "aiohttp_openai amazon_nova custom huggingface maritalk nlp_cloud oobabooga petals"


def _local_server(prefix: str, short_name: str, title: str, example_model: str, place: str, **facts: Any) -> Provider:
    """A server of the user's own on this machine, at a port and path, that needs no key."""
    api_base = f"http://localhost:{place}"
    return Provider(prefix, title, example_model, short_name=short_name, api_base=api_base, notes=_NO_KEY_NOTE, **facts)


PROVIDERS: tuple[Provider, ...] = (
    OPENAI,
    Provider(
        "azure",
        "Azure OpenAI",
        "my-deployment",
        "AZURE_API_KEY",
        api_base=f"https://{ADDRESS_PLACEHOLDER}.openai.azure.com",
        params={"api_version": "2024-10-21"},
        notes="Use the deployment's name as the model. Allow the key for your resource: auditor trust CONFIG.",
        hosts=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
        credentials=_ENTRA_ID,
        has_model_limits=True,  # learn.microsoft.com/azure/ai-foundry/openai/quotas-limits: per region and model
        speaks_openai=True,
        refused_keywords=LENGTH_BOUNDS,
        builds_directly=True,
        base_model_example=_AZURE_EXAMPLE,
        telemetry_name="azure.ai.openai",
    ),
    Provider(
        "anthropic",
        "Anthropic",
        "claude-sonnet-4-5",
        "ANTHROPIC_API_KEY",
        hosts=("api.anthropic.com",),
        has_model_limits=True,  # docs.anthropic.com/api/rate-limits: applied separately for each model
        reasoning=Reasoning.BUDGET,
        prefill=Prefill.MARKED,
        prefill_models=_CLAUDE_TO_4_5,
        batches=BatchApi("anthropic:ANTHROPIC"),
        refused_keywords=LENGTH_BOUNDS | NUMBER_BOUNDS,
        builds_directly=True,
    ),
    Provider(
        "gemini",
        "Google Gemini",
        "gemini-2.5-flash",
        "GEMINI_API_KEY",
        hosts=("generativelanguage.googleapis.com",),
        has_model_limits=True,  # ai.google.dev/gemini-api/docs/rate-limits: per project, and by model
        reasoning=Reasoning.BUDGET,
        effort_only_models=_EFFORT_ONLY_GEMINI,
        batches=BatchApi("gemini:GEMINI"),
        builds_directly=True,
        has_candidates=True,
        telemetry_name="gcp.gemini",
    ),
    Provider(
        "vertex_ai",
        "Google Vertex AI",
        "gemini-2.5-flash",
        short_name="vertex",
        environment=("GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_PROJECT", "VERTEXAI_LOCATION"),
        notes=_SIGNED_NOTE,
        hosts=("googleapis.com",),
        service_hosts=re.compile(r"(?:[a-z0-9-]+-)?aiplatform\.(?:(?:us|eu)\.rep\.)?googleapis\.com"),
        credentials=_GOOGLE,
        has_model_limits=True,  # docs.cloud.google.com, quotas: requests per minute per project per base model
        reasoning=Reasoning.BUDGET,
        prefill=Prefill.MARKED,
        prefill_models=_CLAUDE_TO_4_5,
        effort_only_models=_EFFORT_ONLY_GEMINI,
        batches=BatchApi("vertex_ai:VertexBatches", models="gemini", needs_bucket=True),
        has_candidates=True,
        telemetry_name="gcp.vertex_ai",
    ),
    Provider(
        "bedrock",
        "Amazon Bedrock",
        "anthropic.claude-3-5-sonnet-20241022-v2:0",
        params={"aws_region_name": "us-east-1"},
        notes=_SIGNED_NOTE,
        hosts=("amazonaws.com",),
        service_hosts=re.compile(
            r"(?:vpce-[\w-]+\.)?bedrock(?:-[a-z]+)*\.[a-z]{2}(?:-[a-z]+)+-\d"
            r"(?:\.vpce)?\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
        ),
        credentials=_AWS,
        has_model_limits=True,  # docs.aws.amazon.com/bedrock/latest/userguide/quotas-runtime.html: per model and Region
        reasoning=Reasoning.BUDGET,
        prefill=Prefill.MARKED,
        prefill_models=_CLAUDE_TO_4_5,
        unlisted_beginning=re.compile(  # an interface; the resource name of a model, or of a profile for a region
            r"^bedrock/(?:converse/|invoke/)?"
            r"(?:arn:[\w-]+:bedrock:[^:]*:\d*:(?:foundation-model|inference-profile)/)?"
        ),
        telemetry_name="aws.bedrock",
    ),
    Provider(
        "mistral",
        "Mistral",
        "mistral-large-latest",
        "MISTRAL_API_KEY",
        hosts=("api.mistral.ai",),
        reasoning=Reasoning.UNTRANSLATED,
        prefill=Prefill.MARKED,
        prefill_models=re.compile(r"/(?!voxtral|labs-)"),
        builds_directly=True,
        telemetry_name="mistral_ai",
    ),
    Provider(
        "cohere_chat",
        "Cohere",
        "command-a-03-2025",
        "CO_API_KEY",
        short_name="cohere",
        hosts=("api.cohere.com", "api.cohere.ai"),
        has_model_limits=True,  # docs.cohere.com/docs/rate-limits: Chat API (per model)
        speaks_openai=False,
    ),
    Provider(
        "deepseek",
        "DeepSeek",
        "deepseek-v4-flash",
        "DEEPSEEK_API_KEY",
        hosts=("api.deepseek.com",),
        prefill=Prefill.MARKED,
        builds_directly=True,
    ),
    Provider("xai", "xAI", "grok-4", "XAI_API_KEY", hosts=("api.x.ai", ".api.x.ai"), telemetry_name="x_ai"),
    Provider(
        "groq",
        "Groq",
        "llama-3.3-70b-versatile",
        "GROQ_API_KEY",
        hosts=("api.groq.com",),
        batches=_OPENAI_BATCHES,
        replaces_schema=True,
        builds_directly=True,
    ),
    Provider(
        "together_ai",
        "Together AI",
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
        "TOGETHER_API_KEY",
        short_name="together",
        hosts=("api.together.xyz", "api.together.ai"),
        has_model_limits=True,  # docs.together.ai/docs/rate-limits: per organization and per model
        builds_directly=True,
    ),
    Provider(
        "fireworks_ai",
        "Fireworks AI",
        "accounts/fireworks/models/llama-v3p3-70b-instruct",
        "FIREWORKS_API_KEY",
        short_name="fireworks",
        hosts=("api.fireworks.ai",),
    ),
    Provider(
        "openrouter",
        "OpenRouter",
        "meta-llama/llama-3.3-70b-instruct",
        "OPENROUTER_API_KEY",
        hosts=("openrouter.ai",),
        reasoning=Reasoning.OBJECT,  # openrouter.ai/docs/use-cases/reasoning-tokens
        builds_directly=True,
    ),
    Provider(
        "openai",
        "Hugging Face endpoints",
        "meta-llama/Llama-3.3-70B-Instruct",
        "HF_TOKEN",
        short_name="huggingface",
        api_base="https://router.huggingface.co/v1",
        notes="For a dedicated endpoint, set its URL as api_base. Allow the token for it: auditor trust CONFIG.",
    ),
    _local_server("ollama_chat", "ollama", "Ollama", "llama3.2", "11434"),
    _local_server(
        "hosted_vllm",
        "vllm",
        "vLLM",
        "meta-llama/Llama-3.1-8B-Instruct",
        "8000/v1",
        address_advice=_ADDRESS_ADVICE,
        prefill=Prefill.TEMPLATE,
        reasoning=Reasoning.TEMPLATE,  # docs.vllm.ai/en/v0.26.0/features/reasoning_outputs: hybrid models
        completions="own_server",
        batches=_OPENAI_BATCHES,
        builds_directly=True,
    ),
    _local_server("openai", "llamacpp", "llama.cpp server", "local", "8080/v1"),
    _local_server(
        "lm_studio",
        "lmstudio",
        "LM Studio",
        "qwen2.5-7b-instruct",
        "1234/v1",
        address_advice=_ADDRESS_ADVICE,
        completions="own_server",
    ),
    _local_server("openai", "sglang", "SGLang", "meta-llama/Llama-3.1-8B-Instruct", "30000/v1"),
    _local_server("litellm_proxy", "litellm", "litellm proxy", "my-model", "4000/v1", address_advice=_ADDRESS_ADVICE),
    Provider("ai21", address_advice="Write ai21_chat/MODEL."),  # litellm knows the server of some of its models only
    Provider(
        "azure_ai",
        hosts=(".services.ai.azure.com", ".inference.ai.azure.com", ".models.ai.azure.com"),
        credentials=_ENTRA_ID,
        reasoning=Reasoning.BUDGET,
        speaks_openai=True,
        base_model_example=_AZURE_EXAMPLE,
        telemetry_name="azure.ai.inference",
    ),
    Provider("azure_text", base_model_example=_AZURE_EXAMPLE),
    Provider("cohere", speaks_openai=False),
    Provider("custom_openai", address_advice=_ADDRESS_ADVICE, completions="own_server"),
    Provider("llamafile", completions="own_server"),
    Provider("moonshot", telemetry_name="moonshot_ai"),
    Provider("snowflake", speaks_openai=False),
    COMPLETIONS,
    EMBEDDED,
    REPLAY,
    SIMULATED,
    *map(Provider, _OTHER_GUARDED.split()),
    *(Provider(prefix, refusal=_OWN_CREDENTIALS) for prefix in _CREDENTIAL_FINDERS.split()),
    *(Provider(prefix, refusal=_OWN_CONNECTIONS) for prefix in _UNGUARDED.split()),
)
PROVIDER_BY_NAME: Mapping[str, Provider] = MappingProxyType({row.name: row for row in PROVIDERS if row.name})
"""Those that `auditor init` offers."""
PROVIDER_BY_PREFIX: Mapping[str, Provider] = MappingProxyType({row.prefix: row for row in reversed(PROVIDERS)})


def provider_of(model: str) -> Provider:
    """The provider of a model's id, such as `openai/gpt-4o`, or of a prefix; one without quirks if it is not known."""
    prefix, _ = split_model_id(model)
    return PROVIDER_BY_PREFIX.get(prefix) or Provider(prefix)


def unsupported_reason(provider: Provider) -> str | None:
    """Reason why models of a provider are refused; None if the provider is supported."""
    if provider.refusal:
        return f"the provider '{provider.prefix}' {provider.refusal}, so auditor cannot control where keys are sent."
    if provider.prefix in PROVIDER_BY_PREFIX:
        return None
    hint = did_you_mean(provider.prefix, sorted(row.prefix for row in PROVIDERS if not row.refusal), "")
    return f"auditor does not support the provider '{provider.prefix}'.{f' {hint}' if hint else ''}"


def describe_owner(host: str, provider: Provider) -> str:
    """Whose server gets a key: "a server of OpenAI", "this machine or your network", or "NOT a server of OpenAI".

    Args:
        host: host and port, as `extract_host` returns them.
        provider: of the model.
    """
    name, title = strip_port(host), provider.title or provider.prefix
    if provider.owns_host(name):
        return f"a server of {title}"
    if is_private_address(name):
        return "this machine or your network"
    known_titles = (
        row.title
        for row in PROVIDERS
        if row.api_base and row.prefix == provider.prefix and extract_host(row.api_base) == name
    )
    return next((f"a server of {known_title}" for known_title in known_titles), f"NOT a server of {title}")
