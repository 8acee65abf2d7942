"""What went over the wire, beside what was asked for: litellm renames, drops and fills in without a word."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from auditor.domain import Answer, Body, Call, canonical_json
from auditor.models.transport import Unreadable, Wire, json_object
from auditor.redaction import redact, redact_bytes

WORDS = frozenset({"messages", "prompt", "contents", "system", "system_instruction", "systemInstruction", "model"})
"""Parts of a request that are no parameters: what the call's own messages and model say."""
LONG = 200
"""Characters of a parameter that are kept; of a longer one, such as a schema, its hash."""
ALSO = {
    "maxtokens": ("maxcompletiontokens", "maxoutputtokens", "maxnewtokens", "numpredict"),
    "seed": ("randomseed",),
    "logprobs": ("responselogprobs",),
    "toplogprobs": ("logprobs",),
}
"""Other names by which providers know a parameter."""
FORMATS = frozenset(
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


def recorded(answer: Answer, call: Call, wire: Wire) -> Answer:
    """The answer with what the wire says of it."""
    found: dict[str, str | None] = {}
    if (body := _json(wire.sent)) is not None:
        parameters = {k: v for k, v in body.items() if k not in WORDS}
        found["sent"] = canonical_json({k: _short(v) for k, v in parameters.items()})
        found["altered"] = altered(call.params, parameters, structured=call.schema is not None)
    if wire.body is not None:
        # litellm writes a name of its own where the provider gave none
        found["served_model"] = _text(wire.body.get("model")) or _text(wire.body.get("modelVersion"))
        found["fingerprint"] = _text(wire.body.get("system_fingerprint"))
    return replace(answer, **found)  # type: ignore[arg-type]


def altered(asked: Mapping[str, Any], sent: Mapping[str, Any], *, structured: bool = False) -> str:
    """What did not go out as asked: the names of parameters that were dropped, `name=value` of those that changed.

    Args:
        asked: parameters in OpenAI's names.
        sent: in the provider's, at any depth.
        structured: whether a structure was asked for too.
    """
    flat = dict(_flat(sent))
    told = [] if not structured or FORMATS & flat.keys() else ["response_format"]
    for name, value in asked.items():
        plain = _plain(name)
        found = [flat[n] for n in (plain, *ALSO.get(plain, ())) if n in flat]
        if not found:
            told.append(name)
        elif value not in found:
            told.append(f"{name}={found[0]}")
    return ", ".join(sorted(told))


def redacted_body(wire: Wire) -> Body | None:
    """The answer as it came, without secrets; None if no answer came."""
    if wire.received is None or not wire.size:
        return None
    data = redact_bytes(bytes(wire.received), complete=wire.whole)
    return Body(hashlib.sha256(data).hexdigest(), data, wire.size)


def _json(data: bytes) -> dict[str, Any] | None:
    try:
        return json_object(data)
    except Unreadable:
        return None


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        yield _plain(name), value
        if isinstance(value, dict) and _plain(name) not in FORMATS:
            yield from _flat(value)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _short(value: Any) -> Any:
    text = json.dumps(value, sort_keys=True)
    return value if len(text) <= LONG else f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _text(value: object) -> str | None:
    return redact(value)[:LONG] if isinstance(value, str) and value else None
