"""The probe `logic`: what the program knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from auditor.config.logic import LogicProbe
from auditor.config.probe_section import BuiltInProbe
from auditor.domain.records import list_stored
from auditor.probe_interface import ProbeAudit

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain import Cell
    from auditor.reports.data.coverage.stage_coverage import StageCoverage
    from auditor.reports.data.logic.schema import LogicReport
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.report_source import ReportSource
    from auditor.reports.data.requests.sampling_settings import SamplingReport
    from auditor.reports.document import Section, Table
    from auditor.storage.database import Database


class Logic(BuiltInProbe):
    """Logical consistency of judges' pairwise preferences, in both orders and in a negated form."""

    settings = LogicProbe
    noun = "comparison"
    answers_key = "comparisons"
    counted_labels: ClassVar = {None: "comparisons of items"}

    def list_records(self) -> list[type]:
        from auditor.domain import comparisons

        return list_stored(comparisons)

    def answer_record(self) -> type:
        from auditor.domain.comparisons import Comparison

        return Comparison

    def build_graph(self) -> Any:
        from auditor.agents.logic.graph import build_logic_graph

        return build_logic_graph()

    def check_input(self, audit: ProbeAudit[LogicProbe]) -> str | None:
        from auditor.agents.logic.input_check import check_items

        check_items(audit.config, audit.survey)
        return None

    def plan_calls(self, audit: ProbeAudit[LogicProbe], cells: Sequence[Cell]) -> Iterable[PlannedCalls]:
        from auditor.cost_estimation.logic_calls import plan_logic_calls

        return plan_logic_calls(audit.config, audit.survey, cells)

    def list_fingerprint_inputs(self, config: AuditConfig, languages: Sequence[str]) -> Sequence[object]:
        from auditor.agents.logic.fingerprint import list_fingerprint_inputs

        return list_fingerprint_inputs(config, languages)

    def build_report(self, db: Database, source: ReportSource, sampling: SamplingReport) -> LogicReport | None:
        from auditor.reports.data.logic.build import build_logic_report

        return build_logic_report(db, source, sampling)

    def measure_coverage(self, figures: LogicReport) -> Iterable[StageCoverage]:
        from auditor.reports.data.logic.build import measure_logic_coverage

        return measure_logic_coverage(figures)

    def build_section(self, report: Report) -> Section | None:
        from auditor.reports.sections.logic import build_logic_section

        return build_logic_section(report)

    def build_summary_tables(self, report: Report) -> Iterable[Table]:
        from auditor.reports.sections.logic_tables import build_summary_tables

        return build_summary_tables(report)


PROBE = Logic
