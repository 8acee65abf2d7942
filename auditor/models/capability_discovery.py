"""Find out what a model's server accepts: the capability to begin with, and the next one after a refusal."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from auditor.config import EMBEDDED
from auditor.config.providers import LENGTH_BOUNDS, NUMBER_BOUNDS, provider_of
from auditor.domain import AnswerForm, Call, Capability, DeclaredCapabilities
from auditor.models import litellm_client
from auditor.models.endpoint import STREAM_OPTIONS
from auditor.models.reasoning import OUTPUT_LIMIT_PARAMS, output_limit, thinking_room
from auditor.models.refused_features import ALL_BOUNDS, ANY_FORM, Feature, Refusal
from auditor.models.structured import find_schema, limited_schema

OPTIONAL_PARAMS = ("seed",)
"""Parameters that are left out from the beginning for a provider that litellm lists as not supporting them."""
FORM_STEPS = (AnswerForm.JSON_SCHEMA, AnswerForm.JSON_OBJECT, AnswerForm.TOOL, AnswerForm.TEXT)
"""Forms of structured answers, from the richest to the poorest."""
THINKING_STEPS_TOKENS = (4096, 16384)
"""Room for thinking that is tried after an answer was cut off while the model thought."""
STRICT_KEYWORD = "strict"
"""Stands for the strict mode among the dropped keywords."""
FORM_FIELDS = frozenset(
    {
        "responseformat",
        "responseschema",
        "responsejsonschema",
        "responsemimetype",
        "outputformat",
        "outputconfig",
        "textformat",
        "format",
    }
)
"""Fields of a request that hold a response format, in lower case without underscores."""
TOOL_FIELDS = frozenset({"tools", "toolchoice", "toolconfig", "tool"})
"""Fields of a request that hold a tool, in lower case without underscores."""
REASONING_FIELDS = {"reasoningeffort": "reasoning_effort", "reasoning": "reasoning_effort", "thinking": "thinking"}
"""Fields that request reasoning, in lower case without underscores, and the parameter to leave out for each."""
REQUIRED_PARAMS = frozenset({"logprobs", "top_logprobs", "prompt_logprobs", *OUTPUT_LIMIT_PARAMS})
"""Parameters that are never left out: without them the answer would be another one, or cost without limit."""


@functools.cache
def initial_capability(model: str, server: str | None) -> Capability:
    """The capability that discovery begins with: nothing is left out, except what litellm lists as refused.

    Args:
        model: provider and model name for litellm.
        server: base URL if the config sets one; None for the provider's own.
    """
    provider = provider_of(model)
    if provider is EMBEDDED:
        return Capability(form=AnswerForm.JSON_SCHEMA)  # llama.cpp's server, with a grammar
    supported = litellm_client.supported_params(model)
    if "response_format" in supported or (not supported and litellm_client.speaks_openai(model)):
        form = AnswerForm.JSON_SCHEMA
    else:
        form = AnswerForm.TOOL if {"tools", "tool_choice"} <= supported else AnswerForm.TEXT
    return Capability(
        form=form,
        dropped_keywords=tuple(sorted(provider.refused_keywords)) if provider.owns_server(server) else (),
        dropped_params=tuple(name for name in OPTIONAL_PARAMS if name not in supported),
    )


def apply_declared(capability: Capability, declared: DeclaredCapabilities | None) -> Capability:
    """The capability with what the config declares in place of what was found."""
    if declared is None:
        return capability
    # Whether each parameter is sent, by name; None for a parameter that the config does not declare.
    is_sent = {"temperature": declared.temperature, "seed": declared.seed}
    dropped_params = {name for name in capability.dropped_params if not is_sent.get(name)}
    dropped_params |= {name for name, sent in is_sent.items() if sent is False}
    return replace(
        capability,
        form=declared.form or capability.form,
        dropped_params=tuple(sorted(dropped_params)),
        dropped_keywords=(
            capability.dropped_keywords
            if declared.dropped_keywords is None
            else tuple(sorted(set(declared.dropped_keywords)))
        ),
        token_limit_param=declared.token_limit_param or capability.token_limit_param,
    )


def next_capability(capability: Capability, call: Call, refusals: Sequence[Refusal]) -> Capability | None:
    """The capability to try after a server refused a call: without the refused parts, or with the next form.

    Args:
        capability: what the call was sent under.
        call: the call that was refused.
        refusals: the parts that the error names.

    Returns:
        A poorer capability; None if nothing that was sent is refused.
    """
    poorer = capability
    for refusal in refusals:
        if refusal.feature is Feature.PARAM:
            poorer = _without_param(poorer, call, refusal.name)
        elif refusal.feature is Feature.KEYWORD:
            poorer = _without_keyword(poorer, call, refusal.name)
        elif refusal.feature is Feature.WHOLE_ANSWER and litellm_client.speaks_openai(call.model):
            poorer = replace(poorer, stream=True)
    if poorer == capability and call.schema is not None and any(_is_form_refused(capability, r) for r in refusals):
        poorer = next_form(capability) or capability
    return None if poorer == capability else poorer


def next_form(capability: Capability) -> Capability | None:
    """The capability with the next poorer form of structured answers; None if it is the poorest already."""
    later_forms = FORM_STEPS[FORM_STEPS.index(capability.form or AnswerForm.JSON_SCHEMA) + 1 :]
    return replace(capability, form=later_forms[0]) if later_forms else None


def more_thinking_room(capability: Capability, call: Call) -> Capability | None:
    """The capability with more room for thinking, within the model's listed output; None if there is no more."""
    is_fixed = call.measure is not None or (call.reasoning is not None and call.reasoning.max_tokens is not None)
    limit, room = output_limit(call, capability), thinking_room(call, capability)
    if is_fixed or limit is None:
        return None
    listed_max = litellm_client.listed_max_output(call.listed_model)
    max_room = THINKING_STEPS_TOKENS[-1] if listed_max is None else listed_max - (limit - room)
    larger_room = next((min(step, max_room) for step in THINKING_STEPS_TOKENS if min(step, max_room) > room), None)
    return None if larger_room is None else replace(capability, thinking_tokens=larger_room)


