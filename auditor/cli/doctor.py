"""The command `doctor`: check what a run needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from auditor.console.options import JsonOption, LimitOption, SetOption, StorageOption, list_overrides
from auditor.console.output import print_data, print_json, print_message, print_table

TargetArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="CONFIG|AUDIT",
        help="A configuration file, to check what its run needs; or an audit's name, to check its records.",
    ),
]
UpgradeOption: TypeAlias = Annotated[
    bool, typer.Option("--upgrade", help="Upgrade a database of an older version; an SQLite file is copied first.")
]
RolesOption: TypeAlias = Annotated[
    bool,
    typer.Option("--roles", help="Print the SQL that creates a team's user roles on a PostgreSQL server, and exit."),
]
PingOption: TypeAlias = Annotated[
    bool, typer.Option("--ping", help="Ask each model of CONFIG one question, after showing the maximum cost.")
]


def doctor(
    target: TargetArgument = None,
    settings: SetOption = None,
    limit: LimitOption = None,
    upgrade: UpgradeOption = False,
    roles: RolesOption = False,
    ping: PingOption = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check your set-up, and explain how to fix what is wrong.

    With --ping, each model gets one question, and a table shows what its server accepts, its latency and its price.
    This takes at most five requests for each model; nothing is stored. Without --ping, no model is asked. Given the
    name of an audit, this command checks the records of that audit, as `auditor verify` does.

    Example: auditor doctor examples/quickstart.toml
    """
    from auditor.cli.audit_checks import is_audit_name
    from auditor.cli.verification import verify
    from auditor.errors import UsageError

    overrides = list_overrides(settings, limit)
    if target is None and (ping or overrides):
        raise UsageError(f"{'--ping' if ping else '--set'} needs a config.", "Name it: auditor doctor CONFIG")
    if roles:
        from auditor.storage.roles import build_roles_sql

        print_data(build_roles_sql())
        return
    if upgrade:
        _upgrade(storage, target)
    if target is not None and not ping and is_audit_name(target, storage):
        verify(str(target), storage=storage, as_json=as_json)
        return
    _print_checks(target, overrides, storage, ping=ping, as_json=as_json)


def _upgrade(storage: str | None, target: Path | None) -> None:
    """Upgrade the database, that of a config if `target` is one, and print what was done."""
    from auditor.run import locate_audit
    from auditor.storage.database import upgrade_database

    _, location = locate_audit(str(target or ""), storage)
    upgrade = upgrade_database(location.url)
    print_message(str(upgrade or "The database already has this version's tables."))


def _print_checks(
    config: Path | None, overrides: Sequence[str], storage: str | None, *, ping: bool, as_json: bool
) -> None:
    """Print the checks and, with `ping`, what the models answer; exits with 1 if a check or a model failed."""
    from auditor.cli.audit_checks import run_doctor_checks
    from auditor.cli.ping import ping_config, pings_to_json, print_pings

    checks = run_doctor_checks(config, storage, overrides)
    has_failed = any(check.state == "FAIL" for check in checks)
    if not as_json:
        print_table(
            ["", "check", "state", "how to fix"],
            [[check.state, check.name, check.found, check.mend] for check in checks],
        )
    json_document: object = [check._asdict() for check in checks]
    if ping and config is not None:
        plan, results = ping_config(config, overrides)
        has_failed = has_failed or any(result.state == "FAIL" for result in results)
        json_document = {"checks": json_document, **pings_to_json(plan, results)}
        if not as_json:
            print_pings(results)
    if as_json:
        print_json(json_document)
    if has_failed:
        raise typer.Exit(1)
