"""The probe `semantic`: what the program knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from auditor.config.probe_section import BuiltInProbe, KeyFinding, LabelForm, ProbeEncoder, StoredEncoder
from auditor.domain.labels import LabelChoice, LabelKind
from auditor.domain.records import list_stored
from auditor.lazy_imports import import_when_used
from auditor.probe_interface import ProbeAudit
from auditor.probes.semantic import records
from auditor.probes.semantic.records import CONSISTENCY_PURPOSE, CONTRADICTION_PURPOSE, MORAL_PURPOSE
from auditor.probes.semantic.settings import SemanticProbe

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from auditor.agents.probe_stage import ProbeStage
    from auditor.agents.run_context import RunContext
    from auditor.config import AuditConfig
    from auditor.config.base import Structure
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain import Call, Cell
    from auditor.imports.published import DatasetFormat
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

if not TYPE_CHECKING:
    answer_rows = import_when_used("auditor.probes.semantic.answer_rows")
    call_builders = import_when_used("auditor.probes.semantic.call_builders")
    answers = import_when_used("auditor.probes.semantic.answers")
    encoder = import_when_used("auditor.probes.semantic.encoder")
    build = import_when_used("auditor.probes.semantic.figures.build")
    schema = import_when_used("auditor.probes.semantic.figures.schema")
    planned_calls = import_when_used("auditor.probes.semantic.planned_calls")
    published_questions = import_when_used("auditor.probes.semantic.published_questions")
    questions = import_when_used("auditor.probes.semantic.questions")
    scoring = import_when_used("auditor.probes.semantic.scoring")
    section = import_when_used("auditor.probes.semantic.section")
    simulated_answers = import_when_used("auditor.probes.semantic.simulated_answers")
    stage = import_when_used("auditor.probes.semantic.stage")
    probe_results = import_when_used("auditor.storage.probe_results")
else:
    from auditor.probes.semantic import (
        answer_rows,
        answers,
        call_builders,
        encoder,
        planned_calls,
        published_questions,
        questions,
        scoring,
        section,
        simulated_answers,
        stage,
    )
    from auditor.probes.semantic.figures import build, schema
    from auditor.storage import probe_results


ANSWER_PAIR = LabelKind.of_probe("answer_pair", (LabelChoice("yes", "yes"), LabelChoice("no", "no")))
"""Two answers of a model to one question, as a judge of consistency compares them."""


class Semantic(BuiltInProbe):
    """Consistency of the answers to moral questions in several wordings, and of the rules of thumb behind them."""

    reader_version = 4
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
        return list_stored(records)

    def list_schemas(self) -> Sequence[type[Structure]]:
        return call_builders.SCHEMAS

    def answer_record(self) -> type:
        return records.MoralAnswerRecord

    def answer_kind(self) -> AnswerKind:
        return probe_results.AnswerKind(
            ("text", "rot"),
            outcomes=("outcome", "rot_outcome"),
            is_about=answer_rows.is_about,
            rests_on=answer_rows.rests_on,
        )

    def list_dependents(self) -> Mapping[type, ColumnElement[bool]]:
        return {records.PairVerdict: answer_rows.judges_excluded_answer()}

    def list_repeated_questions(self, audit_id: int) -> Iterable[RepeatedQuestions]:
        return answer_rows.list_repeated_questions(audit_id)

    def build_stage(self) -> ProbeStage:
        return stage.build_semantic_stage()

    def check_input(self, audit: ProbeAudit[SemanticProbe]) -> str | None:
        return questions.check_questions(audit.config, audit.survey)

    def plan_calls(self, audit: ProbeAudit[SemanticProbe], cells: Sequence[Cell]) -> Iterable[PlannedCalls]:
        return planned_calls.plan_semantic_calls(audit.config, audit.survey, cells)

    def list_fingerprint_inputs(self, config: AuditConfig, languages: Sequence[str]) -> Sequence[object]:
        return answers.list_fingerprint_inputs(config, languages)

    def report_class(self) -> type[SemanticReport]:
        return schema.SemanticReport

    def build_report(self, db: Database, source: ReportSource, sampling: SamplingReport) -> SemanticReport | None:
        return build.build_semantic_report(db, source, sampling)

    def list_attribute_figures(self, figures: SemanticReport) -> FiguresByModel:
        return {"semantic_consistency": {row.model: row.consistency.value for row in figures.models}}

    def measure_coverage(self, figures: SemanticReport) -> Iterable[StageCoverage]:
        return build.measure_semantic_coverage(figures)

    def build_section(self, report: Report) -> Section | None:
        return section.build_semantic_section(report)

    def find_key_finding(self, report: Report) -> KeyFinding | None:
        return section.find_key_finding(report)

    def build_summary_tables(self, report: Report) -> Iterable[Table]:
        return section.build_summary_tables(report)

    def answer_simulated(self, world: World, call: Call) -> str | None:
        return simulated_answers.answer_call(world, call)

    def find_encoder(self, config: AuditConfig) -> ProbeEncoder | None:
        return encoder.find_encoder(config)

    def load_stored_encoder(self, db: Database, audit_id: int) -> StoredEncoder | None:
        facts = answer_rows.load_facts(db, audit_id)
        return None if facts is None else StoredEncoder(facts.revision, facts.is_multilingual)

    def find_size(self, report: Report) -> tuple[str, int] | None:
        figures = report.find(schema.SemanticReport)
        if figures is None:
            return None
        return "moral question" if figures.settings.subject == "moral" else "question", figures.questions

    def list_dataset_formats(self) -> Mapping[str, DatasetFormat]:
        return published_questions.FORMATS

    def recompute_results(self, context: RunContext) -> None:
        if self.name in context.encoder_loaders:
            scoring.score_audit(context.db, context.audit_id, stage.build_scoring_plan(context))

    def recompute_imported(self, db: Database, audit_id: int) -> None:
        scoring.rescore_stored_answers(db, audit_id)


PROBE = Semantic
