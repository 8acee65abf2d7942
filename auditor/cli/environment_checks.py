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

SAFE_SQLITE = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""Releases with the mended write-ahead log; older ones can corrupt a file that two processes write at once."""


class Check(NamedTuple):
    """One thing looked at."""

    state: Literal["ok", "warn", "FAIL"]
    name: str
    found: str
    mend: str = ""


def check_machine(url: str | None) -> list[Check]:
    """What any audit needs, with a database at this URL; None opens none."""
    storage = [] if url is None else [_storage(url), *_permissions(url)]
    return [_python(), *_packages(), _sqlite(), *storage, *_weights()]


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    return Check("ok" if good else "FAIL", "Python", found, "" if good else "Use Python 3.11 or newer.")


def _packages() -> Iterator[Check]:
    for name in ("litellm", "instructor", "langgraph", "sqlmodel", "textual"):
        yield _package(name, "FAIL", "Install auditor again: pip install auditor")
    yield _package("xllamacpp", "warn", "For embedded models: pip install 'auditor[embedded]'")
    yield _package("sentence-transformers", "warn", "For self-consistency: pip install 'auditor[embeddings]'")


def _package(name: str, missing: Literal["warn", "FAIL"], mend: str) -> Check:
    if util.find_spec(name.replace("-", "_")) is None:
        return Check(missing, name, "not installed", mend)
    return Check("ok", name, metadata.version(name))


def _sqlite() -> Check:
    version = sqlite3.sqlite_version_info
    safe = version >= SAFE_SQLITE[0] or any(version[:2] == s[:2] and version >= s for s in SAFE_SQLITE[1:])
    mend = "" if safe else "Do not let two processes write to one database at once, or use a newer SQLite."
    return Check("ok" if safe else "warn", "SQLite", sqlite3.sqlite_version, mend)


def _storage(url: str) -> Check:
    from auditor.storage.database import open_database, sqlite_path
    from auditor.storage.filesystems import refuse_network

    try:
        path = sqlite_path(url)
        if path is not None and not path.exists():
            refuse_network(path)
            writable = os.access(path.parent, os.W_OK)
            mend = "" if writable else "Choose another with --storage."
            return Check("ok" if writable else "FAIL", "storage", f"{url}, not there yet", mend)
        with open_database(url, create=False) as db:
            return Check("ok", "storage", db.url)
    except EmptyStorageError as error:
        return Check("ok", "storage", error.message)
    except AuditorError as error:
        return Check("FAIL", "storage", error.message, error.mend)


def _permissions(url: str) -> Iterator[Check]:
    """A database holds every answer and what people decided: on a machine of many users, others should not read it."""
    from auditor.storage.database import sqlite_path
    from auditor.storage.sqlite_file import permissions

    with suppress(AuditorError):  # reported above
        path = sqlite_path(url) if os.name == "posix" else None
        readable = [] if path is None else [f for f, mode in permissions(path) if mode & (stat.S_IRGRP | stat.S_IROTH)]
        if readable:
            names = ", ".join(file.name for file in readable)
            how_to_fix = f"chmod go-rwx {shlex.join(map(str, readable))}"
            yield Check("warn", "privacy", f"other users of this machine can read {names}", how_to_fix)


def _weights() -> Iterator[Check]:
    from auditor.models.weights import WeightState, check, known_models

    for status in known_models():
        found = check(status.weights.name)
        good = found.state is WeightState.READY
        name = status.weights.name
        yield Check("ok" if good else "warn", name, found.state.value, "" if good else f"auditor models pull {name}")
