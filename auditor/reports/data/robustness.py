"""What an audit's figures owe to choices of its design: the runs of the experiment `robustness`, and its figures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from auditor.domain import Outcome, Survey
from auditor.domain.audit_records import DesignAnswer, PlannedRun
from auditor.metrics.designs.robustness import (
    ChangedCell,
    DesignRun,
    DesignScore,
    DesignTable,
    ModelPair,
    RankingTest,
    RegionGap,
    average_designs,
    compare_all_levels,
    compare_level_correlations,
    compare_rankings,
    estimate_designs,
    find_changed_cells,
)
from auditor.metrics.designs.run_effects import estimate_sources
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.people.alignment import CONCORDANCE, PEARSON
from auditor.reports.data.report_model import FlatRow, ModelName, PublishedAs, ReportModel, RowTest, publish
from auditor.reports.data.report_source import MIN_ZONES, ReportSource
from auditor.reports.document import Column
from auditor.storage.database import Database
from auditor.storage.records import load_records
from auditor.storage.results import load_design_answers

TextLoader: TypeAlias = Callable[[str, int, str, str], str | None]
"""From a model, a run, a country and a topic to the text of its first usable answer; None where there is none."""
WORDING = "wording"
"""The factor whose levels are a sample of possible ones: only their variance is estimated."""
MIN_WORDINGS = 5
"""Fewer are compared with each other, as levels of other factors: they show too little of how wordings vary."""
N_CHANGED_CELLS = 5


class DesignAverageRow(FlatRow):
    """One model over all designs, in which every level of a factor counts alike."""

    model: ModelName
    mae: Annotated[Estimate, Column("MAE over designs", show_n=False)]
    """Mean over designs of the mean absolute error of scores in one design. The interval includes the variance between
    wordings where there are several."""
    bias: Annotated[Estimate, Column("Bias over designs", style="signed", show_n=False)]
    lowest_mae: Annotated[float | None, Column("Lowest")]
    """Smallest mean absolute error of a run, sampling noise included."""
    highest_mae: Annotated[float | None, Column("Highest")]
    runs: int
    """Runs in which the model has usable answers."""


class DesignRow(FlatRow):
    """One model in one run of the design, over all cells."""

    model: ModelName
    run: int
    mae: Estimate
    """Mean absolute error, with an interval over countries (or zones) and topics for this run alone."""
    bias: Estimate


class LevelDifferenceRow(FlatRow):
    """A model's figures with one level of a factor, minus those with another, all other factors being equal.

    Intervals hold for all rows with the same figure together (Bonferroni); p-values are adjusted for them (Holm).
    """

    model: ModelName
    factor: Annotated[str, Column("Choice", "name")]
    first: str
    second: Annotated[str, Column("Levels", key="levels")]
    mae: Annotated[Tested, Column("MAE", style="signed", show_n=False, emphasis=True)]
    bias: Annotated[Tested, Column("Bias", style="signed", show_n=False)]
    mae_gap: Annotated[Tested, Column("Gap in MAE", style="signed", show_n=False)]
    """Difference of the gap in MAE between two regions: those with the largest gap over all designs."""
    bias_gap: Annotated[Tested, Column("Gap in bias", style="signed", show_n=False)]
    pearson_r: Annotated[Estimate, Column("r", style="signed", show_n=False)]
    """Pearson's r with people at the second level minus that at the first, over cells that both were asked."""
    concordance: Annotated[Estimate, Column("Concordance", style="signed", show_n=False)]
    """The same for Lin's concordance."""


class VarianceSourceRow(ReportModel):
    """Variance of the errors of cells in single designs from one source."""

    source: str
    """`model`, a factor, `factor × factor`, `model × FACTOR`, `cell`, `model × cell` or `residual`."""
    absolute: float | None
    """Variance of absolute errors; null where it cannot be separated from others."""
    signed: float | None
    """Variance of signed errors."""


