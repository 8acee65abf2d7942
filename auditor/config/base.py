"""Base classes of the tables of a configuration, and their single settings; of reports, and of structured answers."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

PromptForm = Literal["standard", "paper"]
"""Prompts of this program, or in the form that a paper describes."""


class DocumentedModel(BaseModel):
    """Model whose fields are described by the strings after them: in its JSON schema, and in messages about its values.

    The strings are read when they are asked for. With pydantic's `use_attribute_docstrings` they would be read from the
    source files at import, which took a tenth of the time of `auditor status`.
    """

    # Validators are built at first use: a command needs few of them.
    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, description in read_field_descriptions(cls).items():
            if name in properties:  # a field that is excluded from JSON is not
                properties[name].setdefault("description", description)
        return schema


class ConfigSection(DocumentedModel):
    """A table of the file: frozen, strict about its keys, and without infinite numbers, which JSON has not."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _require_no_boolean(cls, value: Any, info: ValidationInfo) -> Any:
        """Reject true and false as numbers, and numbers as dates; pydantic reads true as 1, and 0 as 1970-01-01."""
        if isinstance(value, (bool, int, float, dict, list, tuple)) and info.field_name is not None:
            require_no_boolean(cls.model_fields[info.field_name].annotation, value)
        return value


def require_no_boolean(annotation: Any, value: Any) -> None:
    """Raise a validation error if a value is true or false where a type has numbers, or a number where it has a date.

    Of a list or table of numbers, its members are checked.
    """
    types = _leaf_types(annotation)
    is_numeric = bool(types & {int, float}) and bool not in types and Any not in types
    if isinstance(value, (int, float)) and date in types:
        raise PydanticKnownError("date_type")
    if isinstance(value, bool) and is_numeric:
        raise PydanticKnownError("float_type")
    members = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if is_numeric and str not in types and any(isinstance(member, bool) for member in members):
        raise ValueError("true and false are not numbers. How to fix: Write a number.")


@cache
def _leaf_types(annotation: Any) -> frozenset[Any]:
    """The types of the values within unions, lists and tables; sections and literals are left as they are."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        arguments = ()
    elif origin is Annotated:
        arguments = arguments[:1]
    elif origin in (dict, Mapping):
        arguments = arguments[1:]
    return frozenset().union(*map(_leaf_types, arguments)) if arguments else frozenset([annotation])


class Structure(BaseModel):
    """Base of the structures of answers: what a model adds beyond one is an error, not a surprise."""

    # Built at their first use, since commands that only read a probe's settings use none.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


def read_field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """The descriptions of a model's fields: the strings after them, or their own; a field without one is left out."""
    descriptions = {name: field.description for name, field in model.model_fields.items() if field.description}
    for base in reversed(model.__mro__):
        if issubclass(base, DocumentedModel):
            descriptions |= read_class_descriptions(base)
    return {name: descriptions[name] for name in model.model_fields if name in descriptions}


@cache
def read_class_descriptions(model: type) -> dict[str, str]:
    """The strings after the annotated names in the body of a class; none if its source cannot be read."""
    try:
        path = inspect.getsourcefile(model)
    except TypeError:
        path = None
    class_definition = _read_classes(path).get(model.__qualname__) if path else None
    descriptions = {}
    for statement, successor in pairwise(class_definition.body if class_definition else ()):
        match statement, successor:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                descriptions[name] = inspect.cleandoc(text)
    return descriptions


@cache
def _read_classes(path: str) -> dict[str, ast.ClassDef]:
    """The classes of a source file by their qualified names, the first of several equal ones; none without the file.

    `inspect.getsource` would parse the file again for each class.
    """
    classes: dict[str, ast.ClassDef] = {}

    def read_body(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                classes.setdefault(f"{prefix}{child.name}", child)
                read_body(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                read_body(child, f"{prefix}{child.name}.<locals>.")
            elif not isinstance(child, ast.expr):
                read_body(child, prefix)

    with suppress(SyntaxError):
        read_body(ast.parse("".join(linecache.getlines(path))), "")
    return classes


def iterate_leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested tables and lists by dotted path.

    A list of tables has its length as a leaf of its own, and its items by name or index, as in `models[gpt].rpm`. Any
    other list is one leaf.
    """
    if isinstance(node, dict):
        for key, child in node.items():
            yield from iterate_leaves(child, f"{path}.{key}" if path else key)
    elif isinstance(node, list) and any(isinstance(child, dict) for child in node):
        yield path, len(node)
        for index, child in enumerate(node):
            name = child.get("name", index) if isinstance(child, dict) else index
            yield from iterate_leaves(child, f"{path}[{name}]")
    else:
        yield path, node
