"""The command-line app with all commands, in the groups of its help.

Commands import what they need in their functions. At the top of their modules, these imports would load numpy, scipy,
langgraph or httpx (up to 3 s) for every command, and for `auditor --help`, `status` and `estimate` too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from typer.core import TyperCommand

from auditor.cli import experiments, surveys
from auditor.cli.audit_changes import delete, rename
from auditor.cli.check import check
from auditor.cli.compare import compare
from auditor.cli.demo import demo
from auditor.cli.doctor import doctor
from auditor.cli.estimate import estimate
from auditor.cli.exports import export_app
from auditor.cli.failures import errors
from auditor.cli.graph import graph
from auditor.cli.help_groups import (
    GET_STARTED,
    MOVE_DATA,
    RESEARCH,
    RUN_AUDITS,
    SUMMARY,
    USE_RESULTS,
    GroupedCommands,
)
from auditor.cli.imports import import_app
from auditor.cli.init import init
from auditor.cli.labelling import SampleCommand
from auditor.cli.logic import logic_app
from auditor.cli.models import models_app
from auditor.cli.opinion_imports import import_opinions
from auditor.cli.replicate import replicate
from auditor.cli.report import report
from auditor.cli.review import review
from auditor.cli.run import run
from auditor.cli.status import status
from auditor.cli.traces import traces
from auditor.cli.trust import trust
from auditor.cli.verification import verify

COMMANDS = {
    GET_STARTED: (demo, init, doctor, trust),
    RUN_AUDITS: (estimate, run, status, errors, rename, delete),
    USE_RESULTS: (report, traces, review, compare, check, verify),
    RESEARCH: (replicate, graph),
}
COMMAND_CLASSES: dict[Callable[..., None], type[TyperCommand]] = {review: SampleCommand}
COMMAND_GROUPS = {
    GET_STARTED: (models_app,),
    MOVE_DATA: (surveys.app, import_app, export_app),
    RESEARCH: (experiments.app, logic_app),
}

import_app.command("opinions")(import_opinions)

app = typer.Typer(
    name="auditor",
    cls=GroupedCommands,
    help=SUMMARY,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    """Print the program's version and exit, if --version was given."""
    if is_requested:
        from auditor import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (or set AUDITOR_DEBUG=1).")
    ] = False,
) -> None:
    """Handle the options of the program itself; without a command, show what to do next."""
    if context.invoked_subcommand is None:
        from auditor.cli.next_steps import print_next_steps

        print_next_steps(getattr(context.command, "commands", {}))


for _group, _commands in COMMANDS.items():
    for _command in _commands:
        app.command(rich_help_panel=_group, cls=COMMAND_CLASSES.get(_command))(_command)
for _group, _apps in COMMAND_GROUPS.items():
    for _app in _apps:
        app.add_typer(_app, rich_help_panel=_group)
