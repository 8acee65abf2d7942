"""The command-line app with all commands, in the groups of its help; commands of probes are loaded when typed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from auditor import __version__
from auditor.errors import AuditorError
from auditor.input_files import LIMIT_OPTION, set_limit_factor

if TYPE_CHECKING:
    from auditor.config.installed_probes import InstalledProbe


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


def _name_failures(probe: InstalledProbe, name: str, function: Callable[..., None] | str) -> Callable[..., None]:
    """The function of a command, whose failure names the probe and the command."""
    command: Callable[..., None] = resolve_name(function) if isinstance(function, str) else function

    @functools.wraps(command)
    def run_command(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except (AuditorError, typer.BadParameter, typer.Abort, typer.Exit):
            raise
        except Exception as error:
            raise probe.failure(f"the command '{name}'", error) from error

    return run_command


class ProbeCommands(TyperGroup):
    """One group of commands for each installed probe."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the installed probes; the commands of those with a stage of their own stand elsewhere."""
        from auditor.config.installed_probes import list_built_in_names, list_probe_names

        return [name for name in list_probe_names() if name not in list_built_in_names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The commands of a probe, which is imported now."""
        from auditor.config.installed_probes import load_probe

        if cmd_name not in self.list_commands(ctx):
            return None
        probe = load_probe(cmd_name)
        app = typer.Typer(name=cmd_name, help=f"{probe.title} ({probe.source.package})", no_args_is_help=True)
        try:
            for name, function in probe.probe.commands.items():
                app.command(name)(_name_failures(probe, name, function))
            return typer.main.get_group(app)
        except (ImportError, AttributeError, RuntimeError, TypeError, ValueError) as error:
            raise probe.failure("a command", error) from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the name and the package of each installed probe."""
        from auditor.config.installed_probes import list_probe_sources

        sources = list_probe_sources()
        with formatter.section("Installed probes"):
            formatter.write_dl([(name, sources[name].package) for name in self.list_commands(ctx)] or [("none", "")])


probe_app = typer.Typer(name="probe", cls=ProbeCommands, help="Commands of installed probes.", no_args_is_help=True)


@probe_app.callback()
def _explain() -> None:
    """Run a command that a probe of another package declares.

    Example: auditor probe confidence answers my-audit
    """


class Command(NamedTuple):
    """A command, or an app of commands, before its module is imported: where it is, and its line in `--help`."""

    path: str
    """Its module and its name there; the module without the name of this package, if it is of this package."""
    help: str
    """The first sentence of its help."""
    command_class: str | None = None
    """The class of the command, if it is a special one, written as its path."""


COMMANDS: dict[str, dict[str, Command]] = {
    GET_STARTED: {
        "demo": Command("demo:demo", "Audit simulated models with known properties."),
        "init": Command("init:init", "Write a configuration to start from, as TOML or YAML."),
        "doctor": Command("doctor:doctor", "Check your set-up, and explain how to fix what is wrong."),
        "trust": Command("trust:trust", "Allow your keys to be sent to the servers that a config names."),
        "models": Command("models:models_app", "List and download local models."),
    },
    RUN_AUDITS: {
        "estimate": Command("estimate:estimate", "Estimate the calls, tokens and cost of an audit."),
        "run": Command("run:run", "Run an audit, or resume one."),
        "status": Command("status:status", "Show the progress and the cost of audits."),
        "errors": Command("status:errors", "List why requests failed, and how to fix it."),
        "exclude": Command("audit_changes:exclude", "Declare recorded answers invalid, or undo that."),
        "reread": Command("audit_changes:reread", "Read recorded answers again by the present version of auditor."),
        "rename": Command("audit_changes:rename", "Give an audit another name."),
        "delete": Command("audit_changes:delete", "Delete an audit, after asking for confirmation."),
    },
    USE_RESULTS: {
        "report": Command("report:report", "Write the report as HTML, JSON, Markdown or plain text."),
        "traces": Command("report:traces", "Show what models were asked and answered."),
        "review": Command("review:review", "Review open conflicts, or label a random sample.", "review:LabelCommand"),
        "compare": Command("compare:compare", "Compare models, or two versions of a model."),
        "check": Command("check:check", "Test if each model of an audit meets your thresholds."),
        "verify": Command("verification:verify", "Check that records are complete, and results follow from them."),
    },
    MOVE_DATA: {
        "surveys": Command("surveys:app", "List, preview, import and check surveys of people's answers."),
        "import": Command("imports:import_app", "Import scores, answers or verdicts measured elsewhere."),
        "export": Command("exports:export_app", "Export decisions, tables and plots for other programs."),
    },
    RESEARCH: {
        "replicate": Command("replicate:replicate", "Set the figures of a paper's tables beside your own."),
        "graph": Command("run:graph", "Print the steps of an audit as a Mermaid diagram."),
        "experiment": Command("experiments:app", "Test whether other choices would change the results."),
        "logic": Command(
            "auditor.probes.logic.commands:logic_app", "Repair, convert and rank comparisons of items in pairs."
        ),
        "probe": Command("app:probe_app", "Commands of installed probes."),
    },
}
"""The commands by group of the help, and by name; tests compare each sentence with the help of the command itself."""
OPTIONS_OF_PROBES = {"check": "check:add_thresholds_of_probes"}
"""What adds the options that probes declare to a command; `auditor --help` shows no options, and loads no probe."""
NAMES = frozenset(name for commands in COMMANDS.values() for name in commands)
"""Names of all commands."""


def _print_version(is_requested: bool) -> None:
    """Print the program's version and exit, if --version was given."""
    if is_requested:
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


class CommandsOnCall(GroupedCommands):
    """The commands of the program, of which one is imported when it is called."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return a command; None if there is none of this name."""
        return typer.main.get_group(build_app(cmd_name)).commands[cmd_name] if cmd_name in NAMES else None


def build_app(called: str | None = None) -> typer.Typer:
    """Build the app; commands that are not imported are listed by their line of help.

    Args:
        called: the only command to import; the empty text to import the one that is called, None to import all.
    """
    app = typer.Typer(
        name="auditor",
        cls=GroupedCommands if called or called is None else CommandsOnCall,
        help=SUMMARY,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for group, commands in COMMANDS.items():
        for name, command in commands.items():
            if called in (None, name):
                if name in OPTIONS_OF_PROBES:
                    _load(OPTIONS_OF_PROBES[name])()
                loaded = _load(command.path)
                if isinstance(loaded, typer.Typer):
                    app.add_typer(loaded, name=name, rich_help_panel=group)
                else:
                    command_class = _load(command.command_class) if command.command_class else None
                    app.command(name, cls=command_class, rich_help_panel=group)(loaded)
            else:
                app.command(name, help=command.help, rich_help_panel=group)(_stand_in)
    return app


def _stand_in() -> None:
    """Stands for a command that is listed and not imported."""


def _load(path: str) -> Any:
    """Import a module, of this package without its name, and return what it has under a name; both are in the path."""
    return resolve_name(path if path.startswith("auditor.") else f"{__package__}.{path}")
