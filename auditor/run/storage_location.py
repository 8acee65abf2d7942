"""Where results are: the database of a command, of a configuration's audit, and of an argument AUDIT."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from auditor.config import AuditConfig, load_config
from auditor.config.trust import require_trusted_storage
from auditor.file_kinds import SETTINGS_SUFFIXES
from auditor.storage.database import DEFAULT_URL, STORAGE_VARIABLE, Database, parse_sqlite_path
from auditor.storage.engine import remote_servers
from auditor.storage.sqlite_file import holds_audit


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """The database that a command uses.

    Attributes:
        url: its URL; the path of a SQLite file below the working folder is relative to that folder.
        notice: a sentence for the user, if the database is not where it would be expected; else empty.
    """

    url: str
    notice: str = ""


def locate_storage(url: str | None = None, config: AuditConfig | None = None) -> StorageLocation:
    """The database by `url`, else AUDITOR_STORAGE, else the config's `storage`, else `auditor.db` beside the config.

    A relative path in a config is taken from the config's folder. A file of that path in the working folder is used
    instead if it holds an audit of the config's name: earlier versions stored results there. Without a config, the
    database is `auditor.db` in the working folder.

    Raises:
        ConfigError: the URL comes from the config and names a database server that the user has not trusted.
        UsageError: it is not a database URL.
    """
    if requested := url or os.environ.get(STORAGE_VARIABLE):
        return StorageLocation(requested)
    if config is None:
        return StorageLocation(DEFAULT_URL)
    if config.storage:
        require_trusted_storage(remote_servers(config.storage))
    configured = config.storage or DEFAULT_URL
    path = parse_sqlite_path(configured)
    if path is None or path.is_absolute() or config.folder is None:
        return StorageLocation(configured)
    expected = Path(os.path.abspath(config.folder / path))
    if expected.resolve() == path.resolve():
        return StorageLocation(configured)
    scheme, _, location = configured.partition("///")
    _, question_mark, query = location.partition("?")
    shortened = _shorten_path(expected)
    escaped = str(shortened).replace("%", "%25").replace("?", "%3F")
    expected_url = f"{scheme}///{escaped}{question_mark}{query}"
    if holds_audit(path, config.name):
        both = f", although {expected} holds it too" if holds_audit(expected, config.name) else f", not {expected}"
        notice = f"Using the database {path} in the working folder, which holds the audit '{config.name}'{both}."
        return StorageLocation(configured, f"{notice} To choose: --storage {expected_url}")
    return StorageLocation(expected_url)


def _shorten_path(path: Path) -> Path:
    """A path relative to the working folder, if it is below it; else unchanged."""
    folder = Path.cwd()
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def resolve_storage_url(url: str | None = None, config: AuditConfig | None = None) -> str:
    """The URL of `locate_storage`, which may raise ConfigError or UsageError."""
    return locate_storage(url, config).url


def locate_audit(name: str, storage: str | None = None) -> tuple[str, StorageLocation]:
    """Name and database of the audit that an argument AUDIT names: an audit's name, or the path of its config.

    A path ends in .toml, .yaml or .yml, and is that of a file, or has a folder.

    Args:
        name: the argument.
        storage: database URL; as `locate_storage` if None.

    Raises:
        ConfigError: there is no config of that path, or it cannot be used.
    """
    path = Path(name)
    if path.suffix in SETTINGS_SUFFIXES and (path.is_file() or path.parent != Path()):
        config = load_config(path, keeps_missing_probes=True)
        return config.name, locate_storage(storage, config)
    return name, locate_storage(storage)


def describe_database(db: Database, *, is_stored: bool) -> str:
    """Say which database a run uses, and whether it is new.

    Args:
        is_stored: whether the audit was in it before.
    """
    state = "new" if db.is_new else "existing, with this audit" if is_stored else "existing, without this audit so far"
    return f"Database: {db.url} ({state})"
