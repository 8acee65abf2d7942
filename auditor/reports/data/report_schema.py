"""Schema of the report; the classes are in the order of its keys.

The measured parts are in `auditor.reports.data.measurement_schema`. Both are a published interface:
`docs/report.schema.json` is generated from them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.agreement.cultural_findings import CulturalFindingsReport
from auditor.reports.data.agreement.languages import LanguagesReport
from auditor.reports.data.agreement.method_differences import MethodDifferenceRow
from auditor.reports.data.agreement.over_models import OverModelsReport
from auditor.reports.data.agreement.sensitivity import SensitivityRow
from auditor.reports.data.agreement.tiers import TierRanking
from auditor.reports.data.agreement.variance import VarianceRow
from auditor.reports.data.cost.savings import SavingsRow
from auditor.reports.data.cost.schema import CostReport
from auditor.reports.data.coverage.model_versions import ModelVersionRow
from auditor.reports.data.coverage.refusals import ReaskRow, RefusalsReport
from auditor.reports.data.coverage.schema import CoverageReport
from auditor.reports.data.distribution.schema import DistributionReport
from auditor.reports.data.examples import ExampleReport
from auditor.reports.data.failures.schema import FailuresReport
from auditor.reports.data.judge_quality.pair_schema import PairLabelsReport
from auditor.reports.data.judge_quality.schema import JudgeQualityReport
from auditor.reports.data.logic.schema import LogicReport
from auditor.reports.data.measurement_schema import (
    BaselineRow,
    CeilingRow,
    ConsistencyAlignmentRow,
    ConsistencyRow,
    GainRow,
    GroupErrorRow,
    NonresponseReport,
    PeerAgreementRow,
    RegionsReport,
)
from auditor.reports.data.panel.schema import PanelReport
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.requests.capabilities import RequestsReport
from auditor.reports.data.requests.sampling_settings import SamplingReport
from auditor.reports.data.semantic.schema import SemanticReport
from auditor.reports.data.task.schema import TaskReport
from auditor.reports.data.traces.schema import LinkedReport


class RewordingReport(ReportModel):
    """A wording of the question that the configuration uses instead of the survey's."""

    wording: str
    scale: tuple[str, str]
    topics: dict[str, str]
    """Reworded topics, by the survey's label; topics that are not listed keep the survey's wording."""


class SurveySummary(ReportModel):
    """The survey that models are compared with."""

    name: str
    title: str
    source: str
    wording: str
    scale: tuple[str, str]
    """Meanings of the scores -1 and +1."""
    cells: int
    """Number of cells, each one country and one topic."""
    asked: int
    """Cells in which people were asked. Where sampling stopped early because r was precise enough, only those in which
    models were asked too."""
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
    samples: int | None
    """Planned number of samples for each cell and language; null where scores were imported."""
    survey: SurveySummary
    models: list[ModelSummary]
    cells: list[CellReport]
    """In the order of the survey."""


class ConflictSideReport(ReportModel):
    """One side of a conflict."""

    model: str
    score: float | None
    """Null for answers that are not scores."""
    answer: str | None = None
    """Answer to an item of a task; null for a survey."""
    votes: int
    reasoning: str | None
    """Reasoning of the sample whose score is nearest to this side's score; null where none is stored."""
    shortened: bool = False


class ListedConflictReport(ReportModel):
    """One conflict between two sides, in full."""

    id: str
    country: str
    topic: str
    kind: str
    state: str
    survey: float | None
    truth: str | None = None
    """The right answer to an item of a task, where it is known."""
    difference: float | None
    """Score of the left side minus that of the right; null where the sides have no scores."""
    left: ConflictSideReport
    right: ConflictSideReport
    seats: int
    winner: str | None
    """The model whose side the judges or people chose; null if neither."""
    decision: str | None
    """The decision of human reviewers; null if there is none."""
    raters: list[str]
    notes: list[str]
    within_noise: bool | None
    """Whether the difference is no larger than the sampling noise; null where that is not known."""


class ConflictKindRow(ReportModel):
    """Number of conflicts of one kind, by state."""

    kind: str
    total: int
    states: dict[str, int]


class ConflictPairRow(ReportModel):
    """Number of conflicts between two models, by kind."""

    left: str
    right: str
    total: int
    kinds: dict[str, int]


