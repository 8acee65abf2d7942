"""The probe `semantic`: what the program knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from auditor.config.probe_section import BuiltInProbe
from auditor.config.semantic import SemanticProbe
from auditor.domain import Purpose
from auditor.domain.records import list_stored
from auditor.probe_interface import ProbeAudit

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain import Cell
    from auditor.reports.data.coverage.stage_coverage import StageCoverage
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.report_source import ReportSource
    from auditor.reports.data.requests.sampling_settings import SamplingReport
    from auditor.reports.data.semantic.schema import SemanticReport
    from auditor.reports.document import Section, Table
    from auditor.storage.database import Database


class Semantic(BuiltInProbe):
    """Consistency of the answers to moral questions in several wordings, and of the rules of thumb behind them."""

    settings = SemanticProbe
    noun = "free-text answer"
    answers_key = "moral_answers"
    counted_labels: ClassVar = {
        "answers": "free-text answers",
        "rules": "rules of thumb",
        "judgements": "judgements of pairs of answers",
    }
    prompts = (
        *("semantic.answer.structured", "semantic.answer.text", "semantic.rule.structured", "semantic.rule.text"),
        *("semantic.paraphrase", "semantic.consistency", "semantic.contradiction"),
    )
    sampled_purpose = Purpose.MORAL
    sampled_figures = "Consistency under paraphrase"

    def list_records(self) -> list[type]:
        from auditor.domain import semantic

        return list_stored(semantic)

    def answer_record(self) -> type:
        from auditor.domain.semantic import MoralAnswerRecord

        return MoralAnswerRecord

    def build_graph(self) -> Any:
        from auditor.agents.semantic.graph import build_semantic_graph

        return build_semantic_graph()

    def check_input(self, audit: ProbeAudit[SemanticProbe]) -> str | None:
        from auditor.agents.semantic.questions import check_questions

        return check_questions(audit.config, audit.survey)

    def plan_calls(self, audit: ProbeAudit[SemanticProbe], cells: Sequence[Cell]) -> Iterable[PlannedCalls]:
        from auditor.cost_estimation.semantic_calls import plan_semantic_calls

        return plan_semantic_calls(audit.config, audit.survey, cells)

    def list_fingerprint_inputs(self, config: AuditConfig, languages: Sequence[str]) -> Sequence[object]:
        from auditor.agents.semantic.given_answers import list_fingerprint_inputs

        return list_fingerprint_inputs(config, languages)

    def build_report(self, db: Database, source: ReportSource, sampling: SamplingReport) -> SemanticReport | None:
        from auditor.reports.data.semantic.build import build_semantic_report

        return build_semantic_report(db, source, sampling)

    def measure_coverage(self, figures: SemanticReport) -> Iterable[StageCoverage]:
        from auditor.reports.data.semantic.build import measure_semantic_coverage

        return measure_semantic_coverage(figures)

    def build_section(self, report: Report) -> Section | None:
        from auditor.reports.sections.semantic import build_semantic_section

        return build_semantic_section(report)

    def build_summary_tables(self, report: Report) -> Iterable[Table]:
        from auditor.reports.sections.semantic import build_summary_tables

        return build_summary_tables(report)


PROBE = Semantic
