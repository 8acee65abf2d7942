"""What a model's `params` may ask for: no second answer, no other server, and no length or fee that is not budgeted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from auditor.config import EMBEDDED, REPLAY, SIMULATED, LimitsSection, ModelSection
from auditor.config.trust import refuse_literal_secrets
from auditor.domain import Call, Capability
from auditor.errors import ConfigError
from auditor.models import litellm_client
from auditor.models.endpoint import PLACEHOLDER_KEY, Endpoint
from auditor.models.priced_params import CHEAPER_TIERS, has_fee, iter_params, normalize_name, read_tier
from auditor.models.reasoning import EFFORT_PARAMETERS, EFFORT_ROOM_TOKENS, SENT_OUTPUT_LIMITS, thinking_room

ANSWER_COUNTS = frozenset(
    {
        "n",
        "bestof",
        "candidatecount",
        "nchoices",
        "numchoices",
        "numcompletions",
        "numgenerations",
        "numresponses",
        "numresults",
        "numreturnsequences",
        "numsamples",
    }
)
"""Providers' names of the number of answers to one request, in lower case without underscores."""
OUTPUT_LIMITS = SENT_OUTPUT_LIMITS | {"npredict"}
"""Providers' names of the limit on output tokens, in the same form."""
REASONING_LIMITS = frozenset(
    {
        "budgettokens",
        "maxreasoningtokens",
        "maxthinkingtokens",
        "reasoningbudget",
        "reasoningmaxtokens",
        "reasoningtokens",
        "thinkingbudget",
        "thinkingbudgettokens",
        "thinkingtokens",
        "thinkingtokenbudget",
    }
)
"""Providers' names of the limit on hidden reasoning, in the same form."""
REASONING_TABLES = frozenset({"reasoning", "reasoningconfig", "thinking", "thinkingconfig"})
"""Providers' names of objects in which a limit on tokens is one on hidden reasoning, in the same form."""
NON_PARAMETER_FIELDS = frozenset(
    {"messages", "prompt", "contents", "system", "system_instruction", "systemInstruction", "model"}
)
"""Fields of a request's body that are not parameters, since they hold its messages or its model."""
BODY_FIELDS = NON_PARAMETER_FIELDS | {"input", "instructions", "stream", "models", "fallbacks", "route"}
"""Fields of a request's body that decide what is asked, or which model is asked."""
ALWAYS_SENT = frozenset({"temperature", "top_p", "top_k", "seed", "stop", "response_format", "extra_headers"})
"""Parameters whose value may be what is sent without them."""


def check_params(models: Iterable[ModelSection], limits: LimitsSection) -> None:
    """Check that the budget can hold for each model's `params`, and that they do not change what is asked, and where.

    Raises:
        ConfigError: a parameter is not allowed, or its value is not, or a header holds a secret; the message names both
            and the model.
    """
    for model in models:
        refuse_literal_secrets(model)
        for path, value in iter_params(model.params):
            _check_param(model, path, value, has_budget=limits.budget_usd is not None)


def _check_param(model: ModelSection, path: tuple[str, ...], value: Any, *, has_budget: bool) -> None:
    """Raise ConfigError if a parameter at this path is not allowed."""
    name, key = ".".join(path), normalize_name(path[-1])
    if len(path) == 1 and litellm_client.is_routing_param(name):
        raise _refusal(model, name, "Remove the parameter; set the URL in api_base and the key in api_key.")
    if path[0] in BODY_FIELDS or (path[0] == "extra_body" and len(path) == 2 and path[1] in BODY_FIELDS):
        raise _refusal(model, name, "Remove it: the audit decides what a model is asked.")
    if key in ANSWER_COUNTS and not (type(value) is int and value == 1):
        raise _refusal(
            model,
            name,
            "Remove it: only the first of several answers would be used, and all would be charged. To ask for more "
            "answers, set `samples` of the probe.",
        )
    if key in OUTPUT_LIMITS and not _is_count(value):
        raise ConfigError(
            f"model '{model.name}': params.{name} must be a whole number of tokens of at least 1, and is {value!r}.",
            "Without a limit, an answer may be as long as the model likes, and cost as much.",
        )
    tier = read_tier(path[-1], value)
    if has_budget and (has_fee(path[-1]) or (tier is not None and tier not in CHEAPER_TIERS)):
        raise ConfigError(
            f"model '{model.name}': limits.budget_usd cannot be enforced with params.{name}: the provider charges "
            "more for it than the price of tokens.",
            "Remove the parameter or the budget.",
        )


