"""Read commands from a stream, run them, and print their errors: the loop of the plain-text interfaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TextIO, TypeVar

from auditor.errors import AuditorError, did_you_mean
from auditor.tui.formatting import to_single_line

COMMON_COMMANDS = {"help": "show this list.", "quit": "quit. Everything is saved."}
"""Help text by command of the loop itself."""
QUIT_COMMANDS = ("quit", "q", "exit")


class Printer(Protocol):
    """What commands act on: it prints lines."""

    @property
    def write_line(self) -> Callable[[str], None]:
        """Function that prints one line."""


P = TypeVar("P", bound=Printer)
Commands = Mapping[str, tuple[Callable[[P, str], None], str]]
"""Function and help text by command; the function gets what it acts on, and the rest of the line."""


def make_line_writer(stdout: TextIO) -> Callable[[str], None]:
    """Make a function that prints a line at once, with escapes for characters that the stream cannot encode."""

    def write_line(text: str) -> None:
        encoding = stdout.encoding or "utf-8"
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stdout, flush=True)

    return write_line


def run_commands(target: P, stdin: TextIO, commands: Commands[P], renamed: Mapping[str, str] | None = None) -> None:
    """Run the commands of a stream, one a line, until it ends or a command quits.

    Args:
        renamed: new name of each command that earlier versions had under another name.
    """
    while (command_line := stdin.readline()) and _run_command(target, command_line, commands, renamed or {}):
        pass


def _run_command(target: P, command_line: str, commands: Commands[P], renamed: Mapping[str, str]) -> bool:
    """Run one command line; return False if it quits. Errors are printed, not raised."""
    command, _, argument = command_line.strip().partition(" ")
    if not command:
        return True
    if command in QUIT_COMMANDS:
        return False
    command = renamed.get(command, command)
    if command == "help":
        for name, text in ({name: text for name, (_, text) in commands.items()} | COMMON_COMMANDS).items():
            target.write_line(f"{name}: {text}")
    elif command not in commands:
        suggestion = did_you_mean(command, [*commands, *COMMON_COMMANDS], "'help' lists the commands.")
        target.write_line(f"Unknown command '{to_single_line(command)}'. {suggestion}")
    else:
        try:
            commands[command][0](target, argument.strip())
        except AuditorError as error:
            target.write_line(to_single_line(str(error)))
    return True
