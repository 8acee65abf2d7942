"""Fills the pages of reference from the program itself, so that they cannot be out of date (a hook of mkdocs)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put what is made in the place of its mark."""
    for mark, make in (("<!-- commands -->", commands), ("<!-- metrics -->", metrics)):
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


def metrics() -> Iterator[str]:
    """Every public metric's docstring."""
    from auditor import metrics as package

    for name in package.__all__:
        found = getattr(package, name)
        if not callable(found):
            continue
        try:
            told = f"{name}{inspect.signature(found)}"
        except ValueError:
            told = name
        yield f"## {name}\n\n```text\n{told}\n\n{inspect.getdoc(found) or ''}\n```\n"
