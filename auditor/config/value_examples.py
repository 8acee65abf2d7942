"""Valid examples of settings as TOML or YAML, for error messages: `samples = 5` or `samples: 5`."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from auditor.config.type_descriptions import NUMBER_BOUNDS, field_types, find_field, union_members, unwrap_annotation

Syntax = Literal["toml", "yaml"]
"""Format of a configuration file."""
SEPARATORS: Mapping[Syntax, str] = {"toml": " = ", "yaml": ": "}
"""What stands between a key and its value."""

_VALUES: Mapping[str, Any] = {
    "name": "gpt-4o",
    "model": "openai/gpt-4o",
    "api_key": "os.environ/OPENAI_API_KEY",
    "api_base": "http://localhost:8000/v1",
    "base_model": "azure/gpt-4o",
    "bucket": "gs://my-bucket/audits",
    "effort": "low",
    "family": "meta",
    "answers": "answers.csv",
    "weights": "models/llama.gguf",
    "review_prompt": "review.md",
    "params": {"top_p": 0.9},
    "attributes": {"parameters": "7B", "tuning": "instruct"},
    "non_inferiority": {"baseline": "before", "margin": 0.05},
    "baseline": "before",
    "price": {"input": 2.5, "output": 10.0},
    "dropped_keywords": ["minLength"],
    "source": "wvs7-sample",
    "countries": ["Germany", "Japan"],
    "topics": ["divorce", "abortion"],
    "options": ["yes", "no"],
    "range": [0.0, 10.0],
    "storage": "sqlite:///auditor.db",
    "endpoint": "http://localhost:4318",
    "headers": {"x-api-key": "os.environ/COLLECTOR_KEY"},
    "ray_address": "head.example.org:6379",
    "question": {"en": "How acceptable is {topic} to people in {country}?"},
    "scale": {"en": ["never acceptable", "always acceptable"]},
    "encoder": "all-MiniLM-L6-v2",
    "language": ["en", "native"],
    **dict.fromkeys(("judge", "rewriter", "paraphraser", "translator", "rot_model", "contradiction"), "gpt-4o"),
}
"""Values of settings whose type does not say what a sensible value is, by key."""
_VALUES_BY_SECTION: Mapping[tuple[str, str], Any] = {
    ("AuditConfig", "name"): "my-audit",
    ("AuditConfig", "task"): {"source": "items.csv", "answer": "exact"},
    ("EmbeddingSection", "model"): "all-MiniLM-L6-v2",
    ("PanelSection", "weights"): {"gpt-4o": 1.0},
    ("Rephrasing", "topics"): {"divorce": {"en": "ending a marriage"}},
    ("TaskSection", "source"): "items.csv",
}
"""The same for keys that mean something else in one section."""


def format_examples(parent_type: Any, key: str, annotation: Any, syntax: Syntax = "toml") -> str:
    """Valid settings, one for each form that a value may have, joined by " or "; empty if none is known.

    Args:
        parent_type: section that has the key.
        key: the key.
        annotation: type of its value.
        syntax: format of the file.
    """
    values = _find_values(parent_type, key, annotation)
    return " or ".join(dict.fromkeys(format_setting(key, value, syntax) for value in values))


def format_item_example(annotation: Any, syntax: Syntax = "toml") -> str:
    """A valid item of a list, or value of a free table."""
    return format_value(_build_value(annotation), syntax)


def format_setting(key: str, value: Any, syntax: Syntax) -> str:
    """Format a key with its value on one line."""
    return f"{key}{SEPARATORS[syntax]}{format_value(value, syntax)}"


def _find_values(parent_type: Any, key: str, annotation: Any) -> Iterator[Any]:
    """Yield a value for each member of a union: a listed one, else the default, else one that the type suggests."""
    section_name = getattr(unwrap_annotation(parent_type)[0], "__name__", "")
    field = find_field(parent_type, key)
    listed_value = _VALUES_BY_SECTION.get((section_name, key), _VALUES.get(key))
    default = None if field is None or field.is_required() else field.default
    members = union_members(unwrap_annotation(annotation)[0])
    for member in members if len(members) > 1 else [annotation]:
        candidates = (listed_value, default, _build_value(member))
        yield from [value for value in candidates if value not in (None, [], {}) and _is_valid(member, value)][:1]


def _is_valid(annotation: Any, value: Any) -> bool:
    """Whether pydantic accepts a value of JSON for a type."""
    try:
        TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return False
    return isinstance(value, str | bool | int | float | list | dict | date)


def _build_value(annotation: Any) -> Any:
    """A value that a type suggests; of a section, a table with its required keys."""
    base, constraints = unwrap_annotation(annotation)
    origin, arguments = typing.get_origin(base), typing.get_args(base)
    if len(members := union_members(base)) > 1:
        return _build_value(members[0])
    if base in (int, float):
        return _number_within(constraints, base)
    if fields := field_types(base):
        shown_keys = [key for key in fields if _is_required(base, key)] or list(fields)[:1]
        values = {key: next(_find_values(base, key, fields[key]), None) for key in shown_keys}
        return {key: value for key, value in values.items() if value is not None}
    if origin is tuple and Ellipsis not in arguments:
        return [_build_value(argument) for argument in arguments]
    if origin in (list, tuple, set, frozenset):
        return [_build_value(arguments[0])]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"name": _build_value(arguments[1])}
    return arguments[0] if origin is Literal else {bool: True, date: date(2026, 7, 1)}.get(base, "text")


def _is_required(section: Any, key: str) -> bool:
    """Whether a section needs a key."""
    field = find_field(section, key)
    return field is not None and field.is_required()


def _number_within(constraints: Sequence[Any], kind: type) -> float:
    """A number within bounds: a whole one just above the lower bound, any other in the middle."""
    bounds = {
        name: bound
        for constraint in constraints
        for name in NUMBER_BOUNDS
        if (bound := getattr(constraint, name, None)) is not None
    }
    low: float = bounds.get("ge", bounds.get("gt", 0))
    high: float | None = bounds.get("le", bounds.get("lt"))
    if kind is int:
        return low + 1 if "gt" in bounds else max(low, 1)
    return (max(low, 0) + high) / 2 if high is not None else low + 1.0


def format_value(value: Any, syntax: Syntax = "toml") -> str:
    """Format a value on one line; escapes in a quoted string are those of JSON in both formats."""
    if isinstance(value, dict):
        settings = ", ".join(format_setting(key, child, syntax) for key, child in value.items())
        return f"{{ {settings} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(format_value(item, syntax) for item in value)}]"
    return value.isoformat() if isinstance(value, date) else json.dumps(value, ensure_ascii=False)
