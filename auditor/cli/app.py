"""The command-line app with all commands, in the groups of its help.

A command's module is imported, and its options are converted, only where it is called or listed. Commands import what
else they need in their functions. At the top of their modules, these imports would load numpy, scipy, langgraph or
httpx (up to 3 s) for `auditor --help`, `status` and `estimate` too.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from auditor.cli.help_groups import (
    GET_STARTED,
    MOVE_DATA,
    RESEARCH,
    RUN_AUDITS,
    SUMMARY,
    USE_RESULTS,
    GroupedCommands,
)
from auditor.input_files import LIMIT_OPTION, set_limit_factor

COMMANDS = {
    GET_STARTED: ("demo:demo", "init:init", "doctor:doctor", "trust:trust"),
    RUN_AUDITS: (
        *("estimate:estimate", "run:run", "status:status"),
        *("failures:errors", "exclusions:exclude", "rereading:reread", "audit_changes:rename", "audit_changes:delete"),
    ),
    USE_RESULTS: (
        *("report:report", "traces:traces", "review:review"),
        *("compare:compare", "check:check", "verification:verify"),
    ),
    RESEARCH: ("replicate:replicate", "graph:graph"),
}
"""Function of each command by group of the help, as its module in this package and its name, which is the command's."""
COMMAND_GROUPS = {
    GET_STARTED: {"models": "models:models_app"},
    MOVE_DATA: {"surveys": "surveys:app", "import": "imports:import_app", "export": "exports:export_app"},
    RESEARCH: {
        "experiment": "experiments:app",
        "logic": "auditor.probes.logic.commands:logic_app",
        "probe": "probe:probe_app",
    },
}
"""Apps of the commands that have commands of their own, by name; one of a built-in probe has its whole path."""
COMMAND_CLASSES = {"review": "labelling:LabelCommand"}
OPTIONS_OF_PROBES = {"check": "check:add_thresholds_of_probes"}
"""What adds the options that probes declare to a command; `auditor --help` shows no options, and loads no probe."""
NAMES = frozenset(path.partition(":")[2] for paths in COMMANDS.values() for path in paths).union(
    *COMMAND_GROUPS.values()
)
"""Names of all commands."""


def _print_version(is_requested: bool) -> None:
    """Print the program's version and exit, if --version was given."""
    if is_requested:
        from auditor import __version__

        typer.echo(__version__)
        raise typer.Exit


def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (or set AUDITOR_DEBUG=1).")
    ] = False,
    input_limit_factor: Annotated[
        float,
        typer.Option(
            LIMIT_OPTION,
            metavar="N",
            min=1,
            help="Multiply the limits of imported files by N, such as 1 GB unpacked and 10,000 columns.",
        ),
    ] = 1.0,
) -> None:
    """Handle the options of the program itself; without a command, show what to do next."""
    set_limit_factor(input_limit_factor)
    if context.invoked_subcommand is None:
        from auditor.cli.next_steps import print_next_steps

        print_next_steps(NAMES)


def build_app(called: str | None = None) -> typer.Typer:
    """Build the app with all commands; with only the called one, if there is a command of that name.

    Args:
        called: first word of the command line, or the empty text; None for all options of all commands.
    """
    app = typer.Typer(
        name="auditor",
        cls=GroupedCommands,
        help=SUMMARY,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    selected = {called} if called in NAMES else NAMES
    for group, paths in COMMANDS.items():
        for path in paths:
            if (name := path.partition(":")[2]) in selected:
                if name in OPTIONS_OF_PROBES and called in (None, name):
                    _load(OPTIONS_OF_PROBES[name])()
                command_class = _load(COMMAND_CLASSES[name]) if name in COMMAND_CLASSES else None
                app.command(name, cls=command_class, rich_help_panel=group)(_load(path))
    for group, apps in COMMAND_GROUPS.items():
        for name, path in apps.items():
            if name in selected:
                app.add_typer(_load(path), rich_help_panel=group)
    return app


def _load(path: str) -> Any:
    """Import a module, of this package without its name, and return what it has under a name; both are in the path."""
    return resolve_name(path if path.startswith("auditor.") else f"{__package__}.{path}")