class RankingChangeRow(FlatRow):
    """Whether the difference in MAE between two models depends on a factor."""

    test: Annotated[
        RankingTest,
        PublishedAs(
            {"pair.factor": "factor", "pair.first": "first_level", "pair.second": "second_level"}
            | publish("first", "second", "at_first", "at_second", "is_change").keys
        ),
    ]
    change: RowTest
    """The first model's MAE minus the second's at the second level, minus that at the first level. The p-value counts
    all pairs of levels; the adjusted one all pairs of models and factors."""


class DesignCountRow(ReportModel):
    """In how many designs the first of two models is closer to people."""

    first: str
    """The model with the smaller error over all designs."""
    second: str
    better: int
    runs: int
    expected: float
    """The count that sampling alone would give if the difference were the same in all designs."""


class ChangedCellRow(FlatRow):
    """A cell in which a model's scores differ most between designs, with the two answers."""

    change: Annotated[ChangedCell, publish(*ChangedCell._fields)]
    low_text: str | None
    high_text: str | None


class DesignRunRow(ReportModel):
    """One run of the design."""

    number: int
    """From 0, the run with the audit's settings."""
    levels: dict[str, str]


class RobustnessReport(ReportModel):
    """Figures of a design over all models."""

    audit: str
    runs: list[DesignRunRow]
    models: list[str]
    cells: int
    answers: int
    """Scores of a model, a cell and a run that were asked for."""
    lost: dict[str, int]
    """Those without a usable score, by outcome."""
    random_factors: list[str]
    averages: list[DesignAverageRow] = Field(default_factory=list)
    designs: list[DesignRow] = Field(default_factory=list)
    levels: list[LevelDifferenceRow] = Field(default_factory=list)
    regions: dict[str, list[str]] = Field(default_factory=dict)
    """By model, the regions with the largest and the smallest MAE over all designs, whose gap is compared; models
    without two regions are absent."""
    sources: list[VarianceSourceRow] = Field(default_factory=list)
    rankings: list[RankingChangeRow] = Field(default_factory=list)
    counts: list[DesignCountRow] = Field(default_factory=list)
    changed: list[ChangedCellRow] = Field(default_factory=list)


def build_robustness(
    audit: str,
    runs: Sequence[DesignRun],
    scores: Sequence[DesignScore],
    *,
    regions: Mapping[str, str] | None = None,
    zones: Mapping[str, str] | None = None,
    load_text: TextLoader = lambda _model, _run, _country, _topic: None,
) -> RobustnessReport:
    """Compute the figures of a design.

    Args:
        runs, scores: see `DesignTable.from_scores`.
        regions: the region of each country.
        zones: the cultural zone of each country; intervals cluster countries by zone if they are in at least six.
        load_text: reads the answers that are quoted, a few pairs in all.
    """
    table = make_table(runs, scores, zones)
    averages = average_models(table)
    return RobustnessReport(
        audit=audit,
        runs=[DesignRunRow(number=run.number, levels=dict(run.levels)) for run in runs],
        models=list(table.models),
        cells=len(table.truth),
        answers=len(scores),
        lost=dict(Counter(score.outcome for score in scores if score.score is None)),
        random_factors=list_random_factors(table),
        averages=averages,
        designs=_build_designs(table),
        levels=_build_levels(table, regions or {}),
        regions=_name_regions(table, regions or {}),
        sources=_build_sources(table),
        rankings=[RankingChangeRow(test=test, change=test.estimate) for test in compare_rankings(table)],
        counts=_build_counts(table, averages),
        changed=_build_changed(table, load_text),
    )


def make_table(
    runs: Sequence[DesignRun], scores: Sequence[DesignScore], zones: Mapping[str, str] | None
) -> DesignTable:
    """Arrange scores, with cultural zones in the place of countries if the cells are in at least six of them."""
    countries = {score.country for score in scores}
    has_zones = zones is not None and len({zones[name] for name in countries if name in zones}) >= MIN_ZONES
    return DesignTable.from_scores(runs, scores, zones if has_zones else None)


