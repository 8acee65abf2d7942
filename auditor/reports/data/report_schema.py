"""Schema of the report, in the order of its keys, and as JSON Schema."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import GenerateJsonSchema

from auditor.config.base import read_class_descriptions
from auditor.config.installed_probes import add_probe_fields, list_built_in_probes, list_folder_probes
from auditor.domain import Survey
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.agreement.cultural_findings import CulturalFindingsReport, ShortfallsReport
from auditor.reports.data.agreement.languages import LanguagesReport, MethodDifferenceRow
from auditor.reports.data.agreement.over_models import AttributesReport, EqualSeries, OverModelsReport
from auditor.reports.data.agreement.population import PopulationAgreementRow
from auditor.reports.data.agreement.sensitivity import InfluentialUnit, SensitivityRow, VarianceRow
from auditor.reports.data.agreement.tiers import TierRanking
from auditor.reports.data.conflicts import ConflictsReport
from auditor.reports.data.cost import CostReport, SavingsRow
from auditor.reports.data.coverage.build import ReaskRow, RefusalsReport
from auditor.reports.data.coverage.counts import CoverageReport, ModelVersionRow
from auditor.reports.data.failures import FailuresReport
from auditor.reports.data.judge_quality.schema import JudgeQualityReport, PairLabelsReport
from auditor.reports.data.measurement_schema import (
    BaselineRow,
    CeilingRow,
    ConsistencyAlignmentRow,
    ConsistencyRow,
    GainRow,
    GroupErrorRow,
    GuessClaim,
    NonresponseReport,
    PeerAgreementRow,
    RegionsReport,
    StructureRow,
)
from auditor.reports.data.panel.schema import PanelReport
from auditor.reports.data.probe_reports import UnavailableProbe
from auditor.reports.data.report_model import FlatRow, ReportModel, publish
from auditor.reports.data.requests import RequestsReport, SamplingReport
from auditor.reports.data.robustness import DesignAverages
from auditor.reports.data.task import TaskReport
from auditor.reports.data.traces import ExampleReport, LinkedReport

F = TypeVar("F", bound=ReportModel)


class RewordingReport(ReportModel):
    """A wording of the question that the configuration uses instead of the survey's."""

    wording: str
    scale: tuple[str, str]
    topics: dict[str, str]
    """Reworded topics, by the survey's label; topics that are not listed keep the survey's wording."""


class QuestionReport(ReportModel):
    """The question about a topic that has its own."""

    wording: str
    scale: tuple[str, str]
    """Meanings of the scores -1 and +1."""


class SurveySummary(FlatRow):
    """The survey that models are compared with."""

    survey: Annotated[Survey, publish("name", "title", "source", "wording", "scale", "wordings")]
    question: str | None
    """The question that models were asked; null where answers were imported and their importer did not state it."""
    cells: int
    """Number of cells, each one country and one topic."""
    asked: int
    """Cells in which people were asked. Where sampling stopped early because r was precise enough, only those in which
    models were asked too."""
    topic_questions: dict[str, QuestionReport]
    """Questions of topics that have a wording or scale of their own."""
    unread_wordings: list[str]
    """Languages whose built-in further wordings are translations that no native speaker has read."""
    clusters: Literal["zone", "country"]
    """What intervals of agreement resample beside topics: cultural zones if people were asked in at least six, else
    countries. The figures of fewer countries are by country if their countries are in fewer than six zones."""
    zones: dict[str, list[str]]
    """Countries by cultural zone (Inglehart-Welzel map), as stored with the audit. Countries that are in none are zones
    of their own and do not count towards six."""
    rephrased: dict[str, RewordingReport]
    """Rewordings by language; empty where models were asked in the survey's own words."""


class ModelSummary(ReportModel):
    """One audited model or judge."""

    name: str
    model: str | None
    """Provider and model identifier; null where scores were imported."""
    judge: bool
    audited: bool


