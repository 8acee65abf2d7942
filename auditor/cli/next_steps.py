"""What `auditor` prints without a command: the next sensible commands for this folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.cli.app import SUMMARY
from auditor.config import load_config
from auditor.console.output import format_command, print_message
from auditor.errors import AuditorError, EmptyStorageError
from auditor.reports.number_format import pluralize
from auditor.run import open_stored_database, resolve_storage_url
from auditor.storage.conflict_status import UNSETTLED
from auditor.storage.database import parse_sqlite_path
from auditor.storage.overview import load_overviews

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.storage.overview import AuditOverview

CONFIG_SUFFIXES = (".toml", ".yaml", ".yml")
MAX_SUGGESTED_CONFIGS = 3


def print_next_steps(commands: Collection[str]) -> None:
    """Print what to do next, by the audits of the default database and the configurations in the working folder.

    Args:
        commands: names of the program's commands; others are not suggested.
    """
    print_message(f"{SUMMARY}\n")
    suggestions = list(_suggest_commands(commands))
    width = max(len(command) for command, _ in suggestions)
    print_message("Next:")
    for command, purpose in suggestions:
        print_message(f"  {command:<{width}}  {purpose}")
    print_message("\nAll commands: auditor --help")


def _suggest_commands(commands: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield commands and purposes: of new configurations, then of the latest real and the latest simulated audit."""
    overviews = _load_overviews()
    configs = _find_configs()
    audit_names = {overview.audit.name for overview in overviews}
    for file in [file for file, config in configs.items() if config.name not in audit_names][:MAX_SUGGESTED_CONFIGS]:
        yield format_command("estimate", file), f"what the audit in {file} would cost"
        yield format_command("run", file), "run it"
    latest_first = sorted(overviews, key=lambda overview: overview.audit.updated_at, reverse=True)
    for is_simulated in (False, True):
        kind = [overview for overview in latest_first if overview.is_simulated == is_simulated]
        for overview in kind[:1]:
            yield from _continue_audit(overview, configs)
    if not configs and all(overview.is_simulated for overview in overviews):
        if not overviews and "demo" in commands:
            yield format_command("demo"), "see a report in half a minute, without a key or network"
        yield format_command("init"), "write a configuration for an audit of your own"
    if len(overviews) > 1:
        yield format_command("status"), f"list all {pluralize(len(overviews), 'audit')}"


def _continue_audit(overview: AuditOverview, configs: Mapping[str, AuditConfig]) -> Iterator[tuple[str, str]]:
    """Yield the commands that continue one audit."""
    name = overview.audit.name
    if not overview.is_finished:
        file = next((file for file, config in configs.items() if config.name == name), "CONFIG")
        yield format_command("run", file), f"resume '{name}', which is not finished"
        yield format_command("status", name), "how far it is"
        return
    n_open = sum(overview.conflicts.get(status, 0) for status in UNSETTLED)
    if n_open:
        yield format_command("review", name), f"decide {pluralize(n_open, 'open conflict')} of '{name}'"
    yield format_command("report", name), f"write the report of '{name}'"


def _load_overviews() -> list[AuditOverview]:
    """Overviews of the audits in the default database; empty if there is no database.

    Raises:
        AuditorError: the database exists and cannot be opened.
    """
    url = resolve_storage_url()
    file = parse_sqlite_path(url)
    if file is not None and not file.exists():
        return []
    try:
        with open_stored_database(url) as db:
            return load_overviews(db)
    except EmptyStorageError:
        return []


def _find_configs() -> dict[str, AuditConfig]:
    """The valid configurations in the working folder, by file name."""
    configs: dict[str, AuditConfig] = {}
    for path in sorted(Path().iterdir()):
        if path.suffix in CONFIG_SUFFIXES and path.is_file():
            try:
                configs[path.name] = load_config(path)
            except AuditorError:
                continue
    return configs
