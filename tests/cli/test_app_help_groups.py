"""The help lists commands in groups, with one complete line for each."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from auditor.cli.app import GROUPS, build_app
from tests.support.cli_runner import auditor

ROOT: Any = get_command(build_app())
GROUPS_OF_COMMANDS = ["", *(name for name, command in ROOT.commands.items() if hasattr(command, "commands"))]


def subcommands(name: str) -> dict[str, Any]:
    """The commands of the program, or of one of its groups."""
    commands: dict[str, Any] = (ROOT.commands[name] if name else ROOT).commands
    return commands


@pytest.mark.parametrize("name", GROUPS_OF_COMMANDS)
def test_every_command_has_one_line_that_is_not_cut_off(name: str) -> None:
    help_command = auditor(*name.split(), "--help", COLUMNS="80")
    lines = help_command.stdout.splitlines()
    for command_name, command in subcommands(name).items():
        summary = command.get_short_help_str(1000).rstrip()
        assert any(line.split(None, 1) == [command_name, summary] for line in lines), (command_name, summary)
        assert summary.endswith(".")


def test_the_commands_are_in_groups() -> None:
    lines = auditor("--help").stdout.splitlines()
    headings = [line.rstrip(":") for line in lines if line.rstrip(":") in GROUPS]
    assert headings == list(GROUPS)
    assert lines.index("Get started:") < next(i for i, line in enumerate(lines) if line.startswith("  init "))
    assert all(command.rich_help_panel in GROUPS for command in subcommands("").values())
