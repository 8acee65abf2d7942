"""The only importer of litellm: imported on first use, with its network look-ups, telemetry and retries turned off."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib.util
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from auditor import bootstrap
from auditor.config import EMBEDDED, REPLAY, SIMULATED, ModelSection
from auditor.config.providers import provider_of
from auditor.domain.terms import split_model_id
from auditor.models import litellm_client
from auditor.models.priced_params import LISTED_TIERS, has_fee, iter_params, read_tier

ROUTING_PARAMS = frozenset({"base_url", "model", "messages", "timeout", "stream", "deployment_id"})
CREDENTIAL_PARAM_PREFIXES = ("aws_", "vertex_", "azure_", "s3_", "use_")
"""Prefixes of parameters by which litellm is given accounts, tokens and servers."""
ALLOWED_ROUTING_PARAMS = frozenset({"api_version", "aws_region_name"})
"""Parameters that a config may set although they match the rules above or are litellm's own.

litellm checks their values, and they cannot lead to a server of another owner.
"""

MAX_ERROR_TEXT_CHARS = 65_536
"""Characters of an error's text that litellm is given to search."""


@functools.cache
def load_litellm() -> ModuleType:
    """Import litellm with its network look-ups, telemetry and log output turned off, and return the module."""
    bootstrap.prepare_environment()
    import litellm as module

    bootstrap.silence_libraries()
    module.suppress_debug_info = True
    module.telemetry = False
    module.drop_params = False
    _disable_litellm_redaction()
    gc.freeze()  # excludes 300,000 permanent objects from garbage collection, which they slow by 0.1 s each time
    return module


def _disable_litellm_redaction() -> None:
    """Turn off litellm's search for secrets, in case litellm was imported before `bootstrap.prepare_environment`.

    Its time grows with the cube of the text's length: 16 kB of `-----BEGIN PRIVATE KEY-----` block the event loop for
    14 s. Texts are redacted by `auditor.redaction` instead.
    """
    from litellm import _logging
    from litellm.litellm_core_utils import exception_mapping_utils

    for module in (_logging, exception_mapping_utils):
        vars(module)["_ENABLE_SECRET_REDACTION"] = False


@functools.cache
def supported_params(model: str) -> frozenset[str]:
    """Parameters that the model's provider accepts, by OpenAI's names; empty if litellm does not know the provider."""
    return frozenset(load_litellm().get_supported_openai_params(model=model) or ())


@functools.cache
def translates_param(model: str, param: str) -> bool:
    """Whether litellm takes a parameter, by OpenAI's name, for this model, and sends it as the provider names it.

    Unlike `supported_params`, which takes the provider's prefix for a part of an OpenAI model's name.
    """
    litellm = load_litellm()
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
    except litellm.BadRequestError:
        return False
    return param in (litellm.get_supported_openai_params(model=name, custom_llm_provider=provider) or ())


@functools.cache
def speaks_openai(model: str) -> bool:
    """Whether litellm sends a model's requests in OpenAI's format, so that any of its parameters can be passed on."""
    litellm = load_litellm()
    from litellm.llms.openai.chat.gpt_transformation import OpenAIGPTConfig

    try:
        name, provider, *_ = litellm.get_llm_provider(model)
        chat_config = litellm.ProviderConfigManager.get_provider_chat_config(name, litellm.LlmProviders(provider))
    except (litellm.BadRequestError, ValueError):
        return False
    known = provider_of(provider).speaks_openai
    return isinstance(chat_config, OpenAIGPTConfig) if known is None else known


@functools.cache
def replaces_json_schema(model: str) -> bool:
    """Whether litellm sends a tool in place of a JSON schema, since its table has no entry for the model."""
    provider, name = split_model_id(model)
    return provider_of(model).replaces_schema and not load_litellm().supports_response_schema(name, provider)


def is_routing_param(param_name: str) -> bool:
    """Whether a parameter is not for the model, but sets litellm's server, credentials or retries."""
    if param_name in ALLOWED_ROUTING_PARAMS:
        return False
    if param_name in ROUTING_PARAMS or param_name.startswith(CREDENTIAL_PARAM_PREFIXES):
        return True
    load_litellm()
    from litellm.types.utils import is_litellm_owned_kwarg

    return bool(is_litellm_owned_kwarg(param_name))


BATCH_TIER = "batch"
"""The tier of requests in a batch, whose price is a share of the listed one whatever tier the provider names."""