def _refusal(model: ModelSection, name: str, how_to_fix: str) -> ConfigError:
    """The error for a parameter that is not allowed."""
    return ConfigError(f"model '{model.name}': the parameter '{name}' is not allowed in params.", how_to_fix)


def _is_count(value: object) -> bool:
    """Whether a value is a whole number of at least 1."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 1 and value == int(value)


def max_output_tokens(call: Call, capability: Capability) -> int | None:
    """Highest number of tokens that a call's answer and its hidden reasoning may have; None if no limit is sent.

    A limit on reasoning is added, since some servers do not count it towards the limit on output tokens.
    """
    limits, reasoning_limits = [], [thinking_room(call, capability)]
    for path, value in iter_params(call.params):
        key, parent = normalize_name(path[-1]), normalize_name(path[-2]) if len(path) > 1 else ""
        if key in REASONING_LIMITS or (key in OUTPUT_LIMITS and parent in REASONING_TABLES):
            reasoning_limits.append(int(value) if _is_count(value) else 0)
        elif key in OUTPUT_LIMITS and _is_count(value):
            limits.append(int(value))
        elif key in ("reasoningeffort", "effort"):
            reasoning_limits.append(EFFORT_ROOM_TOKENS.get(str(value), 0))
    return max(limits) + max(reasoning_limits) if limits else None


async def require_effects(calls: Iterable[tuple[ModelSection, Call]]) -> None:
    """Check the `params` of models before a run, as `require_effect` does at the first request. Keys are not needed.

    Args:
        calls: each model's section in the config with any call to it.

    Raises:
        ConfigError: a parameter would not be sent; the message names it.
    """
    for section, call in calls:
        if not _unsure_params(section) or section.provider in (EMBEDDED, REPLAY, SIMULATED):
            continue
        litellm_client.ensure_http_clients()
        endpoint = Endpoint(section.model, section.api_base, price=None, api_key=PLACEHOLDER_KEY)
        await require_effect(section, endpoint, call)


async def require_effect(section: ModelSection, endpoint: Endpoint, call: Call) -> None:
    """Check that each of a model's `params` changes the request: litellm accepts some, and does not send them.

    Requests are built with and without each parameter, and none is sent. Models whose requests are signed are not
    checked, since signing may need a token from a server.

    Args:
        section: the model's section in the config.
        endpoint: of the model.
        call: any call to the model, whose messages are used.

    Raises:
        ConfigError: a parameter would not be sent; the message names it.
    """
    unsure = _unsure_params(section)
    if not unsure or section.used_credentials is not None:
        return
    request = await _build_request(section, endpoint, call, section.params)
    if not request:  # litellm refuses the parameters, and says why when the request is sent
        return
    for name in unsure:
        others = {other: value for other, value in section.params.items() if other != name}
        if request == await _build_request(section, endpoint, call, others):
            raise ConfigError(
                f"model '{section.name}': the parameter '{name}' in params would not be sent to this provider.",
                "Remove it. To send it as it is, write it in params.extra_body, if the server accepts it.",
            )


def _unsure_params(section: ModelSection) -> list[str]:
    """A model's parameters that litellm may accept without sending them."""
    return [
        name
        for name in section.params
        if not (
            name in ALWAYS_SENT | litellm_client.ALLOWED_ROUTING_PARAMS
            or normalize_name(name) in (EFFORT_PARAMETERS | OUTPUT_LIMITS)
        )
    ]


async def _build_request(section: ModelSection, endpoint: Endpoint, call: Call, params: Mapping[str, Any]) -> list[Any]:
    """What litellm would send for a call's messages with these parameters alone; empty if it refuses them."""
    from auditor.models.direct_completion import PUBLIC_OPTIONS, record_request

    chat = replace(
        call, params=dict(params), schema=None, max_words=None, measure=None, continuations=(), reasoning=None
    )
    kwargs = endpoint.request_kwargs(chat, section.resolved_timeout_s)
    return await record_request(lambda: litellm_client.load_litellm().acompletion(**kwargs, **PUBLIC_OPTIONS))
