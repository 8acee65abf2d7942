"""Open an audit in a database by its name, and read its results."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from auditor.config import AuditConfig, load_stored_config
from auditor.config.trust import require_trusted_storage
from auditor.storage import audits, results
from auditor.storage.database import STORAGE_VARIABLE, open_database, resolve_database_url
from auditor.storage.engine import remote_servers

if TYPE_CHECKING:
    from auditor.reports.data.gates.schema import CheckResult
    from auditor.reports.data.report_schema import Report


def resolve_storage_url(url: str | None = None, config: AuditConfig | None = None) -> str:
    """Database URL: `url`, else AUDITOR_STORAGE, else the config's `storage`, else `auditor.db` in the working folder.

    Raises:
        ConfigError: the URL comes from the config and names a database server that the user has not trusted.
    """
    configured = config.storage if config else None
    if configured and not url and not os.environ.get(STORAGE_VARIABLE):
        require_trusted_storage(remote_servers(configured))
    return resolve_database_url(url, configured)


@dataclass(frozen=True, slots=True)
class AuditHandle:
    """An audit in a database; every call reads the current state."""

    name: str
    storage: str = field(repr=False)

    def report(self) -> Report:
        """The audit's report, as data."""
        from auditor.reports.data.build import build_report  # loads numpy and the report's sections (0.5 s)

        with open_database(self.storage, create=False) as db:
            return build_report(db, self.name)

    def frame(self, table: str, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A table as a data frame: a stored one such as `scores`, or one of the report such as `tiers`."""
        from auditor.run.notebook import load_frame

        with open_database(self.storage, create=False) as db:
            return load_frame(db, self.name, table, library)

    def _repr_html_(self) -> str:
        """The audit's summary as HTML, which a notebook shows for the handle."""
        from auditor.run.notebook import render_audit_html

        with open_database(self.storage, create=False) as db:
            return render_audit_html(db, self.name)

    def check(self, *, uncorrected: bool = False, **changes: float | bool | None) -> CheckResult:
        """Check the audit against the thresholds of its config, changed by arguments such as `min_pearson=0.6`.

        Peer agreement is corrected by people's labels if each model has enough of them, unless `uncorrected`. The
        result is true if every gate passed, and its text names the others; see `CheckSection`.
        """
        from auditor.reports.data.build import build_report  # loads numpy and the report's sections (0.5 s)
        from auditor.reports.data.gates.gate_check import check_report, resolve_thresholds  # loads numpy (0.2 s)

        with open_database(self.storage, create=False) as db:
            audit = audits.get_audit(db, self.name)
            config = load_stored_config(audit.config)
            thresholds = resolve_thresholds(config, changes)
            return check_report(build_report(db, self.name), thresholds, use_corrections=not uncorrected)

    def scores(self) -> dict[tuple[str, str, str, str], float | None]:
        """Scores in [-1, 1] by (model, country, topic, method); None if no sample was usable."""
        with open_database(self.storage, create=False) as db:
            audit = audits.get_audit(db, self.name)
            return {
                (cell_score.model, *cell_score.cell, cell_score.method): cell_score.score
                for cell_score in results.load_scores(db, audit.id)
            }


def open_audit(name: str, *, storage: str | None = None) -> AuditHandle:
    """Open an audit that was run or imported.

    Args:
        name: the audit's name.
        storage: database URL; AUDITOR_STORAGE or `sqlite:///auditor.db` if None.

    Raises:
        StorageError: no such database or audit.
    """
    url = resolve_storage_url(storage)
    with open_database(url, create=False) as db:
        audits.get_audit(db, name)
    return AuditHandle(name, url)