class ListedPrice(NamedTuple):
    """Which price in litellm's list holds for a model: the entry's name, and the tier; None for the usual tier."""

    model: str
    tier: str | None


class TokenPrice(NamedTuple):
    """Price in US dollars per token.

    Attributes:
        prompt_usd, completion_usd: of the prompt and of the completion.
        cached_usd: of prompt tokens in the provider's cache.
        cache_write_fee_usd: what prompt tokens that are written to the cache cost beside the price of the prompt.
        hour_write_fee_usd: the same of those that are written to the cache for an hour.
    """

    prompt_usd: float
    completion_usd: float
    cached_usd: float
    cache_write_fee_usd: float = 0.0
    hour_write_fee_usd: float = 0.0

    def request_cost(
        self,
        prompt_tokens: int,
        completion_tokens: int,
        cached_tokens: int,
        written_tokens: int = 0,
        hour_tokens: int = 0,
    ) -> float:
        """Cost of one request in US dollars.

        `cached_tokens` and `written_tokens` are parts of `prompt_tokens`; `hour_tokens`, written to the cache for an
        hour, of `written_tokens`.
        """
        return (
            (prompt_tokens - cached_tokens) * self.prompt_usd
            + cached_tokens * self.cached_usd
            + (written_tokens - hour_tokens) * self.cache_write_fee_usd
            + hour_tokens * self.hour_write_fee_usd
            + completion_tokens * self.completion_usd
        )

    def highest_write_fee(self, params: Mapping[str, Any]) -> float:
        """Highest fee in US dollars per prompt token written to the cache in a request with these parameters."""
        asks_for_hour = any(path[-1] == "ttl" and value == "1h" for path, value in iter_params(params))
        return max(self.cache_write_fee_usd, self.hour_write_fee_usd) if asks_for_hour else self.cache_write_fee_usd

    def scaled_by(self, factor: float) -> TokenPrice:
        """The price times a factor, such as 0.5 for a batch."""
        return TokenPrice(*(usd * factor for usd in self))


PRICE_LIST_FILE = "model_prices_and_context_window_backup.json"
"""The file in litellm's package from which it takes `litellm.model_cost`."""


@functools.cache
def _read_price_list() -> dict[str, dict[str, Any]]:
    """litellm's list of prices and limits by model, from the file of its package: importing litellm takes 2 s."""
    spec = importlib.util.find_spec("litellm")
    try:
        entries: dict[str, dict[str, Any]] = json.loads(Path(spec.origin).with_name(PRICE_LIST_FILE).read_bytes())  # type: ignore[arg-type, union-attr]
    except (OSError, ValueError):  # a version of litellm that names the file otherwise
        entries = load_litellm().model_cost
    # An alias takes what it does not say itself from another entry, as in litellm's own reading.
    return {model: _resolve_alias(entry, entries) for model, entry in entries.items()}


