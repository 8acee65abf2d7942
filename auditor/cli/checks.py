"""What `auditor doctor` looks at: each thing a run needs, what was found, and how to mend it."""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

from auditor.errors import AuditorError

if TYPE_CHECKING:
    from auditor.config import AuditConfig

SAFE_SQLITE = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""Releases with the mended write-ahead log; older ones can corrupt a file that two processes write at once."""

CONNECT_S = 3.0


class Check(NamedTuple):
    """One thing looked at."""

    state: Literal["ok", "warn", "FAIL"]
    name: str
    found: str
    mend: str = ""


def check_all(config: Path | None, storage: str | None) -> list[Check]:
    """Every check in order; with a config, what that audit needs too."""
    checks = [_python(), *_packages(), _sqlite(), _storage(storage), *_weights()]
    return checks if config is None else [*checks, *_config(config)]


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


def _storage(storage: str | None) -> Check:
    from auditor.run import storage_url
    from auditor.storage.database import open_database, sqlite_path

    url = storage_url(storage)
    try:
        path = sqlite_path(url)
        if path is not None and not path.exists():
            writable = os.access(path.parent, os.W_OK)
            mend = "" if writable else "Choose another with --storage."
            return Check("ok" if writable else "FAIL", "storage", f"{url}, not there yet", mend)
        with open_database(url, create=False):
            return Check("ok", "storage", url)
    except AuditorError as error:
        return Check("FAIL", "storage", error.message, error.mend)


def _weights() -> Iterator[Check]:
    from auditor.models.weights import WeightState, check, known_models

    for status in known_models():
        found = check(status.weights.name)
        good = found.state is WeightState.READY
        name = status.weights.name
        yield Check("ok" if good else "warn", name, found.state.value, "" if good else f"auditor models pull {name}")


def _config(path: Path) -> Iterator[Check]:
    from auditor.agents.semantic.questions import planned_questions
    from auditor.config import load_config
    from auditor.run import planned_survey

    try:
        config = load_config(path)
        cells = config.samples_on(planned_survey(config))
        questions = len(planned_questions(config.probes.semantic)) if config.probes.semantic else 0
    except AuditorError as error:
        yield Check("FAIL", "config", error.message, error.mend)
        return
    told = [f"{len(config.models)} models"]
    if config.survey is not None:
        told += [f"{len(cells)} cells", f"{sum(cells.values()) * len(config.models)} samples"]
    if config.probes.semantic is not None:
        told += [f"{questions} moral questions"]
    yield Check("ok", "config", f"{config.name}: {', '.join(told)}")
    for model in {m.name: m for m in [*config.models, *config.judge_models]}.values():
        if model.api_key is not None:
            yield _key(model.name, model.api_key)
        if model.api_base is not None:
            yield _server(model.name, model.api_base)
    yield from _trust(config)
    if config.limits.budget_usd is not None:
        yield _budget(config)
    yield _encoder(config.embedding.model)


def _key(name: str, reference: str) -> Check:
    from auditor.config import resolve_key

    try:
        resolve_key(reference)
    except AuditorError as error:
        return Check("FAIL", f"key of {name}", error.message, error.mend)
    return Check("ok", f"key of {name}", f"{reference} is set")


def _budget(config: AuditConfig) -> Check:
    from auditor.models.budget import require_prices

    try:
        require_prices({m.name: m for m in [*config.models, *config.judge_models]}.values(), config.limits)
    except AuditorError as error:
        return Check("FAIL", "budget", error.message, error.mend)
    return Check("ok", "budget", f"${config.limits.budget_usd:g}, and every price is known")


def _trust(config: AuditConfig) -> Iterator[Check]:
    from auditor.bootstrap import redirecting
    from auditor.trust import destinations, require_trust

    for name in redirecting():
        yield Check("warn", name, "set, and not heeded", "Name the server in the config, as api_base.")
    try:
        require_trust(config)
    except AuditorError as error:
        yield Check("FAIL", "keys and hosts", error.message, error.mend)
        return
    yield Check("ok", "keys and hosts", destinations(config))


def _server(name: str, url: str) -> Check:
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_S):
            return Check("ok", f"server of {name}", url)
    except (OSError, ValueError) as error:
        return Check("FAIL", f"server of {name}", f"{url}: {error}", "Start the server, or mend api_base.")


def _encoder(model: str) -> Check:
    from auditor.run import NO_ENCODER

    if model == NO_ENCODER:
        return Check("ok", "encoder", "none: self-consistency is not measured")
    from auditor.models.embeddings import check_encoder

    try:
        check_encoder(model)
    except AuditorError as error:
        return Check("FAIL", "encoder", error.message, error.mend)
    return Check("ok", "encoder", model)
