"""The command `doctor`: check what a run needs."""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata, util
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import typer

from auditor.cli.verification import verify
from auditor.config.installed_probes import list_probe_sources, load_probe
from auditor.console.options import JsonOption, LimitOption, SetOption, StorageOption, list_overrides
from auditor.console.output import print_data, print_json, print_message, print_table
from auditor.errors import AuditorError, EmptyStorageError, ProbeError, UsageError
from auditor.models.weights import WeightState, list_weights, verify_weights
from auditor.run import locate_audit, open_stored_database
from auditor.storage.database import parse_sqlite_path, upgrade_database
from auditor.storage.roles import build_roles_sql
from auditor.storage.sqlite_file import list_permissions, refuse_network_filesystem

SAFE_SQLITE_VERSIONS = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""Releases with a fixed write-ahead log; older ones can corrupt a file that two processes write at once."""


class DoctorCheck(NamedTuple):
    """The result of one check.

    Attributes:
        state: whether it passed; a warning does not stop a run.
        name: what was checked.
        found: the state that was found, in words.
        mend: how to fix it; empty if it passed.
    """

    state: Literal["ok", "warn", "FAIL"]
    name: str
    found: str
    mend: str = ""


def check_environment(url: str | None) -> list[DoctorCheck]:
    """Check what every audit needs: Python, packages, SQLite, the database (unless `url` is None) and local weights."""
    storage = [] if url is None else [_check_storage(url), *_check_permissions(url)]
    return [
        _check_python(),
        *_check_packages(),
        _check_sqlite_version(),
        *storage,
        *_check_model_weights(),
        *_check_probes(),
    ]


def _check_python() -> DoctorCheck:
    """Check that the interpreter is Python 3.11 or newer."""
    version = ".".join(map(str, sys.version_info[:3]))
    is_supported = sys.version_info >= (3, 11)
    return DoctorCheck(
        "ok" if is_supported else "FAIL", "Python", version, "" if is_supported else "Use Python 3.11 or newer."
    )


def _check_packages() -> Iterator[DoctorCheck]:
    """Check that the required packages are installed, which fails otherwise, and the optional ones, which warns."""
    for name in ("litellm", "instructor", "langgraph", "sqlmodel", "textual"):
        yield _check_package(name, "FAIL", "Install auditor again: pip install auditor")
    yield _check_package("xllamacpp", "warn", "For embedded models: pip install 'auditor[embedded]'")
    yield _check_package("sentence-transformers", "warn", "For self-consistency: pip install 'auditor[embeddings]'")


def _check_probes() -> Iterator[DoctorCheck]:
    """List the installed probes of other packages; one that cannot be used warns, since only its audits need it."""
    for key, source in list_probe_sources().items():
        version = f"{source.package} {source.version}".strip()
        try:
            if source.problem:
                raise ProbeError(source.problem, f"Rename the probe, or uninstall {source.package}.")
            probe = load_probe(key).probe
        except ProbeError as error:
            yield DoctorCheck("warn", f"probe {source.name}", error.message, error.how_to_fix)
        else:
            yield DoctorCheck("ok", f"probe {source.name}", f"{version}, reader version {probe.reader_version}")


def _check_package(name: str, state_if_missing: Literal["warn", "FAIL"], how_to_fix: str) -> DoctorCheck:
    """Check that a package is installed, and report its version."""
    if util.find_spec(name.replace("-", "_")) is None:
        return DoctorCheck(state_if_missing, name, "not installed", how_to_fix)
    return DoctorCheck("ok", name, metadata.version(name))


def _check_sqlite_version() -> DoctorCheck:
    """The version of SQLite, with a note for those that can corrupt a database; see `SAFE_SQLITE_VERSIONS`.

    It comes with Python, so that most users cannot choose it: this is no warning.
    """
    version = sqlite3.sqlite_version_info
    # The newest fixed release comes first; the others are fixes of older release series, such as 3.50.
    is_safe = version >= SAFE_SQLITE_VERSIONS[0] or any(
        version[:2] == fixed_version[:2] and version >= fixed_version for fixed_version in SAFE_SQLITE_VERSIONS[1:]
    )
    note = "" if is_safe else "; let one process at a time write to a database"
    return DoctorCheck("ok", "SQLite", f"{sqlite3.sqlite_version}{note}")


def _check_storage(url: str) -> DoctorCheck:
    """Check that the database opens, or that a missing SQLite file can be created."""
    try:
        path = parse_sqlite_path(url)
        if path is not None and not path.exists():
            refuse_network_filesystem(path)
            is_writable = os.access(path.parent, os.W_OK)
            how_to_fix = "" if is_writable else "Choose another with --storage."
            return DoctorCheck("ok" if is_writable else "FAIL", "storage", f"{url}, not created yet", how_to_fix)
        with open_stored_database(url) as db:
            return DoctorCheck("ok", "storage", db.url)
    except EmptyStorageError as error:
        return DoctorCheck("ok", "storage", error.message)
    except AuditorError as error:
        return DoctorCheck("FAIL", "storage", error.message, error.how_to_fix)


def _check_permissions(url: str) -> Iterator[DoctorCheck]:
    """Warn if other users of this machine can read the database, which holds all answers and human decisions."""
    with suppress(AuditorError):  # reported above
        path = parse_sqlite_path(url) if os.name == "posix" else None
        readable_files = (
            []
            if path is None
            else [file for file, mode in list_permissions(path) if mode & (stat.S_IRGRP | stat.S_IROTH)]
        )
        if readable_files:
            names = ", ".join(file.name for file in readable_files)
            how_to_fix = f"chmod go-rwx {shlex.join(map(str, readable_files))}"
            yield DoctorCheck("warn", "privacy", f"other users of this machine can read {names}", how_to_fix)


def _check_model_weights() -> Iterator[DoctorCheck]:
    """Check that the weights of each embedded model are on this machine and intact; else warn."""
    for status in list_weights():
        verified_status = verify_weights(status.weights.name)
        is_ready = verified_status.state is WeightState.READY
        name = status.weights.name
        yield DoctorCheck(
            "ok" if is_ready else "warn",
            name,
            verified_status.state.value,
            "" if is_ready else f"auditor models pull {name}",
        )


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
    from auditor.cli.doctor_audit import is_audit_name

    overrides = list_overrides(settings, limit)
    if target is None and (ping or overrides):
        raise UsageError(
            f"{'--ping' if ping else '--set or --limit'} needs a config.", "Name it: auditor doctor CONFIG"
        )
    if roles:
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
    _, location = locate_audit(str(target or ""), storage)
    upgrade = upgrade_database(location.url)
    print_message(str(upgrade or "The database already has this version's tables."))


def _print_checks(
    config: Path | None, overrides: Sequence[str], storage: str | None, *, ping: bool, as_json: bool
) -> None:
    """Print the checks and, with `ping`, what the models answer; exits with 1 if a check or a model failed."""
    from auditor.cli.doctor_audit import ping_config, pings_to_json, print_pings, run_doctor_checks

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
