"""Common providers: litellm's prefix, the variable that holds the key, the address; for `auditor init` and the docs.

Data only. Whether a provider is supported at all is decided by `supported_providers`, and what its servers accept is
found out at first contact.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

ADDRESS_PLACEHOLDER = "RESOURCE"
"""Part of an address that each user replaces by a name of their own."""
_NO_PARAMS: Mapping[str, str] = MappingProxyType({})


class ProviderSetup(NamedTuple):
    """How a config names the models of one provider.

    Attributes:
        name: for `auditor init --provider`.
        title: for people.
        prefix: litellm's provider, the part of a model's id before the first slash.
        example_model: a model's name after the prefix.
        key_variable: environment variable that holds the key; None if no key is sent.
        environment: environment variables that must be set besides.
        api_base: base URL that the config names; with `ADDRESS_PLACEHOLDER` if each user has an address of their
            own; None for the provider's own servers, which litellm knows.
        params: entries of the table `params` that each model needs.
        notes: what else a user must know; empty if nothing.
    """

    name: str
    title: str
    prefix: str
    example_model: str
    key_variable: str | None = None
    environment: tuple[str, ...] = ()
    api_base: str | None = None
    params: Mapping[str, str] = _NO_PARAMS
    notes: str = ""

    @property
    def needs_address(self) -> bool:
        """Whether each user has an address of their own, so that `api_base` is only an example."""
        return ADDRESS_PLACEHOLDER in (self.api_base or "")

    @property
    def is_local(self) -> bool:
        """Whether it is a server of the user's own on this machine."""
        return self.api_base is not None and self.api_base.startswith("http://localhost")

    def model_id(self, model: str) -> str:
        """The model as a config names it: with litellm's prefix, which may already be there."""
        return model if model.startswith(f"{self.prefix}/") else f"{self.prefix}/{model}"


_SIGNED_NOTE = "Requests are signed with this machine's credentials. Allow this once: auditor trust CONFIG."
_NO_KEY_NOTE = "No key is needed. If your server requires one, add api_key and allow it: auditor trust CONFIG."

PROVIDERS: tuple[ProviderSetup, ...] = (
    ProviderSetup("openai", "OpenAI", "openai", "gpt-4o", "OPENAI_API_KEY"),
    ProviderSetup(
        "azure",
        "Azure OpenAI",
        "azure",
        "my-deployment",
        "AZURE_API_KEY",
        api_base=f"https://{ADDRESS_PLACEHOLDER}.openai.azure.com",
        params=MappingProxyType({"api_version": "2024-10-21"}),
        notes="Use the deployment's name as the model. Allow the key for your resource: auditor trust CONFIG.",
    ),
    ProviderSetup("anthropic", "Anthropic", "anthropic", "claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
    ProviderSetup("gemini", "Google Gemini", "gemini", "gemini-2.5-flash", "GEMINI_API_KEY"),
    ProviderSetup(
        "vertex",
        "Google Vertex AI",
        "vertex_ai",
        "gemini-2.5-flash",
        environment=("GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_PROJECT", "VERTEXAI_LOCATION"),
        notes=_SIGNED_NOTE,
    ),
    ProviderSetup(
        "bedrock",
        "Amazon Bedrock",
        "bedrock",
        "anthropic.claude-3-5-sonnet-20241022-v2:0",
        params=MappingProxyType({"aws_region_name": "us-east-1"}),
        notes=_SIGNED_NOTE,
    ),
    ProviderSetup("mistral", "Mistral", "mistral", "mistral-large-latest", "MISTRAL_API_KEY"),
    ProviderSetup("cohere", "Cohere", "cohere_chat", "command-a-03-2025", "CO_API_KEY"),
    ProviderSetup("deepseek", "DeepSeek", "deepseek", "deepseek-v4-flash", "DEEPSEEK_API_KEY"),
    ProviderSetup("xai", "xAI", "xai", "grok-4", "XAI_API_KEY"),
    ProviderSetup("groq", "Groq", "groq", "llama-3.3-70b-versatile", "GROQ_API_KEY"),
    ProviderSetup(
        "together", "Together AI", "together_ai", "meta-llama/Llama-3.3-70B-Instruct-Turbo", "TOGETHER_API_KEY"
    ),
    ProviderSetup(
        "fireworks",
        "Fireworks AI",
        "fireworks_ai",
        "accounts/fireworks/models/llama-v3p3-70b-instruct",
        "FIREWORKS_API_KEY",
    ),
    ProviderSetup("openrouter", "OpenRouter", "openrouter", "meta-llama/llama-3.3-70b-instruct", "OPENROUTER_API_KEY"),
    ProviderSetup(
        "huggingface",
        "Hugging Face endpoints",
        "openai",
        "meta-llama/Llama-3.3-70B-Instruct",
        "HF_TOKEN",
        api_base="https://router.huggingface.co/v1",
        notes="For a dedicated endpoint, set its URL as api_base. Allow the token for it: auditor trust CONFIG.",
    ),
    ProviderSetup("ollama", "Ollama", "ollama_chat", "llama3.2", api_base="http://localhost:11434", notes=_NO_KEY_NOTE),
    ProviderSetup(
        "vllm",
        "vLLM",
        "hosted_vllm",
        "meta-llama/Llama-3.1-8B-Instruct",
        api_base="http://localhost:8000/v1",
        notes=_NO_KEY_NOTE,
    ),
    ProviderSetup(
        "llamacpp", "llama.cpp server", "openai", "local", api_base="http://localhost:8080/v1", notes=_NO_KEY_NOTE
    ),
    ProviderSetup(
        "lmstudio",
        "LM Studio",
        "lm_studio",
        "qwen2.5-7b-instruct",
        api_base="http://localhost:1234/v1",
        notes=_NO_KEY_NOTE,
    ),
    ProviderSetup(
        "sglang",
        "SGLang",
        "openai",
        "meta-llama/Llama-3.1-8B-Instruct",
        api_base="http://localhost:30000/v1",
        notes=_NO_KEY_NOTE,
    ),
    ProviderSetup(
        "litellm",
        "litellm proxy",
        "litellm_proxy",
        "my-model",
        api_base="http://localhost:4000/v1",
        notes=_NO_KEY_NOTE,
    ),
)
PROVIDER_BY_NAME: Mapping[str, ProviderSetup] = MappingProxyType({provider.name: provider for provider in PROVIDERS})
