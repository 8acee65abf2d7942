"""Add to an answer what was really sent and received: litellm renames, drops and fills in parameters silently."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from auditor.domain import Answer, AnswerForm, Call, Capability, ResponseBody, canonical_json
from auditor.models import litellm_client
from auditor.models.reasoning import EFFORT_PARAMETERS, add_thinking_room
from auditor.models.request_params import NON_PARAMETER_FIELDS
from auditor.models.response_body import parse_reasoning_tokens
from auditor.models.transport import HttpExchange, UnreadableResponse, parse_json_object
from auditor.redaction import redact, redact_bytes

MAX_VALUE_CHARS = 200
"""Longest recorded parameter, in characters of JSON; a longer one, such as a schema, is replaced by its hash."""
PARAMETER_ALIASES = {
    "maxtokens": ("maxcompletiontokens", "maxoutputtokens", "maxnewtokens", "numpredict"),
    "seed": ("randomseed",),
    "logprobs": ("responselogprobs",),
    "toplogprobs": ("logprobs",),
    "stop": ("stopsequences",),
    "topp": ("p",),
    "topk": ("k",),
    "user": ("userid",),
}
"""Providers' other names of a parameter; all names are in lower case without underscores."""
STRUCTURE_PARAMETERS = frozenset(
    (
        "responseformat",
        "responseschema",
        "responsejsonschema",
        "outputformat",
        "outputconfig",
        "tools",
        "toolconfig",
        "format",
    )
)
"""Providers' names of the parameter that holds a requested JSON schema; the names inside it are not parameters."""
UNLISTED_PARAMS = litellm_client.ALLOWED_ROUTING_PARAMS | {"extra_body", "extra_headers", "extra_query"}
"""Parameters that a body does not have by their names: parts of the address, headers, and a table of further ones."""
TOOL_FIELDS = ("tools", "toolconfig")
FORMAT_FIELDS = (*sorted(STRUCTURE_PARAMETERS - set(TOOL_FIELDS)), "responsemimetype", "guidedjson")
"""Providers' names of the parameter that holds a response format, with or without a schema."""


def add_exchange_details(answer: Answer, call: Call, exchange: HttpExchange) -> Answer:
    """Add to an answer the parameters sent, those that litellm altered, and the provider's model, fingerprint
    and count of hidden reasoning.

    Returns:
        The answer with `sent` (JSON of the parameters), `altered` and `form`, and with `served_model`, `fingerprint`
        and `reasoning_tokens`. The first three are unchanged if the request's body is not JSON, the others if the
        response's is not.
    """
    # Fields of `Answer`, by name.
    details: dict[str, str | int | AnswerForm | None] = {}
    if (body := _parse_json(exchange.request_body)) is not None:
        parameters = {name: value for name, value in body.items() if name not in NON_PARAMETER_FIELDS}
        details["sent"] = canonical_json({name: _hash_if_long(name, value) for name, value in parameters.items()})
        requested_params = {
            name: value
            for name, value in add_thinking_room(call.params, call, Capability()).items()
            if name not in UNLISTED_PARAMS
        }
        details["altered"] = list_altered_params(
            {**requested_params, **call.params.get("extra_body", {})},
            parameters,
            is_structured=call.schema is not None,
            has_effort=_has_sent_effort(call),
        )
        details["form"] = None if call.schema is None else sent_form(body)
    if exchange.json_body is not None:
        # Read from the body: litellm fills in a model name of its own if the provider sent none.
        details["served_model"] = _short_text(exchange.json_body.get("model")) or _short_text(
            exchange.json_body.get("modelVersion")
        )
        details["reasoning_tokens"] = parse_reasoning_tokens(exchange.json_body)
        details["fingerprint"] = _short_text(exchange.json_body.get("system_fingerprint"))
    return replace(answer, **details)  # type: ignore[arg-type]


def _has_sent_effort(call: Call) -> bool:
    """Whether a call asks for an effort that any request for it must name.

    Providers with a body of their own are asked for no reasoning by leaving the parameter out.
    """
    effort = call.reasoning.effort if call.reasoning else None
    return effort is not None and (effort != "none" or litellm_client.speaks_openai(call.model))


