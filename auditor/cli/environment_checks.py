"""What `auditor doctor` looks at: each thing a run needs, what was found, and how to mend it."""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata, util
from typing import Literal, NamedTuple

from auditor.errors import AuditorError, EmptyStorageError

SAFE_SQLITE_VERSIONS = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""Releases with the mended write-ahead log; older ones can corrupt a file that two processes write at once."""


class DoctorCheck(NamedTuple):
    """One thing looked at."""

    state: Literal["ok", "warn", "FAIL"]
    name: str
    found: str
    mend: str = ""


def check_environment(url: str | None) -> list[DoctorCheck]:
    """What any audit needs, with a database at this URL; None opens none."""
    storage = [] if url is None else [_check_storage(url), *_check_permissions(url)]
    return [_check_python(), *_check_packages(), _check_sqlite_version(), *storage, *_check_model_weights()]


def _check_python() -> DoctorCheck:
    found = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    return DoctorCheck("ok" if good else "FAIL", "Python", found, "" if good else "Use Python 3.11 or newer.")


def _check_packages() -> Iterator[DoctorCheck]:
    for name in ("litellm", "instructor", "langgraph", "sqlmodel", "textual"):
        yield _check_package(name, "FAIL", "Install auditor again: pip install auditor")
    yield _check_package("xllamacpp", "warn", "For embedded models: pip install 'auditor[embedded]'")
    yield _check_package("sentence-transformers", "warn", "For self-consistency: pip install 'auditor[embeddings]'")


def _check_package(name: str, state_if_missing: Literal["warn", "FAIL"], how_to_fix: str) -> DoctorCheck:
    if util.find_spec(name.replace("-", "_")) is None:
        return DoctorCheck(state_if_missing, name, "not installed", how_to_fix)
    return DoctorCheck("ok", name, metadata.version(name))


def _check_sqlite_version() -> DoctorCheck:
    version = sqlite3.sqlite_version_info
    safe = version >= SAFE_SQLITE_VERSIONS[0] or any(
        version[:2] == s[:2] and version >= s for s in SAFE_SQLITE_VERSIONS[1:]
    )
    mend = "" if safe else "Do not let two processes write to one database at once, or use a newer SQLite."
    return DoctorCheck("ok" if safe else "warn", "SQLite", sqlite3.sqlite_version, mend)


def _check_storage(url: str) -> DoctorCheck:
    from auditor.storage.database import open_database, sqlite_path
    from auditor.storage.filesystems import refuse_network_filesystem

    try:
        path = sqlite_path(url)
        if path is not None and not path.exists():
            refuse_network_filesystem(path)
            writable = os.access(path.parent, os.W_OK)
            mend = "" if writable else "Choose another with --storage."
            return DoctorCheck("ok" if writable else "FAIL", "storage", f"{url}, not there yet", mend)
        with open_database(url, create=False) as db:
            return DoctorCheck("ok", "storage", db.url)
    except EmptyStorageError as error:
        return DoctorCheck("ok", "storage", error.message)
    except AuditorError as error:
        return DoctorCheck("FAIL", "storage", error.message, error.how_to_fix)


def _check_permissions(url: str) -> Iterator[DoctorCheck]:
    """A database holds every answer and what people decided: on a machine of many users, others should not read it."""
    from auditor.storage.database import sqlite_path
    from auditor.storage.sqlite_file import list_permissions

    with suppress(AuditorError):  # reported above
        path = sqlite_path(url) if os.name == "posix" else None
        readable = (
            [] if path is None else [f for f, mode in list_permissions(path) if mode & (stat.S_IRGRP | stat.S_IROTH)]
        )
        if readable:
            names = ", ".join(file.name for file in readable)
            how_to_fix = f"chmod go-rwx {shlex.join(map(str, readable))}"
            yield DoctorCheck("warn", "privacy", f"other users of this machine can read {names}", how_to_fix)


def _check_model_weights() -> Iterator[DoctorCheck]:
    from auditor.models.weights import WeightState, list_weights, verify_weights

    for status in list_weights():
        found = verify_weights(status.weights.name)
        good = found.state is WeightState.READY
        name = status.weights.name
        yield DoctorCheck(
            "ok" if good else "warn", name, found.state.value, "" if good else f"auditor models pull {name}"
        )
