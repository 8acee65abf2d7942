"""Reports of the probes with a stage of their own, and their coverage."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.config.probes import SECTION_BY_PROBE
from auditor.reports.data.coverage.stage_coverage import StageCoverage
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.requests.sampling_settings import SamplingReport
from auditor.storage.database import Database
from auditor.storage.probe_answers import list_stored_probes

ProbeReports = Mapping[str, ReportModel | None]
"""Report of each probe, by the probe's name; None without results."""


def build_probe_reports(db: Database, source: ReportSource, sampling: SamplingReport) -> ProbeReports:
    """Build the report of each probe; the modules of a probe without stored rows are not loaded."""
    stored_probes = list_stored_probes(db, source.audit.id)
    return {
        name: section_class.parts.load("build_report")(db, source, sampling) if name in stored_probes else None
        for name, section_class in SECTION_BY_PROBE.items()
    }


def measure_probe_coverage(probe_reports: ProbeReports) -> list[StageCoverage]:
    """Measure the coverage of each probe's answers."""
    return [
        stage
        for name, report in probe_reports.items()
        if report is not None
        for stage in SECTION_BY_PROBE[name].parts.load("measure_coverage")(report)
    ]
