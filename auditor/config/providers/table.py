"""The table of providers: one record for each, with one line for each quirk.

A provider of litellm is supported if all its requests go through the guarded transport, which
`tests/config/providers/test_table.py` checks for each. All others are refused, also new ones of later versions of
litellm. What servers accept is found out at first contact. How they word refusals and finish reasons is in
`models/refused_features.toml` and `models/finish_reasons.py`, for all providers together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from auditor.config.credential_bindings import extract_host, is_private_address, strip_port
from auditor.config.providers.record import (
    ADDRESS_PLACEHOLDER,
    LENGTH_BOUNDS,
    NUMBER_BOUNDS,
    BatchApi,
    Credentials,
    Prefill,
    Provider,
    Reasoning,
)
from auditor.domain.model_families import split_model_id
from auditor.errors import did_you_mean

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
