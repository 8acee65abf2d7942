"""The JSON paths of the estimates in a report: by its JSON Schema, and in a report itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.report_model import ReportModel, list_publications

INTERVAL_KEY = "ci_low"
"""The end of the keys that hold the lower end of an interval."""


def iterate_schema_paths(schema: Mapping[str, Any]) -> Iterator[str]:
    """The paths of all estimates that a report can have, such as `.alignment[].mae`, without repetition.

    An estimate is an object with a value and the ends of an interval. Second intervals of estimates, and rows that have
    the ends of an interval as keys of their own, count too, by the key of the lower end.
    """
    yield from dict.fromkeys(_walk_schema(schema, schema, "", ()))


def _walk_schema(
    node: Mapping[str, Any], schema: Mapping[str, Any], path: str, parents: tuple[str, ...]
) -> Iterator[str]:
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name not in parents:
            yield from _walk_schema(schema["$defs"][name], schema, path, (*parents, name))
        return
    properties = node.get("properties", {})
    is_estimate = {"value", "n", INTERVAL_KEY} <= set(properties)
    if is_estimate:
        yield path
    for key, value in properties.items():
        if key.endswith(INTERVAL_KEY) and not (is_estimate and key == INTERVAL_KEY):
            yield f"{path}.{key}"
        yield from _walk_schema(value, schema, f"{path}.{key}", parents)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for option in node.get(keyword, ()):
            yield from _walk_schema(option, schema, path, parents)
    for keyword, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(node.get(keyword), Mapping):
            yield from _walk_schema(node[keyword], schema, f"{path}{suffix}", parents)
    for item in node.get("prefixItems", ()):
        yield from _walk_schema(item, schema, f"{path}[]", parents)


def iterate_estimates(document: object, path: str = "") -> Iterator[tuple[str, Estimate]]:
    """All estimates in a report or in a part of it, with their paths in JSON."""
    if isinstance(document, Estimate):
        yield path, document
    if isinstance(document, BaseModel):
        publications = list_publications(type(document)) if isinstance(document, ReportModel) else {}
        for name in type(document).model_fields:
            value = getattr(document, name)
            keys: Mapping[str, str] = {}
            if name in publications and publications[name].base is None:
                keys = publications[name].keys
                if not isinstance(value, Estimate):  # a record, whose attributes are keys of the row
                    for part, key in keys.items():
                        yield from iterate_estimates(getattr(value, part), f"{path}.{key}")
                    continue
            yield from iterate_estimates(value, f"{path}.{keys.get(INTERVAL_KEY, name)}")
    elif is_dataclass(document) and not isinstance(document, type):
        for attribute in fields(document):
            yield from iterate_estimates(getattr(document, attribute.name), f"{path}.{attribute.name}")
    elif isinstance(document, Mapping):
        for value in document.values():
            yield from iterate_estimates(value, f"{path}{{}}")
    elif isinstance(document, list | tuple):
        for value in document:
            yield from iterate_estimates(value, f"{path}[]")
