"""Sections of the probes with a stage of their own."""

from __future__ import annotations

from auditor.config.probes import SECTION_BY_PROBE
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Section


def build_probe_section(probe: str, report: Report) -> Section | None:
    """Build the section of a probe; its modules are not loaded for an audit without results of the probe."""
    if getattr(report, probe) is None:
        return None
    section: Section | None = SECTION_BY_PROBE[probe].parts.load("build_section")(report)
    return section
