"""The one door to litellm: opened on first use, with its look-ups, telemetry and retries off."""

from __future__ import annotations

import functools
import gc
import inspect
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from types import ModuleType
from typing import Any, NamedTuple

from auditor import bootstrap
from auditor.models import request_cache

# A schema keyword that a provider's strict mode refuses; the others get the bound, since small models need it.
UNSUPPORTED_SCHEMA_KEYWORDS = {
    "openai": {"maxLength", "minLength"},
    "azure": {"maxLength", "minLength"},
    "anthropic": {"maxLength", "minLength", "minimum", "maximum"},
}


ROUTING_PARAMS = frozenset({"base_url", "model", "messages", "timeout", "stream", "deployment_id"})
CREDENTIAL_PARAM_PREFIXES = ("aws_", "vertex_", "azure_", "s3_", "use_")
"""Beginnings of names by which litellm takes accounts, tokens and servers."""
ALLOWED_ROUTING_PARAMS = frozenset({"api_version", "aws_region_name"})
"""What begins so, or is litellm's own, and may be said: it leads to no other owner's server, and litellm checks it."""

MAX_ERROR_TEXT_CHARS = 65_536
"""Of an error's text that litellm looks into."""

SKIP_MCP_TOOLS = {"_skip_mcp_handler": True}
"""Where tools are sent, litellm looks for tools of its proxy among them, for which it wants a package of its own."""


@functools.cache
def load_litellm() -> ModuleType:
    """The litellm module, imported with its network look-ups off and its retries and chatter silenced."""
    bootstrap.prepare_environment()
    import litellm as module

    bootstrap.silence_libraries()
    module.suppress_debug_info = True
    module.telemetry = False
    module.drop_params = False
    _disable_litellm_redaction()
    gc.freeze()  # 300,000 objects that stay: to look through them for garbage takes a tenth of a second each time
    return module


def _disable_litellm_redaction() -> None:
    """Turn litellm's search for secrets off where it was imported before `bootstrap.prepare` could set its variable.

    Its time grows with the cube of the text's length: 16 kB of `-----BEGIN PRIVATE KEY-----` block the event loop for
    14 s. Texts are redacted by `auditor.redaction`.
    """
    from litellm import _logging
    from litellm.litellm_core_utils import exception_mapping_utils

    for module in (_logging, exception_mapping_utils):
        vars(module)["_ENABLE_SECRET_REDACTION"] = False


@functools.cache
def supported_params(model: str) -> frozenset[str]:
    """Parameters that the model's provider takes, in OpenAI's names; empty when litellm does not know the provider."""
    return frozenset(load_litellm().get_supported_openai_params(model=model) or ())


def is_routing_param(param_name: str) -> bool:
    """Whether a parameter is none of the model's, but says where litellm asks, as whom, or how often."""
    load_litellm()
    from litellm.types.utils import is_litellm_owned_kwarg

    if param_name in ALLOWED_ROUTING_PARAMS:
        return False
    return (
        param_name in ROUTING_PARAMS
        or param_name.startswith(CREDENTIAL_PARAM_PREFIXES)
        or bool(is_litellm_owned_kwarg(param_name))
    )


class TokenPrice(NamedTuple):
    """US dollars per token: of the prompt, of the answer, and of what the provider had kept of earlier prompts."""

    prompt_usd: float
    completion_usd: float
    cached_usd: float

    def request_cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> float:
        """Of one answer, `cached` of whose prompt's tokens had been kept."""
        return (
            (prompt_tokens - cached_tokens) * self.prompt_usd
            + cached_tokens * self.cached_usd
            + completion_tokens * self.completion_usd
        )

    def scaled_by(self, factor: float) -> TokenPrice:
        """That many times the price."""
        return TokenPrice(self.prompt_usd * factor, self.completion_usd * factor, self.cached_usd * factor)


@functools.cache
def listed_token_price(model: str) -> TokenPrice | None:
    """From litellm's own list; None when it has none. Kept tokens cost as others do where it tells no price of them."""
    entry = load_litellm().model_cost.get(model) or load_litellm().model_cost.get(model.split("/", 1)[-1])
    if not entry or entry.get("input_cost_per_token") is None or entry.get("output_cost_per_token") is None:
        return None
    fresh, kept = entry["input_cost_per_token"], entry.get("cache_read_input_token_cost")
    return TokenPrice(float(fresh), float(entry["output_cost_per_token"]), float(fresh if kept is None else kept))


@functools.cache
def listed_max_output(model: str) -> int | None:
    """The most tokens that one answer of a model may have, from litellm's own list; None when it does not say."""
    entry = load_litellm().model_cost.get(model) or load_litellm().model_cost.get(model.split("/", 1)[-1]) or {}
    most = entry.get("max_output_tokens") or entry.get("max_tokens")
    return most if isinstance(most, int) and most > 0 else None


def drop_schema_keywords(schema: Any, keywords: set[str]) -> Any:
    """A JSON schema without some of its keywords, at every depth."""
    if isinstance(schema, dict):
        return {k: drop_schema_keywords(v, keywords) for k, v in schema.items() if k not in keywords}
    return [drop_schema_keywords(v, keywords) for v in schema] if isinstance(schema, list) else schema


