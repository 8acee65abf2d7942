"""Checks and examples of values in a configuration, and types in words."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from ipaddress import AddressValueError, IPv6Address
from typing import Annotated, Any, Literal, TypeVar, Union
from urllib.parse import urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from auditor.config.credential_hosts import is_metadata_host

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
"""The sentence encoder of audits that name none; it is for English texts."""
PLURAL_NAMES = {"a string": "strings", "a table": "tables", "a whole number": "whole numbers", "a number": "numbers"}
NOT_EMPTY = " that is not empty"
"""Bounds of a text or a list with at least one character or item, as a phrase."""
NUMBER_BOUNDS = ("ge", "gt", "le", "lt")
"""Names under which pydantic keeps the bounds of a number."""
FURTHER_FIELDS = "list_further_fields"
"""Class method of models that take keys without a field of theirs: returns the types of their values, by key."""
SCALAR_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", bytes: "a string"}


def describe_type(annotation: Any) -> str:
    """Describe the values of a type in words, with the bounds that pydantic checks."""
    base, constraints = unwrap_annotation(annotation)
    if _is_union(base):
        return " or ".join(dict.fromkeys(describe_type(member) for member in union_members(base)))
    origin, arguments = typing.get_origin(base), typing.get_args(base)
    if origin is Literal:
        return _join_alternatives([f'"{value}"' if isinstance(value, str) else str(value) for value in arguments])
    if base in SCALAR_NAMES:
        return SCALAR_NAMES[base] + _format_bounds(constraints, " characters" if base is str else "")
    if base is date:
        return "a date such as 2026-07-01"
    if origin is tuple and Ellipsis not in arguments:
        return f"a list of {len(arguments)} values, each {describe_type(arguments[0])}"
    if origin in (list, tuple, set, frozenset):
        item_description = describe_type(arguments[0])
        items = PLURAL_NAMES.get(item_description, f"values, each {item_description}")
        if (bounds := _format_bounds(constraints, " items")) == NOT_EMPTY:
            return f"a non-empty list of {items}"
        return f"a list of {items}{bounds}"
    if field_types(base) or base is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return "a table"
    return "another value"


def type_at_step(annotation: Any, loc_part: str | int, remaining_loc: tuple[str | int, ...]) -> tuple[Any, bool]:
    """Follow one part of an error location of pydantic's into a type.

    Args:
        annotation: the type to start from.
        loc_part: a key, an index in a list, or the name of a branch of a union.
        remaining_loc: the parts after it.

    Returns:
        The inner type (None if unknown), and whether the part was a key or an index rather than a branch.
    """
    base, _ = unwrap_annotation(annotation)
    if _is_union(base):
        return (_select_branch(base, remaining_loc[0]) if remaining_loc else annotation), False
    if fields := field_types(base):
        return fields.get(str(loc_part)), True
    arguments = typing.get_args(base)
    if typing.get_origin(base) is tuple and isinstance(loc_part, int) and loc_part < len(arguments):
        return (arguments[0] if Ellipsis in arguments else arguments[loc_part]), True
    return (arguments[-1] if arguments else None), True


def key_type(annotation: Any) -> Any:
    """Type of the keys of a mapping type, such as str for `dict[str, int]`."""
    return typing.get_args(unwrap_annotation(annotation)[0])[0]


def field_types(annotation: Any) -> dict[str, Any]:
    """Types of the fields of a model or a dataclass, by name; empty for all other types."""
    base, _ = unwrap_annotation(annotation)
    if isinstance(base, type) and issubclass(base, BaseModel):
        further_types: dict[str, Any] = getattr(base, FURTHER_FIELDS, dict)()
        return {name: _annotated_type(field) for name, field in base.model_fields.items()} | further_types
    if dataclasses.is_dataclass(base) and isinstance(base, type):
        return typing.get_type_hints(base, include_extras=True)
    return {}


def find_field(annotation: Any, key: str | int) -> FieldInfo | None:
    """Pydantic's field of a key, which holds its default and description; None if there is none."""
    base, _ = unwrap_annotation(annotation)
    is_model = isinstance(base, type) and issubclass(base, BaseModel)
    return base.model_fields.get(str(key)) if is_model else None


def _annotated_type(field: FieldInfo) -> Any:
    """Type of a field, with its constraints as `Annotated` metadata."""
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def unwrap_annotation(annotation: Any) -> tuple[Any, list[Any]]:
    """Remove `Annotated` and `None` from a type; return it with the constraints that `Annotated` held."""
    constraints: list[Any] = []
    while True:
        if typing.get_origin(annotation) is Annotated:
            annotation, *metadata = typing.get_args(annotation)
            constraints += [
                constraint
                for metadatum in metadata
                for constraint in (metadatum.metadata if isinstance(metadatum, FieldInfo) else [metadatum])
            ]
            continue
        members = union_members(annotation)
        if len(members) != 1 or members[0] is annotation:
            return annotation, constraints
        annotation = members[0]


