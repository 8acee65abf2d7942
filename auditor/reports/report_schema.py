"""The report as data: the classes follow the order of its keys.

The measured parts are in `auditor.reports.measurement_schema`. A change here or there is a change of an interface:
`docs/report.schema.json` is made from it.
"""

from __future__ import annotations

from typing import Any, Literal

from auditor.reports.agreement.languages import LanguagesReport
from auditor.reports.agreement.method_differences import MethodDifferenceRow
from auditor.reports.agreement.tiers import TierRanking
from auditor.reports.cost.savings import SavingsRow
from auditor.reports.cost.schema import CostReport
from auditor.reports.coverage.model_versions import ModelVersionRow
from auditor.reports.coverage.refusals import ReaskRow, RefusalsReport
from auditor.reports.coverage.schema import CoverageReport
from auditor.reports.logic.schema import LogicReport
from auditor.reports.measurement_schema import (
    AlignmentRow,
    BaselineRow,
    CeilingRow,
    ConsistencyRow,
    Estimate,
    GainRow,
    GroupErrorRow,
    NonresponseReport,
    PeerAgreementRow,
    RegionsReport,
    ReportModel,
)
from auditor.reports.panel.schema import PanelReport
from auditor.reports.semantic.schema import SemanticReport
from auditor.reports.task.schema import TaskReport

# --- audit ------------------------------------------------------------------------------------------------------


class RewordingReport(ReportModel):
    """Other words than the survey's own."""

    wording: str
    scale: tuple[str, str]
    topics: dict[str, str]
    """Wordings of topics by label; the others keep their own."""


class SurveySummary(ReportModel):
    """The ground truth."""

    name: str
    title: str
    source: str
    wording: str
    scale: tuple[str, str]
    """What -1 and +1 mean."""
    cells: int
    """Cells of a country and a topic."""
    asked: int
    """Cells in which people were asked, and models too, where asking ended once r was known closely enough."""
    rephrased: dict[str, RewordingReport]
    """By language; empty where models were asked in the survey's own words."""


class ModelSummary(ReportModel):
    """One audited model or judge."""

    name: str
    model: str | None
    """Provider and model; null where scores were imported."""
    judge: bool
    audited: bool


class CellReport(ReportModel):
    """One country and topic: what people say and what each model says, in [-1, 1]."""

    country: str
    topic: str
    survey: float | None
    """Null where people were not asked."""
    scores: dict[str, dict[str, float | None]]
    """By method, then model; null where no sample was usable."""


class AuditSummary(ReportModel):
    """What was audited."""

    name: str
    auditor: str
    """Version of the program that made the report."""
    stage: str
    complete: bool
    """Whether the audit ran to its end; figures of one that did not are provisional."""
    created_at: str
    finished_at: str | None
    seed: int | None
    config_hash: str | None
    samples: int | None
    """Samples of a cell that were to be taken in each language; null where scores were imported."""
    survey: SurveySummary
    models: list[ModelSummary]
    cells: list[CellReport]
    """In the order of the survey."""


# --- conflicts --------------------------------------------------------------------------------------------------


class ConflictSideReport(ReportModel):
    """One side of a conflict."""

    model: str
    score: float | None
    """Null for answers that are no scores."""
    answer: str | None = None
    """To an item of a task; null for a survey."""
    votes: int
    reasoning: str | None
    """One of the samples behind the score, the one nearest to it; null where none is stored."""
    shortened: bool = False


class ListedConflictReport(ReportModel):
    """One conflict."""

    id: str
    country: str
    topic: str
    kind: str
    state: str
    survey: float | None
    truth: str | None = None
    """The right answer to an item of a task, where it is known."""
    difference: float | None
    """Left less right; null where the sides have no scores."""
    left: ConflictSideReport
    right: ConflictSideReport
    seats: int
    winner: str | None
    """The model whose side was upheld, by the judges or by people."""
    decision: str | None
    """What people decided."""
    raters: list[str]
    notes: list[str]
    within_noise: bool | None
    """Whether the difference is no more than the samples' own noise; null where that is not known."""