def less_thinking_room(capability: Capability) -> Capability:
    """The capability with the next smaller room for thinking."""
    smaller_rooms = [0, *(step for step in THINKING_STEPS_TOKENS if step < capability.thinking_tokens)]
    return replace(capability, thinking_tokens=smaller_rooms[-1])


def _without_param(capability: Capability, call: Call, name: str) -> Capability:
    """The capability without a refused parameter, or with the other name of the token limit; the same if not sent.

    Args:
        capability: what the call was sent under.
        call: the call that was refused.
        name: the parameter's name at the provider; of a path, such as `reasoning.effort`, each part is tried.
    """
    for field in map(_normalize, name.split(".")):
        sent_param = next((param for param in call.params if _normalize(param) == field), REASONING_FIELDS.get(field))
        if field == _normalize(STREAM_OPTIONS):
            return replace(capability, dropped_params=tuple(sorted({*capability.dropped_params, STREAM_OPTIONS})))
        if sent_param in OUTPUT_LIMIT_PARAMS or field in map(_normalize, OUTPUT_LIMIT_PARAMS):
            if field != _normalize(capability.token_limit_param):
                return capability
            is_old_name = capability.token_limit_param == "max_tokens"
            return replace(capability, token_limit_param="max_completion_tokens" if is_old_name else "max_tokens")
        if sent_param is None or sent_param in REQUIRED_PARAMS or sent_param in capability.dropped_params:
            continue
        if sent_param in REASONING_FIELDS.values() and call.reasoning is None and sent_param not in call.params:
            continue
        return replace(capability, dropped_params=tuple(sorted({*capability.dropped_params, sent_param})))
    return capability


def _without_keyword(capability: Capability, call: Call, name: str) -> Capability:
    """The capability without a refused keyword of the JSON schema; the same if the schema does not have it."""
    if call.schema is None or capability.form in (AnswerForm.JSON_OBJECT, AnswerForm.TEXT):
        return capability
    sent_keywords = _schema_keywords(call.schema, call.max_words or 0)
    refused = {keyword for keyword in sent_keywords if _normalize(keyword) == _normalize(name)}
    for bounds in (LENGTH_BOUNDS, NUMBER_BOUNDS):
        if name == ALL_BOUNDS or refused & bounds:
            refused |= bounds & sent_keywords
    return replace(capability, dropped_keywords=tuple(sorted({*capability.dropped_keywords, *refused})))


@functools.cache
def _schema_keywords(schema: str, max_words: int) -> frozenset[str]:
    """Keywords of a schema that can be left out, with `strict` for the strict mode."""

    def iter_keywords(node: object) -> set[str]:
        """Keywords of a JSON schema at every depth, without the names of its properties."""
        if isinstance(node, list):
            return set().union(*map(iter_keywords, node))
        if not isinstance(node, dict):
            return set()
        subschemas = [*node.get("properties", {}).values(), *(v for k, v in node.items() if k != "properties")]
        return {*node, *iter_keywords(subschemas)}

    structural = {"type", "properties", "items", "enum"}
    keywords = iter_keywords(limited_schema(find_schema(schema), max_words))
    return frozenset({STRICT_KEYWORD, *keywords} - structural)


def _is_form_refused(capability: Capability, refusal: Refusal) -> bool:
    """Whether a refusal is about the form that a call was sent in; of a schema's keyword, all of it is."""
    form = capability.form or AnswerForm.JSON_SCHEMA
    if refusal.feature is Feature.KEYWORD:
        return form in (AnswerForm.JSON_SCHEMA, AnswerForm.TOOL)
    if refusal.feature is Feature.FORM:
        # litellm sends a schema as a tool to a provider that it takes to support tools only.
        return refusal.name in (ANY_FORM, form) or (refusal.name == AnswerForm.TOOL and form is not AnswerForm.TEXT)
    fields = {_normalize(part) for part in refusal.name.split(".")}
    if fields & TOOL_FIELDS:
        return form is not AnswerForm.TEXT
    return bool(fields & FORM_FIELDS) and form in (AnswerForm.JSON_SCHEMA, AnswerForm.JSON_OBJECT)


def _normalize(name: str) -> str:
    """A name in lower case without underscores, to compare providers' spellings."""
    return name.replace("_", "").lower()
