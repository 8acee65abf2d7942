"""Providers of litellm whose requests auditor can control: which servers get keys and prompts, and how much they send.

A provider is allowed if all its requests go through the guarded transport, which
`tests/config/test_supported_providers.py` checks for each. All others are refused, also new ones of later versions of
litellm.
"""

from __future__ import annotations

from auditor.config.model_section import EMBEDDED_PREFIX, REPLAY_PREFIX, SIMULATED_PREFIX
from auditor.errors import did_you_mean

_GUARDED_NAMES = """
a2a ai21 ai21_chat anthropic anthropic_text apertis assemblyai azure azure_ai azure_text baseten bedrock bytez
cerebras charity_engine chutes cloudflare codestral cognition cohere cohere_chat cometapi compactifai cortecs
custom_openai darkbloom dashscope datarobot deepinfra deepseek docker_model_runner edenai empower featherless_ai
fireworks_ai friendliai galadriel gemini github groq helicone heroku hosted_vllm hyperbolic inception lambda_ai
langflow langgraph lemonade libertai litellm_proxy llamafile lm_studio meta meta_llama minimax mistral modelscope
moonshot morph nadir nano-gpt nebius neosantara novita nscale nvidia_nim ollama ollama_chat openai openrouter ovhcloud
parasail perplexity pinstripes poe prism publicai qwen_ai_platform qwencloud ragflow reka replicate sail sambanova
scaleway scx-ai snowflake synthetic tencent tensormesh text-completion-codestral text-completion-inception
text-completion-openai together_ai v0 vercel_ai_gateway vertex_ai volcengine wandb xai xiaomi_mimo zai
"""
GUARDED_PROVIDERS = frozenset(_GUARDED_NAMES.split())
"""Providers whose requests all go through the guarded transport."""

PROVIDERS_WITHOUT_ADDRESS = frozenset(("ai21", "custom_openai", "hosted_vllm", "litellm_proxy", "lm_studio"))
"""Providers without a known address: litellm would send prompts and key to OpenAI if `api_base` is not set. Of `ai21`
it knows the address of some models only; `ai21_chat` has it for all."""

SELF_AUTHENTICATING_PROVIDERS = frozenset(
    (
        *("sagemaker", "sagemaker_chat", "sagemaker_nova", "bedrock_mantle", "vertex_ai_beta", "gdc"),
        *("github_copilot", "chatgpt", "databricks", "oci", "sap", "watsonx", "watsonx_text", "gigachat"),
    )
)
"""Providers for which litellm looks up credentials itself, bypassing the checks of this package."""

UNGUARDED_PROVIDERS = frozenset(
    ("aiohttp_openai", "amazon_nova", "custom", "huggingface", "maritalk", "nlp_cloud", "oobabooga", "petals")
)
"""Providers for which litellm opens connections that bypass the guarded transport."""


TRANSPORT_GUARD_PHRASE = "auditor cannot control where keys are sent"


def unsupported_reason(provider: str) -> str | None:
    """Reason why models of a provider are refused; None if the provider is supported.

    Args:
        provider: the part of a model's id before the first slash.
    """
    if provider in GUARDED_PROVIDERS or f"{provider}/" in (EMBEDDED_PREFIX, REPLAY_PREFIX, SIMULATED_PREFIX):
        return None
    if provider in SELF_AUTHENTICATING_PROVIDERS:
        return f"the provider '{provider}' looks up credentials and servers itself, so {TRANSPORT_GUARD_PHRASE}."
    if provider in UNGUARDED_PROVIDERS:
        return f"the provider '{provider}' opens its own connections, so {TRANSPORT_GUARD_PHRASE}."
    hint = did_you_mean(provider, sorted(GUARDED_PROVIDERS), "")
    return f"auditor does not support the provider '{provider}'.{f' {hint}' if hint else ''}"