class CellReport(ReportModel):
    """Scores of people and of each model on one country and topic, in [-1, 1]."""

    country: str
    topic: str
    survey: float | None
    """Null where people were not asked."""
    scores: dict[str, dict[str, float | None]]
    """Scores by method, then model; null where no sample was usable."""


class AuditSummary(ReportModel):
    """The audit: its settings, survey, models and scores."""

    name: str
    simulated: bool
    """Whether the models are simulated, as in the worked example: the figures are then about no real model."""
    auditor: str
    """Version of the program that made the report."""
    stage: str
    complete: bool
    """Whether the audit has finished; the figures of an unfinished audit are provisional."""
    created_at: str
    finished_at: str | None
    seed: int | None
    config_hash: str | None
    imported: bool
    """Whether the answers were recorded elsewhere and imported."""
    samples: int | None
    """Planned number of samples for each cell and language; null where scores were imported."""
    thresholds: list[str] = Field(default_factory=list)
    """Names of the requirements in the configuration's table `[check]`, which `auditor check` tests."""
    survey: SurveySummary
    models: list[ModelSummary]
    cells: list[CellReport]
    """In the order of the survey."""


class Report(LinkedReport):
    """The report of an audit. Built-in probes add a field of their name; it is null where they were not measured."""

    audit: AuditSummary
    coverage: CoverageReport
    alignment: list[AlignmentRow]
    sensitivity: list[SensitivityRow]
    """Ranges of r, MAE and bias when one cultural zone, or one family of topics, is left out; empty where there is only
    one."""
    gain: list[GainRow] | None = None
    """Agreement within topics: how well models know how countries differ, beyond each topic's mean."""
    regions: RegionsReport
    topics: list[GroupErrorRow]
    countries: list[GroupErrorRow]
    self_consistency: list[ConsistencyRow]
    panel: PanelReport
    peer_agreement: list[PeerAgreementRow]
    conflicts: ConflictsReport
    cost: CostReport
    served: list[ModelVersionRow]
    """Model versions that providers reported for each model's answers; several rows of one model may mean that the
    provider changed it during the audit."""
    failures: FailuresReport
    """Why requests failed, and the models without a usable answer."""
    requests: RequestsReport
    """How models were asked: what their servers accept, and the forms of structured answers."""
    sampling: SamplingReport
    """Sampling settings by model, and whether they make self-consistency comparable."""
    environment: dict[str, Any]
    """Versions and settings at the time the audit ran."""
    baselines: list[BaselineRow]
    """Agreement of baselines that need no model."""
    guesses: list[GuessClaim]
    """Whether each model is closer to people than all baselines of a level."""
    donor_countries: int
    """Number of other countries of the survey's file among which similar ones are looked for."""
    population: list[PopulationAgreementRow]
    """Agreement without the sampling error of people's scores."""
    structure: list[StructureRow]
    """Whether models relate topics to each other as people do."""
    ceiling: list[CeilingRow]
    """Upper limit of r, from the survey's reliability."""
    nonresponse: NonresponseReport | None = None
    """Sensitivity to nonresponse, with best and worst case; null unless the configuration asks for `bounds`."""
    refusals: RefusalsReport | None
    """Null where no answer to a direct question is recorded."""
    repairs: list[ReaskRow]
    """Models that were asked again because an answer could not be parsed; empty if none was."""
    methods: list[MethodDifferenceRow]
    """Comparison of direct scores with log-probability scores; empty where only one method was used."""
    task: TaskReport | None = None
    """Answers to the items of a user-defined task; null for a survey."""
    tiers: list[TierRanking]
    """Rankings of the models, over all countries and in each region; empty for one model."""
    variance: list[VarianceRow]
    """Where the uncertainty of r, MAE and bias of each model comes from."""
    languages: LanguagesReport | None
    """Null where no model was asked about countries."""
    savings: list[SavingsRow]
    """Calls compared with those of the full design, by stage; empty where the design was not reduced."""
    consistency_alignment: list[ConsistencyAlignmentRow]
    """Correlation, over models, of consistency with agreement with people; empty for fewer than three models that were
    sampled several times."""
    shortfalls: ShortfallsReport
    """Figures beyond a threshold of failure, given how many are compared."""
    influence: list[InfluentialUnit]
    """Countries and topics on which nearly all uncertainty of a model's distance from people rests."""
    equal_series: list[EqualSeries]
    """Series with equal scores in all cells, which means over models count once."""
    cultural_findings: CulturalFindingsReport | None = None
    """The strongest differences from people by country and topic; null without scores."""
    examples: list[ExampleReport] = Field(default_factory=list)
    """The three largest differences between a model's direct score and people's."""
    judge_quality: JudgeQualityReport | None = None
    """What the judges' verdicts are worth, measured on labels by people; null without verdicts."""
    pair_labels: list[PairLabelsReport] = Field(default_factory=list)
    """The same for judges of pairs of answers and of comparisons, of each kind that people labelled."""
    over_models: OverModelsReport | None = None
    """Figures summarized over models, as papers report them; null without scores."""
    designs: DesignAverages | None = None
    """Figures over several designs of the audit, such as wordings and forms of the scale; null where
    `auditor experiment robustness` was not run."""
    attributes: AttributesReport | None = None
    """Figures by the attributes of models, and trends over their size; null where no model has attributes."""
    probes: dict[str, Any] = Field(default_factory=dict)
    """Figures of the probes of other packages, by the probe's name, in a form that the probe declares; with the key
    `unavailable`, the reason why there are none. Left out where no such probe was used."""

    def find(self, figures: type[F]) -> F | None:
        """Return the figures of the built-in probe whose field is of a class; None where they were not measured."""
        fields = (getattr(self, probe.name) for probe in list_built_in_probes())
        return next((value for value in fields if isinstance(value, figures)), None)


