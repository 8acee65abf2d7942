"""The probe `distribution`: what the program knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from auditor.config.distribution import DistributionProbe
from auditor.config.probe_section import BuiltInProbe
from auditor.domain import Purpose
from auditor.domain.opinions import OpinionMode
from auditor.domain.records import list_stored
from auditor.probe_interface import ProbeAudit

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain import Cell
    from auditor.reports.data.coverage.stage_coverage import StageCoverage
    from auditor.reports.data.distribution.schema import DistributionReport
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.report_source import ReportSource
    from auditor.reports.data.requests.sampling_settings import SamplingReport
    from auditor.reports.document import Section, Table
    from auditor.storage.database import Database


class Distribution(BuiltInProbe):
    """Whether models know, and show, how people of one country disagree."""

    settings = DistributionProbe
    noun = "opinion"
    answers_key = "opinions"
    counted_labels: ClassVar = {str(mode): f"{mode} opinions" for mode in OpinionMode}
    sampled_purpose = Purpose.OPINION
    sampled_figures = "The diversity of answers (variance ratio)"

    def list_records(self) -> list[type]:
        from auditor.domain import opinions

        return list_stored(opinions)

    def answer_record(self) -> type:
        from auditor.domain.opinions import Opinion

        return Opinion

    def build_graph(self) -> Any:
        from auditor.agents.distribution import build_distribution_graph

        return build_distribution_graph()

    def check_input(self, audit: ProbeAudit[DistributionProbe]) -> str | None:
        from auditor.agents.opinion_questions import check_survey

        return check_survey(audit.config, audit.survey)

    def plan_calls(self, audit: ProbeAudit[DistributionProbe], cells: Sequence[Cell]) -> Iterable[PlannedCalls]:
        from auditor.cost_estimation.distribution_calls import plan_distribution_calls

        return plan_distribution_calls(audit.config, audit.survey, cells)

    def list_fingerprint_inputs(self, config: AuditConfig, languages: Sequence[str]) -> Sequence[object]:
        from auditor.agents.opinion_questions import list_fingerprint_inputs

        return list_fingerprint_inputs(config, languages)

    def build_report(self, db: Database, source: ReportSource, sampling: SamplingReport) -> DistributionReport | None:
        from auditor.reports.data.distribution.build import build_distribution_report

        return build_distribution_report(db, source, sampling)

    def measure_coverage(self, figures: DistributionReport) -> Iterable[StageCoverage]:
        from auditor.reports.data.distribution.build import measure_distribution_coverage

        return measure_distribution_coverage(figures)

    def build_section(self, report: Report) -> Section | None:
        from auditor.reports.sections.distribution import build_distribution_section

        return build_distribution_section(report)

    def build_summary_tables(self, report: Report) -> Iterable[Table]:
        from auditor.reports.sections.distribution import build_summary_tables

        return build_summary_tables(report)


PROBE = Distribution