def list_random_factors(table: DesignTable) -> list[str]:
    """The wording, if there are at least five."""
    return [WORDING] if len(table.level_contrasts.factors.get(WORDING, ())) >= MIN_WORDINGS else []


def average_models(table: DesignTable) -> list[DesignAverageRow]:
    """Figures of each model over all designs."""
    rows = []
    for i, model in enumerate(table.models):
        maes = [estimate.value for _, estimate in estimate_designs(table, i, "mae") if estimate.value is not None]
        mae, bias = (average_designs(table, i, kind, list_random_factors(table)) for kind in ("mae", "bias"))
        rows.append(
            DesignAverageRow(
                model=model,
                mae=mae,
                bias=bias,
                lowest_mae=min(maes, default=None),
                highest_mae=max(maes, default=None),
                runs=len(maes),
            )
        )
    return rows


def _build_designs(table: DesignTable) -> list[DesignRow]:
    """Each model in each run."""
    return [
        DesignRow(model=model, run=run.number, mae=mae, bias=bias)
        for i, model in enumerate(table.models)
        for (run, mae), (_, bias) in zip(
            estimate_designs(table, i, "mae"), estimate_designs(table, i, "bias"), strict=True
        )
    ]


def _build_levels(table: DesignTable, regions: Mapping[str, str]) -> list[LevelDifferenceRow]:
    """Differences between levels of all factors that are not random."""
    random_factors = list_random_factors(table)
    means = [compare_all_levels(table, kind, random_factors) for kind in ("mae", "bias")]
    gaps = [compare_all_levels(table, kind, random_factors, regions) for kind in ("mae", "bias")]
    rows = []
    for mae, bias, mae_gap, bias_gap in zip(*means, *gaps, strict=True):
        model = table.models.index(mae.model)
        r, concordance = (
            compare_level_correlations(table, model, statistic, mae.pair) for statistic in (PEARSON, CONCORDANCE)
        )
        rows.append(
            LevelDifferenceRow(
                model=mae.model,
                factor=mae.pair.factor,
                first=mae.pair.first,
                second=mae.pair.second,
                mae=mae.estimate,
                bias=bias.estimate,
                mae_gap=mae_gap.estimate,
                bias_gap=bias_gap.estimate,
                pearson_r=r,
                concordance=concordance,
            )
        )
    return rows


def _name_regions(table: DesignTable, regions: Mapping[str, str]) -> dict[str, list[str]]:
    """The two regions that are compared for each model."""
    gaps = {model: RegionGap(table, i, "mae", regions) for i, model in enumerate(table.models)}
    return {model: [gap.high, gap.low] for model, gap in gaps.items() if gap.high is not None and gap.low is not None}


def _build_sources(table: DesignTable) -> list[VarianceSourceRow]:
    """Components of variance of absolute and of signed errors."""
    if not table.models:
        return []
    absolute, signed = (
        estimate_sources(np.stack([table.errors(i, kind) for i in range(len(table.models))]), table.level_contrasts)
        or {}
        for kind in ("mae", "bias")
    )
    return [
        VarianceSourceRow(source=source, absolute=absolute.get(source), signed=signed.get(source))
        for source in dict.fromkeys((*absolute, *signed))
    ]


def _build_counts(table: DesignTable, averages: Sequence[DesignAverageRow]) -> list[DesignCountRow]:
    """For every two models, in how many runs the one with the smaller error over designs is better."""
    maes = {i: row.mae.value for i, row in enumerate(averages) if row.mae.value is not None}
    rows = []
    for first, second in combinations(sorted(maes, key=lambda i: maes[i]), 2):
        count = ModelPair(table, first, second).count_designs()
        if count is not None:
            names = (table.models[first], table.models[second])
            better, n_runs, expected = count
            rows.append(DesignCountRow(first=names[0], second=names[1], better=better, runs=n_runs, expected=expected))
    return rows