def open_http_clients() -> None:
    """Give litellm the HTTP clients of this run: guarded ones, whatever provider they are for."""
    from auditor.models.http_client import MinimalHttpClient, install_minimal_client
    from auditor.models.transport import disable_sync_requests, install_guarded_transport

    module = load_litellm()
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, HTTPHandler

    install_guarded_transport(AsyncHTTPHandler)
    disable_sync_requests(HTTPHandler)
    install_minimal_client(AsyncHTTPHandler)
    module.in_memory_llm_clients_cache.flush_cache()  # what was made before is not guarded
    request_cache.clear_request_cache()
    transport: Any = AsyncHTTPHandler.create_async_transport()
    vars(module)["aclient_session"] = MinimalHttpClient(transport)


DIRECT_BUILD_PROVIDERS = frozenset(
    (
        "openai",
        "azure",
        "anthropic",
        "gemini",
        "mistral",
        "openrouter",
        "groq",
        "deepseek",
        "together_ai",
        "hosted_vllm",
    )
)
"""Providers whose requests litellm builds without waiting for a file, a token or a server, where it is given a key."""


async def complete_chat(**request: Any) -> Any:
    """One chat completion by litellm, without what it does around one that nobody needs here.

    Its public function makes a log record of each call, looks a price up several times over and hands both to
    callbacks: half of its CPU time. It builds each request in another thread, too, in case that has to wait for
    something: a third of what is left. What is beneath stays: each provider's translation and the mapping of errors.
    """
    ask, build, log = _undecorated_litellm()
    if request["model"].split("/", 1)[0] not in DIRECT_BUILD_PROVIDERS or not request.get("api_key"):
        return await ask(**request, litellm_logging_obj=log(request))
    try:
        under_way = request_cache.send_cached_request(load_litellm(), build, log, request)
        return await (under_way or build(**request, acompletion=True, litellm_logging_obj=log(request)))
    except Exception as error:
        raise _map_provider_error(error, request) from error


def _map_provider_error(error: Exception, request: dict[str, Any]) -> Exception:
    """A provider's error as litellm's own, which tell of its status and headers by the same names."""
    from litellm.litellm_core_utils import exception_mapping_utils as errors

    _truncate_error_text(error)
    model, provider = request["model"], load_litellm().get_llm_provider(request["model"])[1]
    map_error: Callable[..., Exception] = errors.exception_type
    try:
        found = map_error(model=model, custom_llm_provider=provider, original_exception=error)
    except Exception as mapped:  # noqa: BLE001 - it raises most of them, and returns some
        return mapped
    return found


def _truncate_error_text(error: Exception) -> None:
    """Keep the beginning of an error's text, which litellm searches as a whole some fifty times."""
    error.args = tuple(arg[:MAX_ERROR_TEXT_CHARS] if isinstance(arg, str) else arg for arg in error.args)
    message = getattr(error, "message", None)
    if isinstance(message, str) and len(message) > MAX_ERROR_TEXT_CHARS:
        with suppress(AttributeError):  # a property of some classes
            error.message = message[:MAX_ERROR_TEXT_CHARS]  # type: ignore[attr-defined]


@functools.cache
def _undecorated_litellm() -> tuple[Callable[..., Any], Callable[..., Any], Callable[[dict[str, Any]], Any]]:
    """litellm's completion, and what builds its request, without their decorators; and the log that they write to."""
    from litellm.litellm_core_utils.litellm_logging import Logging

    class Forgetful(Logging):
        """A log that keeps neither prompts nor keys."""

        def pre_call(self, *_: Any, **__: Any) -> None:
            """Nothing."""

        def post_call(self, *_: Any, **__: Any) -> None:
            """Nothing."""

        def should_run_prompt_management_hooks(self, *_: Any, **__: Any) -> bool:
            """No: prompts are ours, and to look for others costs each call the reading of all its parameters."""
            return False

    def log(request: dict[str, Any]) -> Any:
        return Forgetful(
            model=request["model"],
            messages=request["messages"],
            stream=False,
            call_type="acompletion",
            start_time=datetime.now(),
            litellm_call_id="",
            function_id="",
            litellm_trace_id="-",
            kwargs={},
        )

    return inspect.unwrap(load_litellm().acompletion), inspect.unwrap(load_litellm().completion), log


def get_http_client() -> Any:
    """The guarded HTTP client of this run, for what litellm has no translation of."""
    return vars(load_litellm())["aclient_session"]


async def close_http_clients() -> None:
    """Close litellm's HTTP clients of this event loop, and forget them: it would hand out closed ones."""
    session = vars(load_litellm())["aclient_session"]
    if session is not None:
        await session.aclose()
    vars(load_litellm())["aclient_session"] = None
    await load_litellm().close_litellm_async_clients()
    load_litellm().in_memory_llm_clients_cache.flush_cache()
    request_cache.clear_request_cache()