class VotingReport(ReportModel):
    """Conflicts settled by the configured voting rule, compared with those settled by a strict majority. Decisions of
    human reviewers are not counted."""

    rule: Literal["majority", "weighted", "dawid_skene"]
    weights: dict[str, float]
    """Weight of each judge's vote; empty where all votes count equally."""
    by_majority: int | None
    """Conflicts settled by a strict majority of the assigned judges; null where an adaptive panel stopped early by
    weight, so that not all judges have voted."""
    by_weight: int | None
    """Conflicts settled by the configured rule; null if that rule is the majority."""
    same_side: int | None
    """Conflicts that both rules settle, for the same side."""
    other_side: int | None
    """Conflicts that both rules settle, for opposite sides."""


class MethodConflictRow(ReportModel):
    """Conflicts between the two methods of scoring one model."""

    model: str
    first: str
    second: str
    conflicts: ShareEstimate
    """Share of the cells with both scores in which the scores differ by at least the threshold."""
    opposite: int
    """Conflicts with the scores on opposite sides of zero (binary); the others differ in strength (gradient)."""
    difference: Estimate
    """Mean over cells of the first score minus the second."""
    largest: list[tuple[str, str, float, float]]
    """Country, topic and both scores of the conflicts with the largest difference."""


class ConflictCellsReport(ReportModel):
    """Conflicts between models counted by cell. The pair with the largest difference stands for its cell."""

    cells: int
    """Cells with a conflict."""
    compared: int
    """Cells with scores of at least two models."""
    kinds: dict[str, int]
    """Cells by the kind of the pair; they add up to `cells`."""
    kind_shares: dict[str, float]
    """`kinds` as shares of `cells`; empty without conflicts."""
    settled: int
    """Cells in which the judges settled the conflict of the pair."""
    settled_share: float | None
    """`settled` as a share of `cells`; null without conflicts."""
    pairs: int
    """Conflicts, each of one pair of models in one cell."""
    pair_kind_shares: dict[str, float]
    """Kinds as shares of `pairs`; empty without conflicts."""


class ConflictsReport(ReportModel):
    """Conflicts: cells on which two models differ by at least the threshold."""

    threshold: float | Literal["auto"] | None
    """Configured threshold; `auto` is the third quartile of the audit's differences; null where there is no config."""
    third_quartile: Estimate
    """Third quartile of all absolute differences between two models on a cell, which `auto` uses; n counts
    differences."""
    settled: ShareEstimate
    """Share of the score conflicts that the judges settle."""
    within_noise: ShareEstimate
    """Share of score conflicts within the sampling noise, of those for which that is known."""
    between_methods: list[MethodConflictRow]
    """Conflicts between the two methods of one model; empty where only one method was used."""
    total: int
    """Conflicts of all kinds. Judges vote only on score conflicts, which `settled` counts."""
    states: dict[str, int]
    by_cell: ConflictCellsReport | None = None
    """Null where there is no config, as for imported scores, and for a task."""
    voting: VotingReport | None
    """Null where there is no config, as for imported scores."""
    kinds: list[ConflictKindRow]
    pairs: list[ConflictPairRow]
    largest: list[ListedConflictReport]
    """Conflicts with the largest differences, in descending order."""
    not_listed: int


class Report(LinkedReport):
    """The report of an audit. `semantic` and `logic` are null where they were not measured."""

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
    semantic: SemanticReport | None = None
    """Consistency under paraphrase."""
    logic: LogicReport | None = None
    """Consistency of preferences."""
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
    cultural_findings: CulturalFindingsReport | None = None
    """The strongest differences from people by country and topic; null without scores."""
    examples: list[ExampleReport] = Field(default_factory=list)
    """The three largest differences between a model's direct score and people's."""
    judge_quality: JudgeQualityReport | None = None
    """What the judges' verdicts are worth, measured on labels by people; null without verdicts."""
    pair_labels: list[PairLabelsReport] = Field(default_factory=list)
    """The same for judges of pairs of answers and of comparisons, of each kind that people labelled."""
    distribution: DistributionReport | None = None
    """Distributions of answers on the survey's scale, compared with people's; null where not measured."""
    over_models: OverModelsReport | None = None
    """Figures summarized over models, as papers report them; null without scores."""