def union_members(annotation: Any) -> list[Any]:
    """Members of a union without None; a type that is no union is its only member."""
    if typing.get_origin(annotation) not in (Union, types.UnionType):
        return [annotation]
    return [member for member in typing.get_args(annotation) if member is not types.NoneType]


def _is_union(annotation: Any) -> bool:
    """Whether a type has several members besides None."""
    return len(union_members(annotation)) > 1


def _select_branch(union: Any, next_part: str | int) -> Any:
    """Member of a union that the next part of a location can lead into: a list for an index, a table for a key."""
    for member in union_members(union):
        member_type, _ = unwrap_annotation(member)
        is_list = typing.get_origin(member_type) in (list, tuple)
        if is_list if isinstance(next_part, int) else not is_list and describe_type(member_type) == "a table":
            return member
    return None


def _format_bounds(constraints: list[Any], unit: str) -> str:
    """Bounds as a phrase such as ` from 1 to 100`; "" if the constraints have none."""
    bounds = {
        name: value
        for constraint in constraints
        for name in (*NUMBER_BOUNDS, "min_length", "max_length")
        if (value := getattr(constraint, name, None)) is not None
    }
    low, high = bounds.get("ge", bounds.get("min_length")), bounds.get("le", bounds.get("max_length"))
    above, below = bounds.get("gt"), bounds.get("lt")
    if unit and low == 1 and high is None:
        return NOT_EMPTY
    if low is not None and high is not None:
        return f" from {low:,} to {high:,}{unit}"
    bound_phrases = [(above, "greater than"), (low, "at least"), (below, "less than"), (high, "at most")]
    text = " and ".join(f"{word} {value:,}" for value, word in bound_phrases if value is not None)
    preposition = " of" if text.startswith("at ") else ""
    return f"{preposition} {text}{unit}" if text else ""


def _join_alternatives(alternatives: list[str]) -> str:
    """Join phrases with commas and a final `or`."""
    return f"{', '.join(alternatives[:-1])} or {alternatives[-1]}" if len(alternatives) > 1 else alternatives[0]


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
    "encoder": DEFAULT_ENCODER,
    "language": ["en", "native"],
    **dict.fromkeys(("judge", "rewriter", "paraphraser", "translator", "rot_model", "contradiction"), "gpt-4o"),
}
"""Values of settings whose type does not say what a sensible value is, by key."""
_VALUES_BY_SECTION: Mapping[tuple[str, str], Any] = {
    ("AuditConfig", "name"): "my-audit",
    ("AuditConfig", "task"): {"source": "items.csv", "answer": "exact"},
    ("EmbeddingSection", "model"): DEFAULT_ENCODER,
    ("PanelSection", "weights"): {"gpt-4o": 1.0},
    ("Rephrasing", "topics"): {"divorce": {"en": "ending a marriage"}},
    ("TaskSection", "source"): "items.csv",
}
"""The same for keys that mean something else in one section."""
_MAY_BE_EMPTY = frozenset({("AuditConfig", "judges")})
"""Keys whose empty list is a setting of its own: no review."""


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
    if (section_name, key) in _MAY_BE_EMPTY:
        yield []


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


T = TypeVar("T")
EXAMPLE_URL = "http://localhost:8000/v1"


