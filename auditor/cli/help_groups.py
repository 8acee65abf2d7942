"""The groups under which `auditor --help` lists the commands, and their layout in plain text."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

SUMMARY = "Measure how well language models know what people in different countries find morally acceptable."
"""What the program does; the README, the package's description and the documentation say it in the same words."""

GET_STARTED = "Get started"
RUN_AUDITS = "Run audits"
USE_RESULTS = "Use results"
MOVE_DATA = "Data"
RESEARCH = "Research"
GROUPS = (GET_STARTED, RUN_AUDITS, USE_RESULTS, MOVE_DATA, RESEARCH)
"""The groups in the order of the help; a command without one is in the last."""


class GroupedCommands(TyperGroup):
    """A group of commands whose help lists them by `rich_help_panel`, without boxes or colours."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each group, with one line for each command."""
        visible_commands = {name: command for name, command in self.commands.items() if not command.hidden}
        limit = formatter.width - 6 - max(map(len, visible_commands))
        for group in GROUPS:
            rows = [
                (name, command.get_short_help_str(limit))
                for name, command in visible_commands.items()
                if _group_of(command) == group
            ]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def _group_of(command: Any) -> str:
    """The group of a command; the last one if it has none of the known ones."""
    group = getattr(command, "rich_help_panel", None)
    return group if group in GROUPS else GROUPS[-1]
