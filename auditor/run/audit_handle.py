"""Open an audit in a database by its name, and read its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor.config import load_stored_config
from auditor.probe_interface import ProbeResult
from auditor.run.storage_location import locate_audit, resolve_storage_url
from auditor.storage import audits, results
from auditor.storage.database import Database, open_database
from auditor.storage.records import load_records

if TYPE_CHECKING:
    from auditor.reports.data.gates.schema import CheckResult
    from auditor.reports.data.report_schema import Report


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

    def report(self) -> Report:
        """The audit's report, as data."""
        from auditor.reports.data.build import build_report  # loads numpy and the report's sections (0.5 s)

        with open_stored_audit(self.name, self.storage) as (db, audit):
            return build_report(db, audit.name)

    def frame(self, table: str, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A table as a data frame: a stored one such as `scores`, or one of the report such as `tiers`."""
        from auditor.run.notebook import load_frame

        with open_stored_audit(self.name, self.storage) as (db, audit):
            return load_frame(db, audit.name, table, library)

    def _repr_html_(self) -> str:
        """The audit's summary as HTML, which a notebook shows for the handle."""
        from auditor.run.notebook import render_audit_html

        with open_stored_audit(self.name, self.storage) as (db, audit):
            return render_audit_html(db, audit.name)

    def check(
        self, *, models: Sequence[str] = (), uncorrected: bool = False, **changes: float | bool | None
    ) -> CheckResult:
        """Check the audit against the thresholds of its config, changed by arguments such as `min_pearson=0.6`.

        Each model is decided by itself; `models` selects some. Peer agreement is corrected by people's labels if each
        model has enough of them, unless `uncorrected`. The result is true if every gate passed, and its text names the
        others; see `CheckSection`.
        """
        from auditor.reports.data.build import build_report  # loads numpy and the report's sections (0.5 s)
        from auditor.reports.data.gates.gate_check import check_report, resolve_thresholds  # loads numpy (0.2 s)

        with open_stored_audit(self.name, self.storage) as (db, audit):
            config = load_stored_config(audit.config)
            thresholds = resolve_thresholds(config, changes)
            return check_report(
                build_report(db, audit.name), thresholds, use_corrections=not uncorrected, models=models
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
    audit_name, location = locate_audit(str(name), storage)
    with open_stored_database(location.url) as db:
        return AuditHandle(audits.get_audit(db, audit_name).name, location.url)
