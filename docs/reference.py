"""Hook of mkdocs: generate the reference pages from the program, so that they are always up to date."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import auditor
from auditor import metrics as metrics_package
from auditor.cli.app import build_app
from auditor.config import AuditConfig
from auditor.config.installed_probes import list_folder_probes

Schema = Mapping[str, Any]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each mark, such as `<!-- commands -->`, by the section that the function of that name generates."""
    for make_section in (commands, configuration, metrics, python):
        mark = f"<!-- {make_section.__name__} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(make_section()))
    return markdown


def commands() -> Iterator[str]:
    """Yield the help text of every command."""
    from typer.main import get_command

    yield from _document_commands(get_command(build_app()), "auditor")


def _document_commands(command: Any, name: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        for subcommand_name, subcommand in sorted(command.commands.items()):
            yield from _document_commands(subcommand, f"{name} {subcommand_name}")
        return
    yield f"## {name}\n\n```text"
    yield inspect.cleandoc(command.help or "")
    yield ""
    for parameter in command.params:
        names = (
            ", ".join(parameter.opts)
            if parameter.param_type_name == "option"
            else (parameter.metavar or parameter.name or "")
        )
        yield f"{names:28} {getattr(parameter, 'help', '') or ''}".rstrip()
    yield "```\n"


def configuration() -> Iterator[str]:
    """Yield a table of the keys for each table of a configuration file."""
    schema = AuditConfig.model_json_schema()
    yield from _document_table("The file", schema, schema["$defs"], "")
    for installed in list_folder_probes():
        settings = installed.probe.settings.model_json_schema()
        path = f"probes.{installed.name}"
        yield from _document_table(f"[{path}]", settings, settings.get("$defs", {}), f"{path}.")


def _document_table(title: str, table: Schema, tables: Schema, path: str) -> Iterator[str]:
    inner_tables = []
    yield f"## {title}\n\n{_format_cell(table.get('description', ''))}\n"
    yield "| Key | Takes | If not set | What it is |\n|---|---|---|---|"
    for key, schema in table["properties"].items():
        table_names = _table_names(schema)
        inner_tables += [(f"{path}{key}", _is_list(schema), name) for name in table_names]
        default = "needed" if key in table.get("required", ()) else _format_default(schema, has_table=bool(table_names))
        yield f"| `{key}` | {_describe_values(schema)} | {default} | {_format_cell(schema.get('description', ''))} |"
    yield ""
    for inner_path, repeated, name in inner_tables:
        if inner_path != "judges":  # as [[models]]
            heading = f"[[{inner_path}]]" if repeated else f"[{inner_path}]"
            yield from _document_table(heading, tables[name], tables, f"{inner_path}.")


def _non_null_schemas(schema: Schema) -> list[Schema]:
    """Schemas of the values that a key takes, without null, which a TOML file cannot hold."""
    alternatives: list[Schema] = schema.get("anyOf", [schema])
    return [alternative for alternative in alternatives if alternative.get("type") != "null"]


def _is_list(schema: Schema) -> bool:
    return any(alternative.get("type") == "array" for alternative in _non_null_schemas(schema))


def _table_names(schema: Schema) -> list[str]:
    item_schemas = [
        part.get("items", part) if part.get("type") == "array" else part for part in _non_null_schemas(schema)
    ]
    return [part["$ref"].rpartition("/")[2] for part in item_schemas if "$ref" in part]


def _describe_values(schema: Schema) -> str:
    return " or ".join(dict.fromkeys(map(_describe_schema, _non_null_schemas(schema))))


def _describe_schema(schema: Schema) -> str:
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    if "$ref" in schema:
        return "table"
    if schema.get("type") == "array":
        items = schema.get("items", {})
        return f"list of {_pluralize(_describe_values(items))}" if items else "list"
    return {"string": "text", "boolean": "true, false", "object": "table"}.get(
        schema.get("type", ""), _describe_number(schema)
    )


def _pluralize(kind: str) -> str:
    return {"text": "texts", "table": "tables"}.get(kind, kind)


def _describe_number(schema: Schema) -> str:
    if schema.get("type") not in ("integer", "number"):
        return "any"
    name = "whole number" if schema["type"] == "integer" else "number"
    bounds = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
    bound_phrases = ", ".join(f"{sign} {schema[key]:g}" for key, sign in bounds if key in schema)
    return f"{name} {bound_phrases}".strip()


def _format_default(schema: Schema, *, has_table: bool) -> str:
    default = schema.get("default")
    if default is None or default in ({}, []) or (has_table and not isinstance(default, str)):
        return ""
    return f"`{json.dumps(default)}`"


def _format_cell(text: str) -> str:
    """Format a text as a cell of a Markdown table, on one line."""
    return " ".join(text.split()).replace("|", "\\|")


def metrics() -> Iterator[str]:
    """Yield the signature and the docstring of every public metric."""
    for name in metrics_package.__all__:  # type: ignore[attr-defined]  # by lazy_imports
        member = getattr(metrics_package, name)
        if callable(member):
            yield from _document(name, member)


def python() -> Iterator[str]:
    """Yield the documentation of the package's public functions, and of the members of `AuditHandle`."""
    for name in ("run_audit", "open_audit", "load_config"):
        yield from _document(name, getattr(auditor, name))
    handle = auditor.AuditHandle
    yield f"## AuditHandle\n\n```text\n{inspect.getdoc(handle)}\n```\n"
    for name, member in vars(handle).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            yield from _document(f"AuditHandle.{name}", member)


def _document(name: str, member: Any) -> Iterator[str]:
    try:
        signature = f"{name}{inspect.signature(member)}"
    except (ValueError, TypeError):  # a property has none
        signature = name
    yield f"## {name}\n\n```text\n{signature}\n\n{inspect.getdoc(member) or ''}\n```\n"