def list_altered_params(
    requested_params: Mapping[str, Any],
    sent_params: Mapping[str, Any],
    *,
    is_structured: bool = False,
    has_effort: bool = False,
) -> str:
    """List parameters that were not sent as requested: `name` if dropped, `name=sent value` if changed.

    Args:
        requested_params: parameters by OpenAI's names.
        sent_params: parameters by the provider's names, nested to any depth.
        is_structured: whether a structured answer was requested too.
        has_effort: whether an effort of reasoning was requested too, which providers know under many names.

    Returns:
        Sorted and joined by commas; empty if nothing was altered.
    """
    sent_by_name = dict(_iter_flattened(sent_params))
    # A structured answer is requested by one of `STRUCTURE_PARAMETERS`; if none was sent, the format was dropped.
    altered = [] if not is_structured or STRUCTURE_PARAMETERS & sent_by_name.keys() else ["response_format"]
    if has_effort and not EFFORT_PARAMETERS & sent_by_name.keys():
        altered.append("reasoning_effort")
    for name, value in requested_params.items():
        normalized_name = _normalize_name(name)
        sent_values = [
            sent_by_name[alias]
            for alias in (normalized_name, *PARAMETER_ALIASES.get(normalized_name, ()))
            if alias in sent_by_name
        ]
        if not sent_values:
            # An effort is sent under many names, and as a number of tokens.
            is_sent = normalized_name in EFFORT_PARAMETERS and bool(EFFORT_PARAMETERS & sent_by_name.keys())
            altered += [] if is_sent else [name]
        elif not any(_has_all(sent_value, value) for sent_value in sent_values):
            altered.append(f"{name}={sent_values[0]}")
    return ", ".join(sorted(altered))


def _has_all(sent: object, requested: object) -> bool:
    """Whether a value was sent as requested, or in a list; a table of parameters may have further ones."""
    if isinstance(sent, Mapping) and isinstance(requested, Mapping):
        return all(name in sent and _has_all(sent[name], value) for name, value in requested.items())
    return sent in (requested, [requested])


def sent_form(body: Mapping[str, Any]) -> AnswerForm:
    """The form in which a request's body asks for a structured answer, in any provider's format.

    litellm changes the form for some models: a JSON schema is sent as a tool to those that it takes to know no other.
    """
    fields = dict(_iter_flattened(body))
    formats = [fields[name] for name in FORMAT_FIELDS if fields.get(name)]
    if any(_has_schema(requested_format) for requested_format in formats):
        return AnswerForm.JSON_SCHEMA
    if any("json" in json.dumps(requested_format) for requested_format in formats):
        return AnswerForm.JSON_OBJECT
    return AnswerForm.TOOL if any(fields.get(name) for name in TOOL_FIELDS) else AnswerForm.TEXT


def _has_schema(requested_format: object) -> bool:
    """Whether a response format has a JSON schema, at any depth."""
    if not isinstance(requested_format, dict):
        return isinstance(requested_format, str) and '"properties"' in requested_format  # Bedrock's is JSON in a text
    return "properties" in requested_format or any(map(_has_schema, requested_format.values()))


def redact_response_body(exchange: HttpExchange) -> ResponseBody | None:
    """The recorded part of the response's body with secrets redacted, its hash and its size; None without a body."""
    if exchange.body_start is None or not exchange.response_size:
        return None
    data = redact_bytes(bytes(exchange.body_start), complete=exchange.is_fully_recorded)
    return ResponseBody(hashlib.sha256(data).hexdigest(), data, exchange.response_size)


def _parse_json(data: bytes) -> dict[str, Any] | None:
    """Parse bytes as a JSON object; None if they are not one."""
    try:
        return parse_json_object(data)
    except UnreadableResponse:
        return None


def _iter_flattened(params: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield normalized names and values of parameters at every depth, except inside a requested JSON schema."""
    for name, value in params.items():
        yield _normalize_name(name), value
        if isinstance(value, dict) and _normalize_name(name) not in STRUCTURE_PARAMETERS:
            yield from _iter_flattened(value)


def _normalize_name(name: str) -> str:
    """A parameter's name in lower case without underscores, to compare snake case with camel case."""
    return name.replace("_", "").lower()


def _hash_if_long(name: str, value: Any) -> Any:
    """The value, or the beginning of its SHA-256 if its JSON is longer than `MAX_VALUE_CHARS`.

    Of an object that holds parameters, such as Gemini's `generationConfig`, only the long ones are replaced.
    """
    if isinstance(value, int | float | None):  # as most parameters
        return value
    if isinstance(value, str) and len(value) <= MAX_VALUE_CHARS // len(r"\u0000") - 1:  # short, however it is escaped
        return value
    text = json.dumps(value, sort_keys=True)
    if len(text) <= MAX_VALUE_CHARS:
        return value
    if isinstance(value, dict) and _normalize_name(name) not in STRUCTURE_PARAMETERS:
        return {inner_name: _hash_if_long(inner_name, inner_value) for inner_name, inner_value in value.items()}
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _short_text(value: object) -> str | None:
    """A text with secrets redacted, at most `MAX_VALUE_CHARS` long; None for an empty text or another type."""
    return redact(value)[:MAX_VALUE_CHARS] if isinstance(value, str) and value else None