add_probe_fields(Report, {probe.name: probe.report_class() for probe in list_built_in_probes()})


JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class DescribedJsonSchema(GenerateJsonSchema):
    """Generator of a JSON Schema in which fields of dataclasses, too, are described by the strings after them."""

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """The JSON Schema of a dataclass."""
        json_schema = super().dataclass_schema(schema)
        for name, field in json_schema["properties"].items():
            for base in schema["cls"].__mro__[:-1]:  # without `object`, whose source cannot be read
                if name in (descriptions := read_class_descriptions(base)):
                    field.setdefault("description", descriptions[name])
        return json_schema


def render_json_schema() -> str:
    """The JSON Schema of a report as indented JSON, as stored in docs/report.schema.json.

    It has the figures of all probes in folders of the program, and of no other, whatever is installed.
    """
    report_class = _add_figures_of_probes(Report)
    schema = report_class.model_json_schema(mode="serialization", schema_generator=DescribedJsonSchema)
    return json.dumps({"$schema": JSON_SCHEMA_DIALECT, **schema}, indent=2, ensure_ascii=False) + "\n"


def _add_figures_of_probes(report_class: type[Report]) -> type[Report]:
    """Derive a report whose field `probes` has a field for each probe in a folder of the program without one."""
    probes = {probe.name: probe.call_optional("report_class", returns=type) for probe in list_folder_probes()}
    fields: dict[str, Any] = {
        name: (figures | UnavailableProbe, None) for name, figures in probes.items() if figures is not None
    }
    if not fields:
        return report_class
    declared = report_class.model_fields["probes"]
    all_probes: type[BaseModel] = create_model("ProbeFigures", __config__=ConfigDict(extra="allow"), **fields)
    annotated: Any = (all_probes, declared)
    return create_model(report_class.__name__, __base__=report_class, __doc__=report_class.__doc__, probes=annotated)


if __name__ == "__main__":
    print(render_json_schema(), end="")