def _build_changed(table: DesignTable, load_text: TextLoader) -> list[ChangedCellRow]:
    """The cells that change most, with both answers."""
    return [
        ChangedCellRow(
            change=change,
            low_text=load_text(change.model, change.low_run, change.country, change.topic),
            high_text=load_text(change.model, change.high_run, change.country, change.topic),
        )
        for change in find_changed_cells(table, N_CHANGED_CELLS)
    ]


WITHOUT_JUDGE = "without "
"""Before the name of the judge whose verdicts a panel lacks."""


class DesignAverages(ReportModel):
    """Figures over several designs in which the audit was asked. `alignment` has those of the audit's design alone."""

    runs: int
    """Combinations of choices in which models were asked, the audit's included."""
    choices: dict[str, list[str]]
    """What was varied, with its levels; the first one is the audit's."""
    averages: list[DesignAverageRow]


class ConfoundingRow(ReportModel):
    """Two effects that the design does not separate completely."""

    effect: str
    other: list[str]
    """Another factor, or the two factors of an interaction."""
    share: float
    """Largest squared correlation of their contrasts; 1 if they cannot be told apart."""


class PanelVariantRow(ReportModel):
    """The conflicts that one way to count the recorded verdicts settles."""

    panel: str
    """`as audited`, a rule, or the judge that is left out."""
    settled: int
    """Conflicts with a winner."""
    changed: int
    """Conflicts whose state or winner differs from the audit's."""


class DesignReport(ReportModel):
    """The design, and what its runs show."""

    audit: str
    factors: dict[str, list[str]]
    """Levels by factor; the first is the audit's."""
    omitted: dict[str, str]
    """Factors and levels that the design leaves out, with the reason."""
    runs: int
    runs_per_cell: int
    cells: int
    samples: int
    """Answers of each model on each cell in a run."""
    planned: int
    """Calls of all runs; equal calls count once."""
    recorded: int
    """Those with a recorded answer."""
    forecast: str
    """Calls and cost of the others."""
    confounding: list[ConfoundingRow]
    conflicts: int
    panels: list[PanelVariantRow]
    figures: RobustnessReport | None
    """None before a run was asked."""


def load_design_scores(db: Database, audit_id: int, survey: Survey) -> tuple[list[DesignRun], list[DesignScore]]:
    """Load the runs of an audit's design and the scores in them; both are empty if none was asked."""
    runs = load_records(db, audit_id, PlannedRun)
    scores = average_samples(load_design_answers(db, audit_id), survey)
    return ([DesignRun(run.number, run.levels) for run in runs], scores) if scores else ([], [])


def build_design_averages(source: ReportSource) -> DesignAverages | None:
    """The figures over designs that the audit's report has beside its own; None without answers in two runs."""
    if len({answer.run for answer in source.design_answers}) < 2:
        return None
    runs = [DesignRun(run.number, run.levels) for run in source.design_runs]
    table = make_table(runs, average_samples(source.design_answers, source.survey), source.zone_by_country)
    return DesignAverages(
        runs=len(table.runs),
        choices={name: list(levels) for name, levels in table.level_contrasts.factors.items()},
        averages=average_models(table),
    )


def average_samples(answers: Sequence[DesignAnswer], survey: Survey) -> list[DesignScore]:
    """Average the usable samples of each model, run and cell; without any, the most common outcome says why."""
    samples = defaultdict(list)
    for answer in answers:
        if answer.cell in survey.scores:
            samples[answer.run, answer.model, answer.cell].append(answer)
    rows = []
    for (run, model, cell), group in samples.items():
        usable = [answer.score for answer in group if answer.outcome is Outcome.OK and answer.score is not None]
        score = sum(usable) / len(usable) if usable else None
        outcome = Outcome.OK if usable else Counter(answer.outcome for answer in group).most_common(1)[0][0]
        rows.append(DesignScore(model, run, cell.country, cell.topic, score, survey.scores[cell], outcome.value))
    return rows