def _resolve_alias(entry: dict[str, Any], entries: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """An entry of the list with what its alias takes from another one."""
    if "alias_of" not in entry:
        return entry
    changes = {name: field for name, field in entry.items() if name != "alias_of"}
    return {**entries.get(entry["alias_of"], {}), **changes}


def _listed_entry(model: str) -> dict[str, Any]:
    """The entry of a model in litellm's list, with or without its provider; empty if it is not listed."""
    price_list = load_litellm().model_cost if load_litellm.cache_info().currsize else _read_price_list()
    provider = provider_of(model)
    if provider.unlisted_beginning is not None:
        model = provider.unlisted_beginning.sub(f"{provider.prefix}/", model)
    return price_list.get(model) or price_list.get(split_model_id(model)[1]) or {}


def _is_of_provider(entry: dict[str, Any], model: str) -> bool:
    """Whether an entry of the list is that of a model's own provider, which may have a longer or shorter name there.

    The model `openrouter/deepseek/x` is not `deepseek/x`: DeepSeek's own price is another one.
    """
    prefix, name = split_model_id(model)
    listed_prefix = str(entry.get("litellm_provider") or prefix)
    return prefix == name or listed_prefix.startswith(prefix) or prefix.startswith(listed_prefix)


SEARCHING_MODELS = re.compile(r"(?:^|[/-])(?:sonar|search|deep-research|online)(?:[/-]|$)")
"""Names of models that search the web by themselves, for a fee for each search."""


@functools.cache
def listed_token_price(model: str, tier: str | None = None) -> TokenPrice | None:
    """Price of a model's tokens in litellm's list; None if its provider's is not listed, or if there is more to pay.

    That is a fee for each request or search, or another price of hidden reasoning. Cached tokens cost as much as other
    prompt tokens if the list has no price for them.

    Args:
        tier: in which requests are processed, such as `flex`; None for the usual one.
    """
    entry, suffix = _listed_entry(model), f"_{tier}" if tier else ""
    prompt_usd, completion_usd = (entry.get(f"{side}_cost_per_token{suffix}") for side in ("input", "output"))
    if prompt_usd is None or completion_usd is None or entry.get("input_cost_per_request"):
        return None
    has_reasoning_price = entry.get("output_cost_per_reasoning_token") not in (None, entry["output_cost_per_token"])
    if has_reasoning_price or SEARCHING_MODELS.search(model) or not _is_of_provider(entry, model):
        return None
    # Of prompt tokens that are read from the cache, and that are written to it.
    read_usd, write_usd = (entry.get(f"cache_{kind}_input_token_cost{suffix}") for kind in ("read", "creation"))
    # Unlisted, an hour costs twice the prompt, as at Anthropic and Bedrock (platform.claude.com, "Prompt caching").
    hour_usd = entry.get(f"cache_creation_input_token_cost_above_1hr{suffix}") or 2 * prompt_usd
    return TokenPrice(
        float(prompt_usd),
        float(completion_usd),
        float(prompt_usd if read_usd is None else read_usd),
        max(0.0, (write_usd or 0.0) - prompt_usd),
        max(0.0, hour_usd - prompt_usd),
    )


@functools.cache
def listed_max_output(model: str) -> int | None:
    """Maximum number of tokens in one answer of a model, from litellm's list; None if it is not listed."""
    entry = _listed_entry(model)
    max_tokens = entry.get("max_output_tokens") or entry.get("max_tokens")
    return max_tokens if isinstance(max_tokens, int) and max_tokens > 0 else None


def drop_schema_keywords(schema: Any, keywords: set[str]) -> Any:
    """Copy a JSON schema, or a part of it, without the given keywords at every depth."""
    if isinstance(schema, dict):
        return {k: drop_schema_keywords(v, keywords) for k, v in schema.items() if k not in keywords}
    return [drop_schema_keywords(v, keywords) for v in schema] if isinstance(schema, list) else schema


def open_http_clients() -> None:
    """Make litellm use HTTP clients with a `GuardedTransport` for every provider, and open the one of this run."""
    from auditor.models import connections, direct_completion  # these modules load httpx (0.1 s)

    litellm = load_litellm()
    bootstrap.prepare_environment()  # again: a caller's environment is restored between runs
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, HTTPHandler

    connections.install_guarded_clients(AsyncHTTPHandler)
    connections.disable_sync_requests(HTTPHandler)
    litellm.in_memory_llm_clients_cache.flush_cache()  # clients created before have no guarded transport
    direct_completion.clear_prepared_requests()
    transport: Any = AsyncHTTPHandler.create_async_transport()
    # The attribute `litellm.aclient_session` holds the client that litellm gives to OpenAI's SDK.
    vars(litellm)["aclient_session"] = connections.create_client(transport)
    global _clients_loop
    _clients_loop = asyncio.get_running_loop()


_clients_loop: asyncio.AbstractEventLoop | None = None
"""The event loop whose HTTP clients are open."""


def ensure_http_clients() -> None:
    """Open the HTTP clients of this event loop if they are not open."""
    if _clients_loop is not asyncio.get_running_loop():
        open_http_clients()


async def complete_chat(**request: Any) -> Any:
    """Send one chat completion by litellm: by `direct_completion` where it can, else by litellm's public function.

    Args:
        request: litellm's keyword arguments, `model` and `messages` among them.

    Raises:
        Exception: an exception of litellm's, for any failure of the provider.
    """
    from auditor.models import direct_completion  # loads httpx (0.1 s)

    litellm = load_litellm()
    try:
        response = await direct_completion.build_directly(litellm, request)
        if response is not None:
            return await response
    except Exception as error:
        raise _map_provider_error(error, request) from error
    return await litellm.acompletion(**request, **direct_completion.PUBLIC_OPTIONS)


def _map_provider_error(error: Exception, request: dict[str, Any]) -> Exception:
    """Map a provider's error to litellm's exception classes, which name status and headers alike for all providers."""
    from litellm.litellm_core_utils import exception_mapping_utils as errors

    _truncate_error_text(error)
    # `get_llm_provider` returns the model's name without provider, then the provider.
    model, provider = request["model"], load_litellm().get_llm_provider(request["model"])[1]
    map_error: Callable[..., Exception] = errors.exception_type
    try:
        mapped_error = map_error(model=model, custom_llm_provider=provider, original_exception=error)
    except Exception as raised_error:  # noqa: BLE001 - litellm raises most of the mapped errors and returns some
        return raised_error
    return mapped_error


def _truncate_error_text(error: Exception) -> None:
    """Shorten an error's text to `MAX_ERROR_TEXT_CHARS`: litellm searches all of it some fifty times."""
    error.args = tuple(arg[:MAX_ERROR_TEXT_CHARS] if isinstance(arg, str) else arg for arg in error.args)
    message = getattr(error, "message", None)
    if isinstance(message, str) and len(message) > MAX_ERROR_TEXT_CHARS:
        with suppress(AttributeError):  # in some classes it is a read-only property
            error.message = message[:MAX_ERROR_TEXT_CHARS]  # type: ignore[attr-defined]


def get_http_client() -> Any:
    """The HTTP client of this run, for requests that litellm does not support."""
    ensure_http_clients()
    return vars(load_litellm())["aclient_session"]


async def close_http_clients() -> None:
    """Close litellm's HTTP clients of this event loop and clear its caches, so that no closed client is reused."""
    from auditor.models import direct_completion

    global _clients_loop
    if _clients_loop is None:
        return
    _clients_loop = None
    session = vars(load_litellm())["aclient_session"]
    if session is not None:
        await session.aclose()
    vars(load_litellm())["aclient_session"] = None
    await load_litellm().close_litellm_async_clients()
    load_litellm().in_memory_llm_clients_cache.flush_cache()
    direct_completion.clear_prepared_requests()


def token_price(section: ModelSection) -> TokenPrice | None:
    """US dollars per token: the config's or litellm's listed price; None if unknown.

    It is 0 for an embedded, replayed or simulated model. The listed price is that of `base_model` if the config names
    one, in the tier of `params`; it does not hold with a parameter for which a fee is charged.
    """
    if section.provider in (EMBEDDED, REPLAY, SIMULATED):
        return TokenPrice(0.0, 0.0, 0.0)
    if (price := section.price) is not None:
        cached_input_usd = price.input if price.cached_input is None else price.cached_input
        cache_write_fee_usd = 0.0 if price.cache_write is None else max(0.0, price.cache_write - price.input)
        # The config's prices are per million tokens.
        write_fees = (cache_write_fee_usd, cache_write_fee_usd)
        return TokenPrice(*(usd / 1e6 for usd in (price.input, price.output, cached_input_usd, *write_fees)))
    listed = find_listed_price(section)
    return None if listed is None else litellm_client.listed_token_price(*listed)


def find_listed_price(section: ModelSection) -> ListedPrice | None:
    """Which listed price is a model's; None if its price is another one, or if it has fees."""
    # The user's own server may serve any model under a listed name, so its price is not known.
    listed_model = section.base_model or (None if section.api_base else section.model)
    params = [(path[-1], value) for path, value in iter_params(section.params)]
    if section.price is not None or listed_model is None or any(has_fee(name) for name, _ in params):
        return None
    tier = next((tier for name, value in params if (tier := read_tier(name, value))), None)
    return ListedPrice(listed_model, tier)


def served_token_price(
    price: TokenPrice | None, listed: ListedPrice | None, tier: str | None, place: str | None = None
) -> TokenPrice | None:
    """The price of a request in the tier and the place in which it was processed; None if that is unknown.

    Args:
        price: of a model's requests as they are configured.
        listed: where in the list it stands; None if it is not from the list.
        tier: in which the provider says that it processed the request; None if it does not say.
        place: where it says so, if that has a price of its own; None for the listed one.
    """
    if price is None or listed is None:
        return price
    keeps_tier = tier is None or listed.tier == BATCH_TIER
    served = listed if keeps_tier else listed._replace(tier=None if tier in LISTED_TIERS else tier)
    if served != listed:
        price = litellm_client.listed_token_price(*served)
    if price is None or place is None:
        return price
    factor = (_listed_entry(listed.model).get("provider_specific_entry") or {}).get(place)
    return price.scaled_by(factor) if isinstance(factor, (int, float)) else None
