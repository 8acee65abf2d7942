"""Which part of a request a server refuses, read from its error message by the wordings of `refused_features.toml`.

Only what a row of that table names is left out of further requests; a refusal in unknown words stays an error.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib import resources
from typing import NamedTuple

REFUSAL_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
"""HTTP statuses with which servers refuse a part of a request; other statuses have causes of their own."""
ALL_BOUNDS = "*"
"""Stands for all keywords that bound a length or a number, if a server does not say which one it refuses."""
ANY_FORM = "any"
"""Stands for the form that was requested, if a server does not name it."""
MAX_NESTED_BODIES = 3
"""Depth to which a text that is itself a JSON document is read, as routers pass on another provider's error."""
ECHO_FIELDS = frozenset({"input", "failed_generation", "ctx"})
"""Fields of an error that repeat the request or the model's text, whose words say nothing about the server."""


class Feature(StrEnum):
    """Part of a request that a server can refuse."""

    PARAM = "param"
    """A request parameter."""
    KEYWORD = "keyword"
    """A keyword of the JSON schema, or `strict` for the strict mode."""
    FORM = "form"
    """A form of structured answers: `json_schema`, `json_object` or `tool`."""
    WHOLE_ANSWER = "whole_answer"
    """An answer in one piece: the server only streams."""


class Refusal(NamedTuple):
    """A feature that a message refuses, by the name that the message has for it."""

    feature: Feature
    name: str


class RefusalPattern(NamedTuple):
    """Words by which servers refuse a feature.

    Attributes:
        feature: what is refused.
        pattern: its group is the name of what is refused, or a list of names.
        refused: what is refused if the pattern has no group.
        source: where the words are documented or reported, and when.
    """

    feature: Feature
    pattern: re.Pattern[str]
    refused: str
    source: str


OTHER_CAUSES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "invalid_json_written": r"json_validate_failed|tool_use_failed|Failed to (?:validate|generate) JSON",
        "content_filter": r"content[_ ]filter|content management policy|content_policy|ResponsibleAIPolicyViolation"
        r"|usage policy|moderation|flagged",
        "context_length": r"context[_ ](?:length|window)|maximum (?:context|model) len|prompt is too long"
        r"|input is too long|input token count|too many (?:input )?tokens|exceeds? the available context",
        "key": r"(?:invalid|incorrect|missing|expired)[\w -]{0,12}(?:api|x-api|access)[ _-]?key|API key not valid"
        r"|authentication_error|Unauthorized",
        "model": r"model_not_found|model[^.]{0,80}(?:does not exist|not found|not exist|decommissioned)"
        r"|DeploymentNotFound|No such model|unknown model",
        "quota": r"insufficient_quota|credit balance|Insufficient Balance|billing",
    }.items()
}
"""Causes of a refusal that another request form would not remove, by name; they never change a capability."""


@functools.cache
def load_refusal_patterns() -> Mapping[str, RefusalPattern]:
    """All rows of the table, by their names."""
    text = (resources.files("auditor.models") / "refused_features.toml").read_text(encoding="utf-8")
    return {
        name: RefusalPattern(
            Feature(row["feature"]),
            re.compile(row["pattern"], re.IGNORECASE | re.MULTILINE),
            row.get("refused", ""),
            row["source"],
        )
        for name, row in tomllib.loads(text).items()
    }


def find_refusals(text: str) -> tuple[Refusal, ...]:
    """Find the features that an error message refuses; none if the message has another cause."""
    if any(words.search(text) for words in OTHER_CAUSES.values()):
        return ()
    refusals = [
        Refusal(row.feature, name)
        for row in load_refusal_patterns().values()
        for match in row.pattern.finditer(text)
        for name in (re.findall(r"[\w.]+", " ".join(filter(None, match.groups()))) or [row.refused])
    ]
    return tuple(dict.fromkeys(refusals))


def flatten_error(body: str) -> str:
    """The texts of an error's body: one line for each object, with its fields as `name: text; name: text`.

    Fields that repeat the request or the model's text are left out. A body that is not JSON is returned unchanged.
    """
    document = _parse_document(body)
    return body if document is None else "\n".join(_iter_lines(document, MAX_NESTED_BODIES)) or body


def _parse_document(text: object) -> object:
    """The object or list of a text that is a JSON document; None for anything else."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _iter_lines(document: object, depth: int) -> Iterator[str]:
    """Yield one line for each object of a JSON document, and of JSON documents that are texts in it."""
    if isinstance(document, list):
        for entry in document:
            yield from _iter_lines(entry, depth)
    elif isinstance(document, dict):
        fields = {name: field for name, field in document.items() if name not in ECHO_FIELDS}
        line = "; ".join(f"{name}: {text}" for name, field in fields.items() if (text := _field_text(field)))
        if line:
            yield line
        for field in fields.values():
            yield from _iter_lines(field, depth)
    elif (nested_document := _parse_document(document)) is not None and depth > 1:
        yield from _iter_lines(nested_document, depth - 1)


def _field_text(field: object) -> str:
    """Text of a simple field; a path, such as the list of `body` and `seed`, is joined by dots; else empty."""
    if isinstance(field, list) and field and all(isinstance(part, (str, int)) for part in field):
        return ".".join(map(str, field))
    is_simple = isinstance(field, (str, int, float)) and _parse_document(field) is None
    return str(field) if is_simple else ""
