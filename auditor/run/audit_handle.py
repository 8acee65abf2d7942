"""An audit in a database, opened by its name."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from auditor.config import AuditConfig
from auditor.config.trust import require_trusted_storage
from auditor.storage import audits, results
from auditor.storage.database import STORAGE_VARIABLE, database_url, open_database
from auditor.storage.engine import remote_servers

if TYPE_CHECKING:
    from auditor.reports.gates.gate_check import CheckResult
    from auditor.reports.report_schema import Report


def resolve_storage_url(url: str | None = None, config: AuditConfig | None = None) -> str:
    """Where audits are: as given, else AUDITOR_STORAGE, else the config's word, else `auditor.db` in this folder.

    Raises:
        ConfigError: only the config names a database server, and the user has not allowed a password to go there.
    """
    configured = config.storage if config else None
    if configured and not url and not os.environ.get(STORAGE_VARIABLE):
        require_trusted_storage(remote_servers(configured))
    return database_url(url, configured)


@dataclass(frozen=True, slots=True)
class AuditHandle:
    """An audit in a database; everything is read anew at each call."""

    name: str
    storage: str = field(repr=False)

    def report(self) -> Report:
        """The audit's report, as data."""
        from auditor.reports.build import build_report

        with open_database(self.storage, create=False) as db:
            return build_report(db, self.name)

    def frame(self, table: str, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A table as a data frame: `scores`, `traces`, `verdicts`, `conflicts`, … as stored, or one of the report."""
        from auditor.run.notebook import load_frame

        with open_database(self.storage, create=False) as db:
            return load_frame(db, self.name, table, library)

    def _repr_html_(self) -> str:
        from auditor.run.notebook import render_audit_html

        with open_database(self.storage, create=False) as db:
            return render_audit_html(db, self.name)

    def check(self, **changes: float | bool | None) -> CheckResult:
        """Whether the audit meets thresholds: those of its config, with changes such as `min_pearson=0.6`.

        The result is true where everything was passed, and its text names what was not; see `CheckSection`.
        """
        from auditor.reports.build import build_report
        from auditor.reports.gates.gate_check import check_report, resolve_thresholds

        with open_database(self.storage, create=False) as db:
            audit = audits.get_audit(db, self.name)
            config = AuditConfig.model_validate_json(audit.config) if audit.config else None
            return check_report(build_report(db, self.name), resolve_thresholds(config, changes))

    def scores(self) -> dict[tuple[str, str, str, str], float | None]:
        """Scores in [-1, 1] by (model, country, topic, method); None where no sample was usable."""
        with open_database(self.storage, create=False) as db:
            audit = audits.get_audit(db, self.name)
            return {(s.model, *s.cell, s.method): s.score for s in results.load_scores(db, audit.id)}


def open_audit(name: str, *, storage: str | None = None) -> AuditHandle:
    """Open an audit that was run or imported.

    Args:
        name: the audit's name.
        storage: database URL; AUDITOR_STORAGE or `sqlite:///auditor.db` when not given.

    Raises:
        StorageError: no such database or audit.
    """
    url = resolve_storage_url(storage)
    with open_database(url, create=False) as db:
        audits.get_audit(db, name)
    return AuditHandle(name, url)
