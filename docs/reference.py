"""Fills the pages of reference from the program itself, so that they cannot be out of date (a hook of mkdocs)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put what is made in the place of its mark."""
    for make in (commands, configuration, metrics, python):
        mark = f"<!-- {make.__name__} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(make()))
    return markdown


def commands() -> Iterator[str]:
    """Every command's help, word for word."""
    from typer.main import get_command

    from auditor.cli.app import app

    yield from _commands(get_command(app), "auditor")


def _commands(command: Any, name: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        for word, sub in sorted(command.commands.items()):
            yield from _commands(sub, f"{name} {word}")
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
    """Every key of a configuration file, table by table."""
    from auditor.config import AuditConfig

    schema = AuditConfig.model_json_schema()
    yield from _table("The file", schema, schema["$defs"], "")


def _table(title: str, table: Schema, tables: Schema, path: str) -> Iterator[str]:
    inner = []
    yield f"## {title}\n\n{_line(table.get('description', ''))}\n"
    yield "| Key | Takes | If not set | What it is |\n|---|---|---|---|"
    for key, value in table["properties"].items():
        names = _tables_in(value)
        inner += [(f"{path}{key}", _is_list(value), name) for name in names]
        default = "needed" if key in table.get("required", ()) else _default(value, has_table=bool(names))
        yield f"| `{key}` | {_takes(value)} | {default} | {_line(value.get('description', ''))} |"
    yield ""
    for inner_path, repeated, name in inner:
        if inner_path != "judges":  # as [[models]]
            heading = f"[[{inner_path}]]" if repeated else f"[{inner_path}]"
            yield from _table(heading, tables[name], tables, f"{inner_path}.")


def _parts(value: Schema) -> list[Schema]:
    """What a key takes, one by one, but for null, which a file cannot say."""
    parts: list[Schema] = value.get("anyOf", [value])
    return [part for part in parts if part.get("type") != "null"]


def _is_list(value: Schema) -> bool:
    return any(part.get("type") == "array" for part in _parts(value))


def _tables_in(value: Schema) -> list[str]:
    found = [part.get("items", part) if part.get("type") == "array" else part for part in _parts(value)]
    return [part["$ref"].rpartition("/")[2] for part in found if "$ref" in part]


def _takes(value: Schema) -> str:
    return " or ".join(dict.fromkeys(map(_kind, _parts(value))))


def _kind(part: Schema) -> str:
    if "const" in part or "enum" in part:
        return ", ".join(f"`{json.dumps(word)}`" for word in part.get("enum", [part.get("const")]))
    if "$ref" in part:
        return "table"
    if part.get("type") == "array":
        items = part.get("items", {})
        return f"list of {_plural(_takes(items))}" if items else "list"
    return {"string": "text", "boolean": "true, false", "object": "table"}.get(part.get("type", ""), _number(part))


def _plural(kind: str) -> str:
    return {"text": "texts", "table": "tables"}.get(kind, kind)


def _number(part: Schema) -> str:
    if part.get("type") not in ("integer", "number"):
        return "any"
    name = "whole number" if part["type"] == "integer" else "number"
    bounds = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
    told = ", ".join(f"{sign} {part[key]:g}" for key, sign in bounds if key in part)
    return f"{name} {told}".strip()


def _default(value: Schema, *, has_table: bool) -> str:
    default = value.get("default")
    if default is None or default in ({}, []) or (has_table and not isinstance(default, str)):
        return ""
    return f"`{json.dumps(default)}`"


def _line(text: str) -> str:
    """As one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def metrics() -> Iterator[str]:
    """Every public metric's docstring."""
    from auditor import metrics as package

    for name in package.__all__:
        found = getattr(package, name)
        if callable(found):
            yield from _documented(name, found)


def python() -> Iterator[str]:
    """The package's public names, and what an audit in hand can do."""
    import auditor

    for name in ("run_audit", "open_audit", "load_config"):
        yield from _documented(name, getattr(auditor, name))
    handle = auditor.AuditHandle
    yield f"## AuditHandle\n\n```text\n{inspect.getdoc(handle)}\n```\n"
    for name, member in vars(handle).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            yield from _documented(f"AuditHandle.{name}", member)


def _documented(name: str, found: Any) -> Iterator[str]:
    try:
        told = f"{name}{inspect.signature(found)}"
    except (ValueError, TypeError):  # a property has none
        told = name
    yield f"## {name}\n\n```text\n{told}\n\n{inspect.getdoc(found) or ''}\n```\n"
