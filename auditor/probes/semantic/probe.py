"""The probe `semantic`: what the program knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from auditor.config.probe_section import BuiltInProbe, KeyFinding, LabelForm, ProbeEncoder
from auditor.domain.labels import LabelChoice, LabelKind
from auditor.domain.records import list_stored
from auditor.probe_interface import ProbeAudit
from auditor.probes.semantic.records import CONSISTENCY_PURPOSE, CONTRADICTION_PURPOSE, MORAL_PURPOSE
from auditor.probes.semantic.settings import SemanticProbe

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from auditor.agents.probe_stage import ProbeStage
    from auditor.agents.run_context import RunContext
    from auditor.config import AuditConfig
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain import Call, Cell
    from auditor.imports.published import DatasetFormat
    from auditor.models.answer_schemas import Structure
    from auditor.models.simulated import World
    from auditor.probes.semantic.figures.schema import SemanticReport
    from auditor.reports.data.agreement.over_models import FiguresByModel
    from auditor.reports.data.coverage.counts import StageCoverage
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.report_source import ReportSource
    from auditor.reports.data.requests import SamplingReport
    from auditor.reports.document import Section, Table
    from auditor.storage.database import Database
    from auditor.storage.probe_results import AnswerKind, RepeatedQuestions


ANSWER_PAIR = LabelKind.of_probe("answer_pair", (LabelChoice("yes", "yes"), LabelChoice("no", "no")))
"""Two answers of a model to one question, as a judge of consistency compares them."""


class Semantic(BuiltInProbe):
    """Consistency of the answers to moral questions in several wordings, and of the rules of thumb behind them."""

    settings = SemanticProbe
    position = 2
    noun = "free-text answer"
    answers_key = "moral_answers"
    progress_label = "Free-text answers"
    counted_labels: ClassVar = {
        "answers": "free-text answers",
        "rules": "rules of thumb",
        "judgements": "judgements of pairs of answers",
    }
    prompts = (
        *("semantic.answer.structured", "semantic.answer.text", "semantic.rule.structured", "semantic.rule.text"),
        *("semantic.paraphrase", "semantic.consistency", "semantic.contradiction"),
    )
    sampled_purpose = MORAL_PURPOSE
    sampled_figures = "Consistency under paraphrase"
    label_form = LabelForm(
        ANSWER_PAIR,
        questions=("consistency", "contradiction"),
        parts=("purpose", "model", "question", "left", "right"),
        stratify=("model", "purpose"),
        noun="pair of answers",
        plural="pairs of answers",
        source="Run an audit with the probe semantic, or import answers to several wordings.",
    )
    judge_purposes = frozenset({CONSISTENCY_PURPOSE, CONTRADICTION_PURPOSE})
    attribute_figures: ClassVar = {"semantic_consistency": "Consistency under paraphrase"}

    def list_records(self) -> list[type]:
        from auditor.probes.semantic import records as semantic

        return list_stored(semantic)

    def list_schemas(self) -> Sequence[type[Structure]]:
        from auditor.probes.semantic.answer_schemas import SCHEMAS

        return SCHEMAS

    def answer_record(self) -> type:
        from auditor.probes.semantic.records import MoralAnswerRecord

        return MoralAnswerRecord

    def answer_kind(self) -> AnswerKind:
        from auditor.probes.semantic.answer_rows import is_about, rests_on
        from auditor.storage.probe_results import AnswerKind

        return AnswerKind(("text", "rot"), outcomes=("outcome", "rot_outcome"), is_about=is_about, rests_on=rests_on)

    def list_dependents(self) -> Mapping[type, ColumnElement[bool]]:
        from auditor.probes.semantic.answer_rows import judges_excluded_answer
        from auditor.probes.semantic.records import PairVerdict

        return {PairVerdict: judges_excluded_answer()}

    def list_repeated_questions(self, audit_id: int) -> Iterable[RepeatedQuestions]:
        from auditor.probes.semantic.answer_rows import list_repeated_questions

        return list_repeated_questions(audit_id)

    def build_stage(self) -> ProbeStage:
        from auditor.probes.semantic.stage import build_semantic_stage

        return build_semantic_stage()

    def check_input(self, audit: ProbeAudit[SemanticProbe]) -> str | None:
        from auditor.probes.semantic.questions import check_questions

        return check_questions(audit.config, audit.survey)

    def plan_calls(self, audit: ProbeAudit[SemanticProbe], cells: Sequence[Cell]) -> Iterable[PlannedCalls]:
        from auditor.probes.semantic.planned_calls import plan_semantic_calls

        return plan_semantic_calls(audit.config, audit.survey, cells)

    def list_fingerprint_inputs(self, config: AuditConfig, languages: Sequence[str]) -> Sequence[object]:
        from auditor.probes.semantic.answers import list_fingerprint_inputs

        return list_fingerprint_inputs(config, languages)

    def report_class(self) -> type[SemanticReport]:
        from auditor.probes.semantic.figures.schema import SemanticReport

        return SemanticReport

    def build_report(self, db: Database, source: ReportSource, sampling: SamplingReport) -> SemanticReport | None:
        from auditor.probes.semantic.figures.build import build_semantic_report

        return build_semantic_report(db, source, sampling)

    def list_attribute_figures(self, figures: SemanticReport) -> FiguresByModel:
        return {"semantic_consistency": {row.model: row.consistency.value for row in figures.models}}

    def measure_coverage(self, figures: SemanticReport) -> Iterable[StageCoverage]:
        from auditor.probes.semantic.figures.build import measure_semantic_coverage

        return measure_semantic_coverage(figures)

    def build_section(self, report: Report) -> Section | None:
        from auditor.probes.semantic.section import build_semantic_section

        return build_semantic_section(report)

    def find_key_finding(self, report: Report) -> KeyFinding | None:
        from auditor.probes.semantic.section import find_key_finding

        return find_key_finding(report)

    def build_summary_tables(self, report: Report) -> Iterable[Table]:
        from auditor.probes.semantic.section import build_summary_tables

        return build_summary_tables(report)

    def answer_simulated(self, world: World, call: Call) -> str | None:
        from auditor.probes.semantic.simulated_answers import answer_call

        return answer_call(world, call)

    def find_encoder(self, config: AuditConfig) -> ProbeEncoder | None:
        from auditor.probes.semantic.encoder import find_encoder

        return find_encoder(config)

    def load_encoder_revision(self, db: Database, audit_id: int) -> str | None:
        from auditor.probes.semantic.answer_rows import load_facts

        facts = load_facts(db, audit_id)
        return None if facts is None else facts.revision

    def find_size(self, report: Report) -> tuple[str, int] | None:
        from auditor.probes.semantic.figures.schema import SemanticReport

        figures = report.find(SemanticReport)
        if figures is None:
            return None
        return "moral question" if figures.subject == "moral" else "question", figures.questions

    def list_dataset_formats(self) -> Mapping[str, DatasetFormat]:
        from auditor.probes.semantic.published_questions import FORMATS

        return FORMATS

    def recompute_results(self, context: RunContext) -> None:
        from auditor.probes.semantic.scoring import score_audit
        from auditor.probes.semantic.stage import build_scoring_plan

        if self.name in context.encoder_loaders:
            score_audit(context.db, context.audit_id, build_scoring_plan(context))

    def recompute_imported(self, db: Database, audit_id: int) -> None:
        from auditor.probes.semantic.scoring import rescore_stored_answers

        rescore_stored_answers(db, audit_id)


PROBE = Semantic
