"""The probe `logic`: what the program knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from auditor.config.probe_section import BuiltInProbe, KeyFinding, LabelForm
from auditor.domain.decisions import ConflictKind, ConflictKindSpec, ConflictSides
from auditor.domain.labels import LabelChoice, LabelKind
from auditor.domain.records import list_stored
from auditor.domain.terms import ComparisonChoice
from auditor.lazy_imports import import_when_used
from auditor.probe_interface import ProbeAudit
from auditor.probes.logic import comparisons
from auditor.probes.logic.comparisons import LOGIC_PURPOSE
from auditor.probes.logic.settings import LogicProbe

if TYPE_CHECKING:
    from auditor.agents.probe_stage import ProbeStage
    from auditor.config import AuditConfig
    from auditor.config.base import Structure
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain import Call, Cell
    from auditor.imports.published import DatasetFormat
    from auditor.models.simulated import World
    from auditor.probes.logic.figures.schema import LogicReport
    from auditor.reports.data.coverage.counts import StageCoverage
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.report_source import ReportSource
    from auditor.reports.data.requests import SamplingReport
    from auditor.reports.document import Section, Table
    from auditor.storage.database import Database
    from auditor.storage.probe_results import AnswerKind, RepeatedQuestions

if not TYPE_CHECKING:
    comparison_rows = import_when_used("auditor.probes.logic.comparison_rows")
    build = import_when_used("auditor.probes.logic.figures.build")
    schema = import_when_used("auditor.probes.logic.figures.schema")
    judges = import_when_used("auditor.probes.logic.judges")
    people_labels = import_when_used("auditor.probes.logic.people_labels")
    published = import_when_used("auditor.probes.logic.published")
    questions = import_when_used("auditor.probes.logic.questions")
    logic_section = import_when_used("auditor.probes.logic.section")
    stage = import_when_used("auditor.probes.logic.stage")
    phrasing = import_when_used("auditor.reports.sections.phrasing")
    probe_results = import_when_used("auditor.storage.probe_results")
    row_classes = import_when_used("auditor.storage.row_classes")
else:
    from auditor.probes.logic import (
        comparison_rows,
        judges,
        people_labels,
        published,
        questions,
        section as logic_section,
        stage,
    )
    from auditor.probes.logic.figures import build, schema
    from auditor.reports.sections import phrasing
    from auditor.storage import probe_results, row_classes


LOGIC_CONFLICT = ConflictKind.of_probe(
    "logic",
    ConflictKindSpec(
        sides=ConflictSides.CLAIMS,
        explanation="a judge’s verdict on a pair of items contradicts the ranking by all its verdicts",
        unvoted_label="of judges’ verdicts on pairs of items",
    ),
)
COMPARISON = LabelKind.of_probe(
    "comparison",
    (
        LabelChoice(ComparisonChoice.FIRST.value, "A"),
        LabelChoice(ComparisonChoice.SECOND.value, "B"),
        LabelChoice(ComparisonChoice.TIE.value, "neither"),
    ),
)
"""Two items of a set, as a judge compares them."""


class Logic(BuiltInProbe):
    """Logical consistency of judges' pairwise preferences, in both orders and in a negated form."""

    settings = LogicProbe
    reader_version = 5
    position = 3
    noun = "comparison"
    answers_key = "comparisons"
    progress_label = "Comparing items"
    counted_labels: ClassVar = {None: "comparisons of items"}
    label_form = LabelForm(
        COMPARISON,
        questions=("comparison",),
        parts=("context", "item_a", "item_b"),
        stratify=("context",),
        noun="comparison",
        plural="comparisons",
        source="Run an audit with the probe logic, or import comparisons with their items.",
    )
    weighs_votes = True
    judge_purposes = frozenset({LOGIC_PURPOSE})

    def list_records(self) -> list[type]:
        return list_stored(comparisons)

    def list_schemas(self) -> Sequence[type[Structure]]:
        return questions.SCHEMAS

    def answer_record(self) -> type:
        return comparisons.Comparison

    def answer_kind(self) -> AnswerKind:
        return probe_results.AnswerKind(
            ("decision", "probability"),
            model="judge",
            is_about=comparison_rows.is_about,
            rests_on=comparison_rows.rests_on,
        )

    def list_repeated_questions(self, audit_id: int) -> Iterable[RepeatedQuestions]:
        c = row_classes.table_of(comparisons.Comparison).c
        yield probe_results.RepeatedQuestions(None, c.judge, c.first_outcome, c.outcome)

    def build_stage(self) -> ProbeStage:
        return stage.build_logic_stage()

    def check_input(self, audit: ProbeAudit[LogicProbe]) -> str | None:
        people_labels.check_items(audit.config, audit.survey)
        return None

    def plan_calls(self, audit: ProbeAudit[LogicProbe], cells: Sequence[Cell]) -> Iterable[PlannedCalls]:
        return questions.plan_logic_calls(audit.config, audit.survey, cells)

    def list_fingerprint_inputs(self, config: AuditConfig, languages: Sequence[str]) -> Sequence[object]:
        return questions.list_fingerprint_inputs(config, languages)

    def report_class(self) -> type[LogicReport]:
        return schema.LogicReport

    def build_report(self, db: Database, source: ReportSource, sampling: SamplingReport) -> LogicReport | None:
        return build.build_logic_report(db, source, sampling)

    def measure_coverage(self, figures: LogicReport) -> Iterable[StageCoverage]:
        return build.measure_logic_coverage(figures)

    def build_section(self, report: Report) -> Section | None:
        return logic_section.build_logic_section(report)

    def find_key_finding(self, report: Report) -> KeyFinding | None:
        section = self.build_section(report)
        finding = None if section is None else phrasing.find_first_finding(section)
        return None if section is None or finding is None else KeyFinding(section.title, finding)

    def build_summary_tables(self, report: Report) -> Iterable[Table]:
        return logic_section.build_summary_tables(report)

    def describe_votes(self, report: Report) -> str:
        return logic_section.describe_excluded_judges(report.find(schema.LogicReport))

    def measure_vote_weights(self, db: Database, audit_id: int, config: AuditConfig) -> Mapping[str, float]:
        return {row.judge: row.weight.weight for row in judges.measure_judge_consistency(db, audit_id, config)}

    def answer_simulated(self, world: World, call: Call) -> str | None:
        return stage.answer_comparison(world, call)

    def list_dataset_formats(self) -> Mapping[str, DatasetFormat]:
        return published.FORMATS


PROBE = Logic
