"""The probe `distribution`: what the program knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from auditor.config.probe_section import BuiltInProbe, KeyFinding, PageOne
from auditor.domain.records import list_stored
from auditor.probe_interface import ProbeAudit
from auditor.probes.distribution.opinions import OPINION_PURPOSE, OpinionMode
from auditor.probes.distribution.settings import DistributionProbe, DistributionThresholds

if TYPE_CHECKING:
    from auditor.agents.probe_stage import ProbeStage
    from auditor.config import AuditConfig
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain import Call, Cell
    from auditor.models.answer_schemas import Structure
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


class Distribution(BuiltInProbe):
    """Whether models know, and show, how people of one country disagree."""

    settings = DistributionProbe
    position = 1
    noun = "opinion"
    answers_key = "opinions"
    counted_labels: ClassVar = {str(mode): f"{mode} opinions" for mode in OpinionMode}
    sampled_purpose = OPINION_PURPOSE
    sampled_figures = "The diversity of answers (variance ratio)"

    thresholds = DistributionThresholds
    suggested_thresholds = ("min_skill", "min_variance_ratio")

    def list_records(self) -> list[type]:
        from auditor.probes.distribution import opinions

        return list_stored(opinions)

    def list_schemas(self) -> Sequence[type[Structure]]:
        from auditor.probes.distribution.answer_schemas import SCHEMAS

        return SCHEMAS

    def answer_record(self) -> type:
        from auditor.probes.distribution.opinions import Opinion

        return Opinion

    def answer_kind(self) -> AnswerKind:
        from auditor.storage.probe_results import AnswerKind

        return AnswerKind(("shares", "n", "is_rescaled", "mass"))

    def list_repeated_questions(self, audit_id: int) -> Iterable[RepeatedQuestions]:
        from auditor.probes.distribution.opinions import Opinion
        from auditor.storage.probe_results import RepeatedQuestions
        from auditor.storage.row_classes import table_of

        c = table_of(Opinion).c
        yield RepeatedQuestions(c.mode, c.model, c.first_outcome, c.outcome)

    def build_stage(self) -> ProbeStage:
        from auditor.probes.distribution.stage import build_distribution_stage

        return build_distribution_stage()

    def check_input(self, audit: ProbeAudit[DistributionProbe]) -> str | None:
        from auditor.probes.distribution.opinion_questions import check_survey

        return check_survey(audit.config, audit.survey)

    def plan_calls(self, audit: ProbeAudit[DistributionProbe], cells: Sequence[Cell]) -> Iterable[PlannedCalls]:
        from auditor.probes.distribution.opinion_questions import plan_distribution_calls

        return plan_distribution_calls(audit.config, audit.survey, cells)

    def list_fingerprint_inputs(self, config: AuditConfig, languages: Sequence[str]) -> Sequence[object]:
        from auditor.probes.distribution.opinion_questions import list_fingerprint_inputs

        return list_fingerprint_inputs(config, languages)

    def report_class(self) -> type[DistributionReport]:
        from auditor.probes.distribution.figures.schema import DistributionReport

        return DistributionReport

    def build_report(self, db: Database, source: ReportSource, sampling: SamplingReport) -> DistributionReport | None:
        from auditor.probes.distribution.figures.build import build_distribution_report

        return build_distribution_report(db, source, sampling)

    def measure_coverage(self, figures: DistributionReport) -> Iterable[StageCoverage]:
        from auditor.probes.distribution.figures.build import measure_distribution_coverage

        return measure_distribution_coverage(figures)

    def build_section(self, report: Report) -> Section | None:
        from auditor.probes.distribution.section import build_distribution_section

        return build_distribution_section(report)

    def build_summary_tables(self, report: Report) -> Iterable[Table]:
        from auditor.probes.distribution.section import build_summary_tables

        return build_summary_tables(report)

    def list_gate_figures(self, report: Report, threshold: str) -> list[GatedFigure]:
        from auditor.probes.distribution.figures.build import list_gate_figures

        return list_gate_figures(report, threshold)

    def build_page_one(self, report: Report) -> PageOne | None:
        from auditor.probes.distribution.section import TITLE, describe_models

        models = describe_models(report)
        return None if models is None else PageOne(TITLE, models.items)

    def find_key_finding(self, report: Report) -> KeyFinding | None:
        from auditor.probes.distribution.section import find_key_finding

        return find_key_finding(report)

    def load_people_opinions(self, audit: ProbeAudit[DistributionProbe]) -> PeopleOpinions:
        from auditor.probes.distribution.opinion_questions import load_people_opinions

        return load_people_opinions(audit.config, audit.survey)

    def answer_simulated(self, world: World, call: Call) -> str | None:
        if call.purpose is not OPINION_PURPOSE:
            return None
        from auditor.probes.distribution.simulated_opinions import answer_opinion

        return answer_opinion(world, call)


PROBE = Distribution
