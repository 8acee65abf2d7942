"""Request reasoning ("thinking") from a model, and leave room for it in the limit on output tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from auditor.config.providers.record import Reasoning
from auditor.config.providers.table import provider_of
from auditor.domain import Answer, Call, Capability, Outcome, ReasoningSettings, TokenLimitParam
from auditor.models import litellm_client
from auditor.models.thinking import strip_thinking

OUTPUT_LIMIT_PARAMS: tuple[TokenLimitParam, ...] = get_args(TokenLimitParam)
"""OpenAI's names of the limit on output tokens, as a call's parameters have them."""
SENT_OUTPUT_LIMITS = frozenset({"maxtokens", "maxcompletiontokens", "maxoutputtokens", "maxnewtokens", "numpredict"})
"""Providers' names of the limit on output tokens, in lower case without underscores."""
EFFORT_PARAMETERS = frozenset(
    {
        "reasoningeffort",
        "reasoning",
        "reasoningconfig",
        "effort",
        "thinking",
        "thinkingconfig",
        "think",
        "chattemplatekwargs",
    }
)
"""Providers' names of the parameter that requests reasoning, in the same form."""
EFFORT_ROOM_TOKENS: Mapping[str, int] = {
    "minimal": 1024,
    "low": 1024,
    "medium": 2048,
    "high": 4096,
    "xhigh": 8192,
    "max": 16384,
}
"""Tokens of room for each effort if the config sets no `reasoning.max_tokens`.

litellm sends these as the budget of Anthropic's and Gemini's models that take a number of tokens instead of an effort,
and Anthropic refuses a budget that is not below the limit on output tokens.
"""


def add_reasoning(request_kwargs: dict[str, Any], call: Call, capability: Capability) -> dict[str, Any]:
    """Copy litellm's arguments of a request with the reasoning that the call asks for, and with room for thinking.

    Unchanged if the config sets no reasoning and the capability has no room for thinking. Parameters of the config
    (`params`) take precedence over what is added here.
    """
    added = _reasoning_kwargs(call, request_kwargs["model"], capability)
    extra_body = {**added.pop("extra_body", {}), **request_kwargs.get("extra_body", {})}
    request_kwargs = {**added, **request_kwargs, **({"extra_body": extra_body} if extra_body else {})}
    return add_thinking_room(request_kwargs, call, capability)


def add_thinking_room(params: Mapping[str, Any], call: Call, capability: Capability) -> dict[str, Any]:
    """Copy parameters with the room for thinking added to each limit on output tokens."""
    room = thinking_room(call, capability)
    return {
        name: value + room if room and name in OUTPUT_LIMIT_PARAMS and isinstance(value, (int, float)) else value
        for name, value in params.items()
    }


def _reasoning_kwargs(call: Call, model: str, capability: Capability) -> dict[str, Any]:
    """Arguments of litellm's that request the reasoning which a call's config sets; empty if it sets none.

    They may have an `extra_body`, whose fields litellm sends as they are. A setting that the capability lists among the
    dropped parameters, as `reasoning_effort` or `thinking`, is left out.

    Args:
        call: the call.
        model: litellm's name of the model that the request goes to.
        capability: what the model's server accepts.
    """
    settings, provider = call.reasoning, provider_of(model)
    if settings is None or (call.measure is not None and call.measure.needs_completions_endpoint):
        return {}
    effort = None if "reasoning_effort" in capability.dropped_params else settings.effort
    budget = None if "thinking" in capability.dropped_params else settings.max_tokens
    if provider.reasoning is Reasoning.OBJECT:
        return _object_kwargs(effort, budget)
    kwargs: dict[str, Any] = {} if effort is None else _effort_kwargs(model, effort)
    takes_budget = provider.reasoning is Reasoning.BUDGET and litellm_client.translates_param(model, "thinking")
    is_excluded = effort and provider.effort_only_models and provider.effort_only_models.search(model)
    if budget is not None and takes_budget and not is_excluded:
        kwargs["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return kwargs


def _object_kwargs(effort: str | None, budget: int | None) -> dict[str, Any]:
    """Arguments for a budget or an effort, not both, in an object of its own."""
    reasoning = {"max_tokens": budget} if budget is not None else {"effort": effort} if effort is not None else None
    return {} if reasoning is None else {"extra_body": {"reasoning": reasoning}}


def _effort_kwargs(model: str, effort: str) -> dict[str, Any]:
    """Arguments that request an effort: for litellm to translate or, if its table does not list the model, as it is."""
    style = provider_of(model).reasoning
    is_translated = style is not Reasoning.UNTRANSLATED and litellm_client.translates_param(model, "reasoning_effort")
    if is_translated or not litellm_client.speaks_openai(model):
        kwargs: dict[str, Any] = {"reasoning_effort": effort}
        if style is Reasoning.TEMPLATE and effort == "none":
            kwargs["extra_body"] = {"chat_template_kwargs": {"enable_thinking": False}}
        return kwargs
    return {"extra_body": {"reasoning_effort": effort}}


def thinking_room(call: Call, capability: Capability) -> int:
    """Tokens that are added to a call's limit on output tokens, so that thinking does not use up the answer's.

    The config's `reasoning.max_tokens` if set; else the room for the effort, or that of the capability if it is more.
    """
    if call.measure is not None:
        return 0
    settings = call.reasoning or ReasoningSettings()
    if settings.max_tokens is not None:
        return settings.max_tokens
    return max(capability.thinking_tokens, EFFORT_ROOM_TOKENS.get(settings.effort or "", 0))


def output_limit(call: Call, capability: Capability) -> int | None:
    """Highest limit on output tokens that is sent for a call, with the room for thinking; None if it sets none."""
    limits = [value for name in OUTPUT_LIMIT_PARAMS if isinstance(value := call.params.get(name), (int, float))]
    return int(max(limits)) + thinking_room(call, capability) if limits else None


def sent_output_limit(sent: str | None) -> int | None:
    """Limit on output tokens in `Answer.sent`, under whichever name the provider has for it; None if it has none."""
    try:
        parameters = json.loads(sent or "{}")
    except ValueError:
        return None
    return _find_output_limit(parameters) if isinstance(parameters, dict) else None


def _find_output_limit(parameters: Mapping[str, Any]) -> int | None:
    """Highest limit on output tokens among parameters at any depth; None if there is none."""
    limits = [
        value if isinstance(value, int) else _find_output_limit(value)
        for name, value in parameters.items()
        if isinstance(value, dict) or (_is_output_limit(name) and isinstance(value, int))
    ]
    return max((limit for limit in limits if limit is not None), default=None)


def _is_output_limit(name: str) -> bool:
    """Whether a provider's parameter is the limit on output tokens."""
    return name.replace("_", "").lower() in SENT_OUTPUT_LIMITS


def was_cut_by_lower_limit(answer: Answer, call: Call, capability: Capability) -> bool:
    """Whether an answer was truncated by a limit below the present one, so that it is worth asking again.

    False if one of the limits is not known: the same limit would truncate the answer again, and be paid for again.
    """
    previous_limit, present_limit = sent_output_limit(answer.sent), output_limit(call, capability)
    return (
        answer.outcome is Outcome.TRUNCATED
        and previous_limit is not None
        and present_limit is not None
        and previous_limit < present_limit
    )


def is_cut_off_thinking(answer: Answer) -> bool:
    """Whether a model thought until its tokens ran out, so that the same request with a higher limit may be answered.

    That is an answer that was cut off without any text but thinking.
    """
    return answer.outcome is Outcome.TRUNCATED and not strip_thinking(answer.text or "").strip()
