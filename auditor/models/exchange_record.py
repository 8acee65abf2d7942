"""What went over the wire, beside what was asked for: litellm renames, drops and fills in without a word."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from auditor.domain import Answer, Call, ResponseBody, canonical_json
from auditor.models.transport import HttpExchange, UnreadableResponse, parse_json_object
from auditor.redaction import redact, redact_bytes

NON_PARAMETER_FIELDS = frozenset(
    {"messages", "prompt", "contents", "system", "system_instruction", "systemInstruction", "model"}
)
"""Parts of a request that are no parameters: what the call's own messages and model say."""
MAX_VALUE_CHARS = 200
"""Characters of a parameter that are kept; of a longer one, such as a schema, its hash."""
PARAMETER_ALIASES = {
    "maxtokens": ("maxcompletiontokens", "maxoutputtokens", "maxnewtokens", "numpredict"),
    "seed": ("randomseed",),
    "logprobs": ("responselogprobs",),
    "toplogprobs": ("logprobs",),
}
"""Other names by which providers know a parameter."""
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
"""Names by which providers know a structure that is asked for; what is inside are names of its own."""


def add_exchange_details(answer: Answer, call: Call, exchange: HttpExchange) -> Answer:
    """The answer with what the wire says of it."""
    found: dict[str, str | None] = {}
    if (body := _parse_json(exchange.request_body)) is not None:
        parameters = {k: v for k, v in body.items() if k not in NON_PARAMETER_FIELDS}
        found["sent"] = canonical_json({k: _hash_if_long(v) for k, v in parameters.items()})
        found["altered"] = list_altered_params(call.params, parameters, is_structured=call.schema is not None)
    if exchange.json_body is not None:
        # litellm writes a name of its own where the provider gave none
        found["served_model"] = _short_text(exchange.json_body.get("model")) or _short_text(
            exchange.json_body.get("modelVersion")
        )
        found["fingerprint"] = _short_text(exchange.json_body.get("system_fingerprint"))
    return replace(answer, **found)  # type: ignore[arg-type]


def list_altered_params(
    requested_params: Mapping[str, Any], sent_params: Mapping[str, Any], *, is_structured: bool = False
) -> str:
    """What did not go out as asked: the names of parameters that were dropped, `name=value` of those that changed.

    Args:
        asked: parameters in OpenAI's names.
        sent: in the provider's, at any depth.
        structured: whether a structure was asked for too.
    """
    flat = dict(_iter_flattened(sent_params))
    told = [] if not is_structured or STRUCTURE_PARAMETERS & flat.keys() else ["response_format"]
    for name, value in requested_params.items():
        plain = _normalize_name(name)
        found = [flat[n] for n in (plain, *PARAMETER_ALIASES.get(plain, ())) if n in flat]
        if not found:
            told.append(name)
        elif value not in found:
            told.append(f"{name}={found[0]}")
    return ", ".join(sorted(told))


def redact_response_body(exchange: HttpExchange) -> ResponseBody | None:
    """The answer as it came, without secrets; None if no answer came."""
    if exchange.body_start is None or not exchange.response_size:
        return None
    data = redact_bytes(bytes(exchange.body_start), complete=exchange.is_fully_recorded)
    return ResponseBody(hashlib.sha256(data).hexdigest(), data, exchange.response_size)


def _parse_json(data: bytes) -> dict[str, Any] | None:
    try:
        return parse_json_object(data)
    except UnreadableResponse:
        return None


def _iter_flattened(params: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in params.items():
        yield _normalize_name(name), value
        if isinstance(value, dict) and _normalize_name(name) not in STRUCTURE_PARAMETERS:
            yield from _iter_flattened(value)


def _normalize_name(name: str) -> str:
    return name.replace("_", "").lower()


def _hash_if_long(value: Any) -> Any:
    text = json.dumps(value, sort_keys=True)
    return value if len(text) <= MAX_VALUE_CHARS else f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _short_text(value: object) -> str | None:
    return redact(value)[:MAX_VALUE_CHARS] if isinstance(value, str) and value else None
