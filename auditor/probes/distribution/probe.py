"""The probe `distribution`: what the program knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from auditor.config.probe_section import BuiltInProbe, KeyFinding, PageOne
from auditor.domain.records import list_stored
from auditor.lazy_imports import import_when_used
from auditor.probe_interface import ProbeAudit
from auditor.probes.distribution import opinions
from auditor.probes.distribution.opinions import OPINION_PURPOSE, OpinionMode
from auditor.probes.distribution.settings import DistributionProbe, DistributionThresholds

if TYPE_CHECKING:
    from auditor.agents.probe_stage import ProbeStage
    from auditor.config import AuditConfig
    from auditor.config.base import Structure
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain import Call, Cell
    from auditor.models.simulated import PeopleOpinions, World
    from auditor.probes.distribution.figures.schema import DistributionReport
    from auditor.reports.data.coverage.counts import StageCoverage
    from auditor.reports.data.gates.estimates import GatedFigure
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.report_source import ReportSource
    from auditor.reports.data.requests import SamplingReport
    from auditor.reports.document import Section, Table
    from auditor.storage.database import Database
    from auditor.storage.probe_results import AnswerKind, RepeatedQuestions

if not TYPE_CHECKING:
    build = import_when_used("auditor.probes.distribution.figures.build")
    schema = import_when_used("auditor.probes.distribution.figures.schema")
    opinion_questions = import_when_used("auditor.probes.distribution.opinion_questions")
    section = import_when_used("auditor.probes.distribution.section")
    simulated_opinions = import_when_used("auditor.probes.distribution.simulated_opinions")
    stage = import_when_used("auditor.probes.distribution.stage")
    probe_results = import_when_used("auditor.storage.probe_results")
    row_classes = import_when_used("auditor.storage.row_classes")
else:
    from auditor.probes.distribution import opinion_questions, section, simulated_opinions, stage
    from auditor.probes.distribution.figures import build, schema
    from auditor.storage import probe_results, row_classes


class Distribution(BuiltInProbe):
    """Whether models know, and show, how people of one country disagree."""

    settings = DistributionProbe
    position = 1
    reader_version = 5
    noun = "opinion"
    answers_key = "opinions"
    counted_labels: ClassVar = {str(mode): f"{mode} opinions" for mode in OpinionMode}
    sampled_purpose = OPINION_PURPOSE
    sampled_figures = "The diversity of answers (variance ratio)"

    thresholds = DistributionThresholds
    suggested_thresholds = ("min_skill", "min_variance_ratio")

    def list_records(self) -> list[type]:
        return list_stored(opinions)

    def list_schemas(self) -> Sequence[type[Structure]]:
        return opinion_questions.SCHEMAS

    def answer_record(self) -> type:
        return opinions.Opinion

    def answer_kind(self) -> AnswerKind:
        return probe_results.AnswerKind(("shares", "n", "is_rescaled", "mass"))

    def list_repeated_questions(self, audit_id: int) -> Iterable[RepeatedQuestions]:
        c = row_classes.table_of(opinions.Opinion).c
        yield probe_results.RepeatedQuestions(c.mode, c.model, c.first_outcome, c.outcome)

    def build_stage(self) -> ProbeStage:
        return stage.build_distribution_stage()

    def check_input(self, audit: ProbeAudit[DistributionProbe]) -> str | None:
        return opinion_questions.check_survey(audit.config, audit.survey)

    def plan_calls(self, audit: ProbeAudit[DistributionProbe], cells: Sequence[Cell]) -> Iterable[PlannedCalls]:
        return opinion_questions.plan_distribution_calls(audit.config, audit.survey, cells)

    def list_fingerprint_inputs(self, config: AuditConfig, languages: Sequence[str]) -> Sequence[object]:
        return opinion_questions.list_fingerprint_inputs(config, languages)

    def report_class(self) -> type[DistributionReport]:
        return schema.DistributionReport

    def build_report(self, db: Database, source: ReportSource, sampling: SamplingReport) -> DistributionReport | None:
        return build.build_distribution_report(db, source, sampling)

    def measure_coverage(self, figures: DistributionReport) -> Iterable[StageCoverage]:
        return build.measure_distribution_coverage(figures)

    def build_section(self, report: Report) -> Section | None:
        return section.build_distribution_section(report)

    def build_summary_tables(self, report: Report) -> Iterable[Table]:
        return section.build_summary_tables(report)

    def list_gate_figures(self, report: Report, threshold: str) -> list[GatedFigure]:
        return build.list_gate_figures(report, threshold)

    def build_page_one(self, report: Report) -> PageOne | None:
        models = section.describe_models(report)
        return None if models is None else PageOne(section.TITLE, models.items)

    def find_key_finding(self, report: Report) -> KeyFinding | None:
        return section.find_key_finding(report)

    def load_people_opinions(self, audit: ProbeAudit[DistributionProbe]) -> PeopleOpinions:
        return opinion_questions.load_people_opinions(audit.config, audit.survey)

    def answer_simulated(self, world: World, call: Call) -> str | None:
        if call.purpose is not OPINION_PURPOSE:
            return None

        return simulated_opinions.answer_opinion(world, call)


PROBE = Distribution
