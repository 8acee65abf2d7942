"""The command-line app with all commands.

Commands import what they need in their functions. At the top of their modules, these imports would load numpy, scipy,
langgraph or httpx (up to 3 s) for every command, and for `auditor --help`, `status` and `estimate` too.
"""

from __future__ import annotations

from typing import Annotated

import typer

from auditor.cli import analysis, audits, demo, exports, failures, imports, logic, setup, verification

app = typer.Typer(
    name="auditor",
    help="Audit the moral alignment of language models across cultures, and show how far the result can be trusted.",
    no_args_is_help=True,
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
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (or set AUDITOR_DEBUG=1).")
    ] = False,
) -> None:
    """Audit the moral alignment of language models across cultures, and show how far the result can be trusted."""


audits.register(app)
demo.register(app)
failures.register(app)
analysis.register(app)
setup.register(app)
imports.register(app)
exports.register(app)
verification.register(app)
logic.register(app)
