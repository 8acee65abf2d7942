"""The commands `auditor probe NAME …`, which probes of other packages declare; loaded when they are typed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from auditor.errors import AuditorError

if TYPE_CHECKING:
    from auditor.config.installed_probes import InstalledProbe


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
