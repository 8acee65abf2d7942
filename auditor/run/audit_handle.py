"""Open an audit by its name or its configuration, where its results are, and read them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor.config import AuditConfig, CheckSection, load_config, load_stored_config
from auditor.config.trust import require_trusted_storage
from auditor.file_kinds import SETTINGS_SUFFIXES
from auditor.lazy_imports import import_when_used
from auditor.probe_interface import ProbeResult
from auditor.storage import audits, results
from auditor.storage.database import DEFAULT_URL, STORAGE_VARIABLE, Database, open_database, parse_sqlite_path
from auditor.storage.engine import remote_servers
from auditor.storage.records import load_records
from auditor.storage.sqlite_file import holds_audit

if TYPE_CHECKING:
    from auditor.reports.data.gates.estimates import CheckResult
    from auditor.reports.data.report_schema import Report

if not TYPE_CHECKING:
    build = import_when_used("auditor.reports.data.build")
    gates_check = import_when_used("auditor.reports.data.gates.check")
    notebook = import_when_used("auditor.run.notebook")
else:
    from auditor.reports.data import build
    from auditor.reports.data.gates import check as gates_check
    from auditor.run import notebook


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
    folder = Path.cwd()
    shortened = expected.relative_to(folder) if expected.is_relative_to(folder) else expected
    escaped = str(shortened).replace("%", "%25").replace("?", "%3F")
    expected_url = f"{scheme}///{escaped}{question_mark}{query}"
    if holds_audit(path, config.name):
        both = f", although {expected} holds it too" if holds_audit(expected, config.name) else f", not {expected}"
        notice = f"Using the database {path} in the working folder, which holds the audit '{config.name}'{both}."
        return StorageLocation(configured, f"{notice} To choose: --storage {expected_url}")
    return StorageLocation(expected_url)


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
    config = _load_named_config(name)
    return (name if config is None else config.name), locate_storage(storage, config)


def _load_named_config(name: str) -> AuditConfig | None:
    """The config whose path an argument AUDIT is; None if it is an audit's name. Raises ConfigError."""
    path = Path(name)
    is_path = path.suffix in SETTINGS_SUFFIXES and (path.is_file() or path.parent != Path())
    return load_config(path, keeps_missing_probes=True) if is_path else None


def describe_database(db: Database, *, is_stored: bool) -> str:
    """Say which database a run uses, and whether it is new.

    Args:
        is_stored: whether the audit was in it before.
    """
    state = "new" if db.is_new else "existing, with this audit" if is_stored else "existing, without this audit so far"
    return f"Database: {db.url} ({state})"


def open_stored_database(storage: str | None = None) -> Database:
    """Open a database, which must exist.

    Args:
        storage: its URL; as `resolve_storage_url` if None.

    Raises:
        StorageError: there is no such database, or it is empty.
    """
    return open_database(resolve_storage_url(storage), create=False)


@contextmanager
def open_stored_audit(name: str, storage: str | None = None) -> Iterator[tuple[Database, audits.Audit]]:
    """Open the database of an audit for the time of the context, which gets the database and the audit.

    Args:
        name: the audit's name, or the path of its config.
        storage: database URL; as `resolve_storage_url` if None.

    Raises:
        StorageError: no such database or audit.
        ConfigError: the config cannot be used.
    """
    audit_name, location = locate_audit(name, storage)
    with open_stored_database(location.url) as db:
        yield db, audits.get_audit(db, audit_name)


@dataclass(frozen=True, slots=True)
class AuditHandle:
    """An audit in a database; every call reads the current state."""

    name: str
    storage: str = field(repr=False)
    thresholds: CheckSection | None = field(default=None, repr=False)
    """Those of the config file that named the audit; None for those of its last run."""

    def report(self) -> Report:
        """The audit's report, as data."""
        with open_stored_audit(self.name, self.storage) as (db, audit):
            return build.build_report(db, audit.name)

    def frame(self, table: str, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A table as a data frame: a stored one such as `scores`, or one of the report such as `tiers`."""
        with open_stored_audit(self.name, self.storage) as (db, audit):
            return notebook.load_frame(db, audit.name, table, library)

    def _repr_html_(self) -> str:
        """The audit's summary as HTML, which a notebook shows for the handle."""
        with open_stored_audit(self.name, self.storage) as (db, audit):
            return notebook.render_audit_html(db, audit.name)

    def check(
        self, *, models: Sequence[str] = (), uncorrected: bool = False, **changes: float | bool | None
    ) -> CheckResult:
        """Check the audit against the thresholds of its config, changed by arguments such as `min_pearson=0.6`.

        A config file that named the audit has its present thresholds; else they are those of the last run.

        Each model is decided by itself; `models` selects some. Peer agreement is corrected by people's labels if each
        model has enough of them, unless `uncorrected`. The result is true if every gate passed, and its text names the
        others; see `CheckSection`.
        """
        with open_stored_audit(self.name, self.storage) as (db, audit):
            config = load_stored_config(audit.config)
            stored = config.check if config else CheckSection()
            thresholds = gates_check.resolve_thresholds(self.thresholds or stored, changes)
            return gates_check.check_report(
                build.build_report(db, audit.name), thresholds, use_corrections=not uncorrected, models=models
            )

    def scores(self) -> dict[tuple[str, str, str, str], float | None]:
        """Scores in [-1, 1] by (model, country, topic, method); None if no sample was usable."""
        with open_stored_audit(self.name, self.storage) as (db, audit):
            return {
                (cell_score.model, *cell_score.cell, cell_score.method): cell_score.score
                for cell_score in results.load_scores(db, audit.id)
            }

    def probe_results(self, probe: str) -> list[ProbeResult]:
        """What a probe of another package read from the answers, by model, unit, sample and turn."""
        with open_stored_audit(self.name, self.storage) as (db, audit):
            return load_records(db, audit.id, ProbeResult, probe=probe)


def open_audit(name: str | Path, *, storage: str | None = None) -> AuditHandle:
    """Open an audit that was run or imported.

    Args:
        name: the audit's name, or the path of its config, beside which the database is.
        storage: database URL; AUDITOR_STORAGE, or as the config says, or `sqlite:///auditor.db` if None.

    Raises:
        StorageError: no such database or audit.
        ConfigError: the config cannot be used.
    """
    config = _load_named_config(str(name))
    url = resolve_storage_url(storage, config)
    with open_stored_database(url) as db:
        audit = audits.get_audit(db, str(name) if config is None else config.name)
    return AuditHandle(audit.name, url, None if config is None else config.check)