class ConflictKindRow(ReportModel):
    """Conflicts of one kind, by state."""

    kind: str
    total: int
    states: dict[str, int]


class ConflictPairRow(ReportModel):
    """Conflicts between two models, by kind."""

    left: str
    right: str
    total: int
    kinds: dict[str, int]


class VotingReport(ReportModel):
    """How the judges' votes were counted, beside one vote each; what people decided has no part in it."""

    rule: Literal["majority", "weighted", "dawid_skene"]
    weights: dict[str, float]
    """The weight of each judge's vote; empty where each has one vote."""
    by_majority: int | None
    """Conflicts that a strict majority of the seats settles; null where an adaptive panel stopped asking by weight, so
    that not all have voted."""
    by_weight: int | None
    """Conflicts that the rule settles, where it is another than the majority; null where it is the majority."""
    same_side: int | None
    """Conflicts that both settle, for the same side."""
    other_side: int | None
    """Conflicts that both settle, but for opposite sides."""


class MethodConflictRow(ReportModel):
    """How often the two methods of one model are in conflict with each other."""

    model: str
    first: str
    second: str
    conflicts: Estimate
    """Share of the cells with both scores on which they differ by at least the threshold."""
    opposite: int
    """Of these, those with the scores on opposite sides of zero (binary); the others differ in strength (gradient)."""
    difference: Estimate
    """Mean of the first less the second, over cells."""
    largest: list[tuple[str, str, float, float]]
    """Country, topic and both scores of the conflicts that differ most."""


class ConflictsReport(ReportModel):
    """Cells on which models differ by at least the threshold."""

    threshold: float | Literal["auto"] | None
    """As configured; `auto` is the third quartile of the audit's own differences; null where there is no config."""
    third_quartile: Estimate
    """Of all differences between two models on a cell: what `auto` uses; n counts differences."""
    settled: Estimate
    """Share of the conflicts of scores that the judges settle."""
    within_noise: Estimate
    """Share of the conflicts of scores, where that is known, that are within the samples' own noise."""
    between_methods: list[MethodConflictRow]
    """Cells on which one model's two methods differ by at least the threshold; empty where only one was asked for."""
    total: int
    """Of all kinds; judges have a vote on those of scores alone, which `settled` counts."""
    states: dict[str, int]
    voting: VotingReport | None
    """Null where there is no config, as for imported scores."""
    kinds: list[ConflictKindRow]
    pairs: list[ConflictPairRow]
    largest: list[ListedConflictReport]
    """By the difference, largest first."""
    not_listed: int


# --- the report -------------------------------------------------------------------------------------------------


class Report(ReportModel):
    """All that is known of an audit. `semantic` and `logic` are null where they were not measured."""

    audit: AuditSummary
    coverage: CoverageReport
    alignment: list[AlignmentRow]
    gain: list[GainRow] | None = None
    """What models know beyond the mean of each topic: agreement within topics."""
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
    """What providers say they used for each model's answers; more than one row of a model may mean that it changed."""
    environment: dict[str, Any]
    """Versions and settings as they were when the audit ran."""
    baselines: list[BaselineRow]
    """Agreement that needs no model."""
    ceiling: list[CeilingRow]
    """How high r can be."""
    nonresponse: NonresponseReport | None = None
    """Best and worst case, where the configuration asks for `bounds`."""
    refusals: RefusalsReport | None
    """Null where no answer to a direct question is recorded."""
    repairs: list[ReaskRow]
    """Empty where every answer could be read at once, or none was asked for again."""
    methods: list[MethodDifferenceRow]
    """Direct scores beside log-probabilities; empty where only one of them was asked for."""
    task: TaskReport | None = None
    """Answers to items of the user's own; null for a survey."""
    tiers: list[TierRanking]
    """Rankings of the models, over all countries and in each region; empty for one model."""
    languages: LanguagesReport | None
    """Null where no model was asked about countries."""
    savings: list[SavingsRow]
    """Calls beside those of the full design, by stage; empty where everything was to be asked."""
