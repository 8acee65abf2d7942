"""Base class of the models that a report consists of, and the keys under which rows publish the figures they nest."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import (
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import any_schema, plain_serializer_function_ser_schema

from auditor.config.base import DocumentedModel, read_class_descriptions
from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL, Estimate, ShareEstimate, Tested, TestedShare
from auditor.reports.document import Column

ROUNDING_ERROR = 1e-9
"""Figures and scores that differ by less are equal: they are means of decimal fractions."""


class ReportModel(DocumentedModel):
    """Base class of all parts of a report: immutable, without extra keys, nan or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class PublishedAs:
    """Keys of a row that publish attributes of the figure in one of its fields; it is an annotation of that field.

    Attributes:
        keys: the row's key for each attribute of the figure, or path of one, such as "cell.country".
        base: the class whose attributes the figure has in JSON beside these keys; None if the keys replace the figure.
    """

    keys: Mapping[str, str]
    base: type[Estimate] | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the base, which accepts its subclasses and leaves out what they add."""
        if self.base is not None:
            return handler.generate_schema(self.base)
        return any_schema(serialization=plain_serializer_function_ser_schema(lambda _: None))

    def describe_keys(
        self, figure_class: Any, description: str | None, handler: GetJsonSchemaHandler
    ) -> dict[str, dict[str, Any]]:
        """The JSON schema of each key; `description` is that of the field, and describes the figure's value."""
        properties: dict[str, dict[str, Any]] = {}
        for path, key in self.keys.items():
            value_type, text = describe_attribute(figure_class, path)
            # In a list, since the schema of a record is written out in place of a reference where it is not nested.
            schema = handler(TypeAdapter(list[value_type]).core_schema)["items"]  # type: ignore[valid-type]
            properties[key] = schema if "$ref" in schema else schema | {"title": key.replace("_", " ").title()}
            text = description if path == "value" else text
            properties[key] |= {"description": text} if text else {}
        return properties


def get_attribute(record: object, path: str) -> Any:
    """The attribute at a path such as "score.mae"; None where an object on the path is None."""
    for name in path.split("."):
        record = None if record is None else getattr(record, name)
    return record


def find_attribute_type(owner: Any, path: str) -> Any:
    """The type of the attribute or property at a path of a class; the class itself for an empty path."""
    for name in filter(None, path.split(".")):
        owner = drop_none(owner)
        member = getattr(owner, name, None)
        owner = get_type_hints(member.fget)["return"] if isinstance(member, property) else get_type_hints(owner)[name]
    return owner


def describe_attribute(owner: Any, path: str) -> tuple[Any, str | None]:
    """The type of the attribute or property at a path of a class, and its description, if it has one."""
    parent, _, name = path.rpartition(".")
    owner = drop_none(find_attribute_type(owner, parent))
    member = getattr(owner, name, None)
    if isinstance(member, property):
        text = inspect.getdoc(member)
    else:
        text = next(filter(None, (read_class_descriptions(base).get(name) for base in owner.__mro__[:-1])), None)
    return find_attribute_type(owner, name), text


def drop_none(annotation: Any) -> Any:
    """The type of an annotation that also allows None."""
    types = [option for option in get_args(annotation) if option is not NoneType]
    return types[0] if isinstance(annotation, UnionType) and len(types) == 1 else annotation


class FlatRow(ReportModel):
    """A row that publishes attributes of its figures as keys of its own: those of the fields with `PublishedAs`."""

    @model_serializer(mode="wrap")
    def _publish_keys(self, serialize: SerializerFunctionWrapHandler) -> Any:
        published: dict[str, Any] = {}
        publications = list_publications(type(self))
        for name, value in serialize(self).items():
            publication, figure = publications.get(name), getattr(self, name)
            if publication is None or publication.base is not None:
                published[name] = value
            if publication is not None:
                published |= {key: get_attribute(figure, path) for path, key in publication.keys.items()}
        return published

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        nested_schema = {key: value for key, value in core_schema.items() if key != "serialization"}
        schema = super().__get_pydantic_json_schema__(nested_schema, handler)
        resolved = handler.resolve_ref_schema(schema)
        nested_properties, resolved["properties"] = resolved["properties"], {}
        for name, json_schema in nested_properties.items():
            publication, properties = list_publications(cls).get(name), {name: json_schema}
            if publication is not None:
                figure_class = cls.model_fields[name].annotation
                keys = publication.describe_keys(figure_class, json_schema.get("description"), handler)
                properties = keys if publication.base is None else properties | keys
            if name not in properties:
                resolved["required"] = [key for key in resolved["required"] if key != name] + list(properties)
            resolved["properties"] |= properties
        return schema


@cache
def list_publications(row_class: type[ReportModel]) -> dict[str, PublishedAs]:
    """How the fields of a row publish attributes of their figures; fields that publish none are left out."""
    return {
        name: annotation
        for name, field in row_class.model_fields.items()
        for annotation in field.metadata
        if isinstance(annotation, PublishedAs)
    }


def publish(*names: str, **keys: str) -> PublishedAs:
    """Keys that replace a record: these attributes of it under their own names, those of `keys` under others."""
    return PublishedAs({name: name for name in names} | keys)


class ClaimTest(ReportModel):
    """The test of a claim that several tests must all support (intersection-union)."""

    p_value: float | None
    """The largest p-value of these tests; null if one has none."""
    adjusted_p_value: float | None
    """`p_value` adjusted for all claims of the family (Holm)."""
    test_family: str | None = None
    """The claims that the p-value is adjusted for; null without a test."""

    @property
    def is_significant(self) -> bool:
        """Whether the claim is shown, at the 5% level."""
        return self.is_significant_at(SIGNIFICANCE_LEVEL)

    def is_significant_at(self, level: float) -> bool:
        """Whether any false claim of the family has a probability of at most this level."""
        return self.adjusted_p_value is not None and self.adjusted_p_value < level


P_VALUE_KEYS = publish("p_value", "adjusted_p_value", "test_family").keys
"""The p-values of a row that has one test."""


R_KEYS = {"value": "r", "ci_low": "ci_low", "ci_high": "ci_high", "n": "n", "reason": "reason"}
"""The keys of a row that is about one correlation."""


def interval_keys(value_key: str, prefix: str) -> PublishedAs:
    """Keys that replace an estimate: its value, and its interval with a prefix."""
    return PublishedAs({"value": value_key, "ci_low": f"{prefix}_ci_low", "ci_high": f"{prefix}_ci_high"})


RowTest = Annotated[Tested, PublishedAs(P_VALUE_KEYS, Estimate)]
"""The one test of a row, which publishes the p-values beside the estimate."""
RowShareTest = Annotated[TestedShare, PublishedAs(P_VALUE_KEYS, ShareEstimate)]

ModelName = Annotated[str, Column("Model", "name")]
JudgeName = Annotated[str, Column("Judge", "name")]


def p_column(title: str = "p (adjusted)", *, table: str = "", path: str = "") -> Column:
    """The column of the p-value of a field's test: the adjusted one, unless the title is "p".

    Args:
        path: of the p-value in the row, where it is not that of the field.
    """
    name = "p_value" if title == "p" else "adjusted_p_value"
    return Column(title, "number", key=name, part=name, path=path, style="p_value", table=table)


CORRELATION_COLUMNS = (
    Column("Correlation"),
    Column("p", part="p_value", style="p_value"),
    Column("Models", part="models"),
    Column("r over single models", part="r_over_models"),
)
"""Columns of a `ModelCorrelation`."""
