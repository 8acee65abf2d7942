"""The report on the judges of an audit alone, without the parts of the report that need more time."""

from __future__ import annotations

from auditor.reports.data.panel.build import build_panel_report
from auditor.reports.data.panel.schema import PanelReport
from auditor.reports.data.report_source import load_source
from auditor.storage.database import Database


def panel_of(db: Database, audit_name: str) -> PanelReport:
    """The part of the report on the judges, without figures that need scores of models or labels."""
    return build_panel_report(load_source(db, audit_name), [], [], None)
