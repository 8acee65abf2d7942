"""The one door to litellm: opened on first use, with its look-ups, telemetry and retries off."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from auditor import bootstrap

# A schema keyword that a provider's strict mode refuses; the others get the bound, since small models need it.
REFUSED_KEYWORDS = {
    "openai": {"maxLength", "minLength"},
    "azure": {"maxLength", "minLength"},
    "anthropic": {"maxLength", "minLength", "minimum", "maximum"},
}


@functools.cache
def litellm() -> ModuleType:
    """The litellm module, imported with its network look-ups off and its retries and chatter silenced."""
    bootstrap.prepare()
    import litellm as module

    bootstrap.quiet()
    module.suppress_debug_info = True
    module.telemetry = False
    module.drop_params = False
    return module


@functools.cache
def supported_params(model: str) -> frozenset[str]:
    """Parameters that the model's provider takes, in OpenAI's names; empty when litellm does not know the provider."""
    return frozenset(litellm().get_supported_openai_params(model=model) or ())


@functools.cache
def listed_price(model: str) -> tuple[float, float] | None:
    """US dollars per input and per output token, from litellm's own list; None when it has none."""
    entry = litellm().model_cost.get(model) or litellm().model_cost.get(model.split("/", 1)[-1])
    if not entry or entry.get("input_cost_per_token") is None or entry.get("output_cost_per_token") is None:
        return None
    return float(entry["input_cost_per_token"]), float(entry["output_cost_per_token"])


def without_keywords(schema: Any, refused: set[str]) -> Any:
    """A JSON schema without some of its keywords, at every depth."""
    if isinstance(schema, dict):
        return {k: without_keywords(v, refused) for k, v in schema.items() if k not in refused}
    return [without_keywords(v, refused) for v in schema] if isinstance(schema, list) else schema


def open_client() -> None:
    """Give litellm the HTTP client of this run."""
    from auditor.models.transport import client

    vars(litellm())["aclient_session"] = client()


async def close_clients() -> None:
    """Close litellm's HTTP clients of this event loop, and forget them: it would hand out closed ones."""
    session = vars(litellm())["aclient_session"]
    if session is not None:
        await session.aclose()
    vars(litellm())["aclient_session"] = None
    await litellm().close_litellm_async_clients()
    litellm().in_memory_llm_clients_cache.flush_cache()