def check_base_url(url: str) -> str:
    """Return the URL of a server if requests can be sent to it.

    Raises:
        ValueError: no http or https, no host, a port out of range, a user name or password, a space or a control
            character, or a metadata service. The message does not show the URL, which may hold a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(f"the URL's host or port is not valid. How to fix: Write it like {EXAMPLE_URL}.") from None
    if any(not char.isprintable() or char.isspace() for char in url):
        raise ValueError("the URL contains a space or an invisible character. How to fix: Remove it.")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"the URL does not begin with http:// or https://. How to fix: Write it like {EXAMPLE_URL}.")
    if "@" in parts.netloc:
        raise ValueError("the URL contains a user name or a password. How to fix: Remove it, and use api_key.")
    if not host or port == 0 or not _is_host(host, parts.netloc):
        raise ValueError(f"the URL has no valid host. How to fix: Write it like {EXAMPLE_URL}.")
    if is_metadata_host(host):
        raise ValueError(
            "the URL leads to a link-local address or a cloud's metadata service, which hands out a machine's "
            f"credentials. How to fix: Write the address of the server, like {EXAMPLE_URL}."
        )
    return url


def _is_host(host: str, netloc: str) -> bool:
    """Whether a host is an IPv6 address in brackets, or a name whose length and labels DNS allows."""
    if netloc.startswith("["):
        try:
            IPv6Address(host)
        except AddressValueError:
            return False
        return netloc.partition("]")[2][:1] in ("", ":")
    # DNS allows 253 characters in a name, and 63 in each of its labels.
    return len(host) <= 253 and all(0 < len(label) <= 63 for label in host.rstrip(".").split("."))


def check_unique(texts: T) -> T:
    """The same value; raises ValueError if it is a list in which a text is repeated."""
    if not isinstance(texts, list):
        return texts
    repeated = [text for text in dict.fromkeys(texts) if texts.count(text) > 1]
    if repeated:
        raise ValueError(f"{', '.join(repeated)} is repeated. How to fix: Name each once.")
    return texts


def check_json_serializable(params: dict[str, Any]) -> dict[str, Any]:
    """Return a model's parameters if JSON can hold them, since they are sent to the provider as JSON.

    Raises:
        ValueError: they hold a date, a time, an infinite number or nan.
    """
    problem = _find_non_json(params)
    if problem is not None:
        raise ValueError(f"{problem} cannot be sent as JSON. How to fix: Use a string or a finite number.")
    return params


def check_headers(params: dict[str, Any]) -> dict[str, Any]:
    """Return a model's parameters if HTTP can hold the headers among them.

    Raises:
        ValueError: the value of a header is no text, or has a line break or a letter outside ASCII.
    """
    headers = params.get("extra_headers")
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if not is_header_text(value):
            raise ValueError(
                f"the header '{name}' in extra_headers cannot be sent. How to fix: Write its value as a text in "
                "quotation marks, without line breaks and letters outside ASCII."
            )
    return params


def is_header_text(value: object) -> bool:
    """Whether a value is a text that an HTTP header can hold: printable ASCII."""
    return isinstance(value, str) and value.isascii() and value.isprintable()


def check_scale_ends(scale: tuple[str, str]) -> tuple[str, str]:
    """Return the words for both ends of a scale; raise ValueError if they are the same."""
    low, high = (" ".join(text.split()).casefold() for text in scale)
    if low == high:
        raise ValueError(
            f"both ends of the scale are {scale[0]!r}. How to fix: Name the meaning of -1, then that of +1"
        )
    return scale


def require_date(text: str) -> None:
    """Raise ValueError for a year, month or day that the calendar does not have, such as 2025-13."""
    try:
        date.fromisoformat(text + "-01-01"[len(text) - len("2025") :])  # a year or a month begins on its first day
    except ValueError:
        raise ValueError(f"'{text}' is not a date of the calendar. How to fix: Write it like 2025-03-01") from None


PARAMETERS, RELEASED = "parameters", "released"
"""Attributes of a model that have a meaning: the number of its parameters, and the date of its release."""
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def check_attributes(attributes: Any) -> Any:
    """Return a model's attributes with `parameters` as a number and all others as texts.

    Raises:
        ValueError: a value is a list, a table or empty, `parameters` is no number above 0, or `released` no date.
    """
    if not isinstance(attributes, dict):
        return attributes
    checked: dict[str, float | str] = {}
    for key, value in attributes.items():
        text = value.isoformat() if isinstance(value, date) else str(value).strip()
        if not isinstance(value, (str, int, float, date)) or not text:
            raise ValueError(f"'{key}' is not a label. How to fix: Write it like tuning = \"instruct\".")
        if key == PARAMETERS:
            checked[key] = _parse_parameters(text)
        elif key == RELEASED and not re.fullmatch(r"\d{4}(-\d{2}(-\d{2})?)?", text):
            raise ValueError("'released' is not a date. How to fix: Write it like released = 2025-03-01.")
        else:
            checked[key] = text
    return checked


def _parse_parameters(text: str) -> float:
    """The number of parameters, such as 7e9 or "7B"; ValueError if it is none above 0."""
    match = re.fullmatch(r"([0-9.]+(?:e\+?[0-9]+)?)\s*([KMBT]?)", text, re.IGNORECASE)
    try:
        number = float(match[1]) * _UNITS[match[2].upper()] if match else 0.0
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise ValueError(
            "'parameters' is not a number above 0. How to fix: Write it like parameters = 7e9, or parameters = \"7B\"."
        )
    return number


def _find_non_json(value: Any) -> str | None:
    """Description of the first nested value that JSON cannot hold; None if there is none."""
    if isinstance(value, dict):
        return next((problem for child in value.values() if (problem := _find_non_json(child))), None)
    if isinstance(value, list):
        return next((problem for child in value if (problem := _find_non_json(child))), None)
    if isinstance(value, float) and not math.isfinite(value):
        return "an infinite number" if math.isinf(value) else "nan"
    return None if value is None or isinstance(value, (str, int, float)) else "a date or a time"
