"""Rows of the report on distributions of answers."""

from __future__ import annotations

from typing import Annotated, Literal

from auditor.metrics.intervals.estimate import Estimate
from auditor.probes.distribution.opinions import OpinionMode
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.document import Column


class DistributionModelRow(ReportModel):
    """A model's answers compared with people's shares, in one mode; cells weigh alike."""

    model: ModelName
    mode: Annotated[str, Column("Asked for")]
    """`verbalized`: it stated shares, what it knows; `sampled`: it answered as single people, what it does; `tokens`:
    probabilities of the answers as the next token."""
    n_cells: Annotated[int, Column("Cells")]
    """Cells with shares of people and of the model."""
    incomplete: int
    """Cells with shares of people that the model was asked about, but with too few usable answers."""
    answers: int
    """Answers to all questions, also about groups and without a country."""
    unusable: int
    """Answers that could not be used."""
    losses: dict[str, int]
    """Unusable answers by outcome; only outcomes that occurred."""
    rescaled: int
    """Stated shares that did not add up to 1 and were divided by their sum."""
    unlisted: int
    """With `tokens`: answers of which an option was not among the listed next tokens; its share is 0."""
    mass: float | None
    """With `tokens`: mean probability of all options together, in [0, 1]; null in other modes."""
    w1: Annotated[Estimate, Column("W1 (lower is better)", table="distribution-models")]
    """Mean Wasserstein distance, in [0, 1]; to be read beside its floor."""
    w1_floor: Annotated[Estimate, Column("Floor of W1", table="distribution-models")]
    """The same of a model that samples people perfectly, with the 95% band of sampling."""
    w1_near: Annotated[Estimate, Column("Cells with W1 below 0.2", table="distribution-models")]
    """Share of cells whose Wasserstein distance is below 0.2, as in WorldValuesBench (arXiv 2404.16308)."""
    distance: Annotated[Estimate, Column("Corrected distance", table="distribution-models")]
    """Root of the mean squared distance, corrected for sampling error; 0 is perfect."""
    skill: Annotated[Estimate, Column("Skill", table="distribution-models")]
    """1 is perfect, 0 as good as the mean of the other countries on the same topic, below 0 worse."""
    exact_mean_skill: float | None
    """The skill of the exact mean of all countries on each topic: 1 / their number, averaged over cells. A model that
    knows nothing about single countries has about this skill at most. Null without a skill."""
    skill_region: Annotated[Estimate, Column("Skill against the region", table="distribution-models")]
    """The same against the mean of the other countries of the region."""
    variance_ratio: Annotated[Estimate, Column("Variance ratio", table="distribution-diversity")]
    """Variance of the model's answers divided by that of people's: below 1 is less diverse."""
    collapse: Annotated[Estimate, Column("Cells with equal answers", table="distribution-diversity")]
    """Share of cells in which all sampled answers are the same."""
    order_effect: Annotated[Estimate, Column("Shift to the first option", table="distribution-diversity")]
    """By how much of the scale answers move towards the end that is shown first, in [-1, 1]."""
    country_gain: Annotated[Estimate, Column("Gain by naming the country", table="distribution-diversity")]
    """By how much naming the country reduces the squared distance from its people, in [-1, 1]."""
    total_variation: Annotated[Estimate, Column("Total variation", table="distribution-nominal")]
    jensen_shannon: Annotated[Estimate, Column("Jensen-Shannon distance (bits)", table="distribution-nominal")]
    """Distance in bits."""

    @property
    def is_sampled(self) -> bool:
        """Whether the model answered as single people, so that its spread depends on the sampling settings."""
        return self.mode == OpinionMode.SAMPLED


class DistributionStep(ReportModel):
    """Mean answers over the same cells, as shares of the scale in [0, 1]; null without a cell."""

    group: str
    before: float | None
    """The model's for the country."""
    after: float | None
    """The model's for the group."""
    people: float | None
    """People's of the group."""


class DistributionGroupRow(ReportModel):
    """A model's gaps between two groups compared with people's; a gap is the second group's mean less the first's."""

    model: ModelName
    mode: Annotated[str, Column("Asked for")]
    dimension: str
    first: Annotated[str, Column("Groups", key="groups")]
    second: str
    n: Annotated[int, Column("Cells")]
    """Cells with both groups, of people and of the model."""
    slope: Annotated[Estimate, Column("Slope of gaps")]
    """Slope through the origin: 1 is the right size, above 1 exaggerates, below 0 is the wrong direction."""
    intercept_slope: Annotated[Estimate, Column("Slope with intercept")]
    """The same with an intercept: differences of gaps between cells only."""
    r: Annotated[Estimate, Column("r of gaps")]
    """Correlation of the gaps as observed."""
    specificity: Annotated[Estimate, Column("Specificity")]
    """Above 0 if the name of a group moves answers towards this group; in [-1, 1]."""
    steering_gain: Annotated[Estimate, Column("Steering gain")]
    """By how much the groups' names reduce the squared distance, less what an irrelevant attribute does."""
    people_gaps: list[float]
    """People's gap in each cell, as a share of the scale."""
    model_gaps: list[float]
    """The model's gap in the same cells."""
    steps: list[DistributionStep]
    """Where naming each of the two groups moves the model's answers."""


class DistributionDimensionRow(ReportModel):
    """A model's answers for all groups of a dimension together; cells weigh alike."""

    model: ModelName
    mode: Annotated[str, Column("Asked for")]
    dimension: Annotated[str, Column("Dimension")]
    n: Annotated[int, Column("Cells")]
    """Cells with at least two groups, of people and of the model."""
    coherence: Annotated[Estimate, Column("Distance of all groups from the country")]
    """Mean Wasserstein distance of the groups' answers, put together by people's numbers, from those for the country;
    0 for groups that add up to the country."""
    within_variance_ratio: Annotated[Estimate, Column("Variance ratio within groups")]
    """Variance of the model's answers within groups divided by people's: below 1, groups are more alike inside."""


class DistributionCellRow(ReportModel):
    """One cell of a model, as an example."""

    model: ModelName
    mode: Annotated[str, Column("Asked for")]
    country: Annotated[str, Column("Country", "name")]
    topic: Annotated[str, Column("Topic", "name")]
    rank: Annotated[Literal["closest", "middle", "furthest"], Column("Among the cells")]
    """Among the model's cells by Wasserstein distance."""
    w1: Annotated[float, Column("W1")]
    people: list[float]
    """Shares of people's answers, in the order of the topic's answers."""
    answers: list[float]
    """Shares of the model's answers."""


class DistributionGapRow(ReportModel):
    """What a model knows against what it does, over the cells with both."""

    model: ModelName
    n: Annotated[int, Column("Cells")]
    knowledge_gap: Annotated[Estimate, Column("Sampled minus stated, squared distance")]
    """Squared distance from people of its sampled answers less that of the shares that it states; above 0, it knows
    more than it shows."""


class DistributionBaselineRow(ReportModel):
    """A simple guess that does not see the cell."""

    name: Annotated[str, Column("Guess")]
    n_cells: Annotated[int, Column("Cells")]
    w1: Annotated[float | None, Column("W1")]
    distance: Annotated[float | None, Column("Corrected distance")]
    """Root of the mean squared distance, corrected for sampling error."""


class DistributionReport(ReportModel):
    """Models' answers on the survey's scale, compared with the shares of people's answers."""

    points: list[str]
    """The answers, from the low end of the scale to the high one."""
    is_ordered: bool
    """Whether at least one topic has a scale whose answers are ordered; other topics have no figures that need it."""
    scales: dict[str, list[str]]
    """Answers by topic, of topics with other answers than `points`."""
    has_sample_sizes: bool
    """Whether people's sampling error is known; otherwise there is no floor, and distances are not corrected for it."""
    models: list[DistributionModelRow]
    groups: list[DistributionGroupRow]
    dimensions: list[DistributionDimensionRow]
    cells: list[DistributionCellRow]
    """Of each model and mode, the four cells that are closest to people, four in the middle, and the four furthest."""
    knowledge: list[DistributionGapRow]
    """Models that were asked in both ways, `verbalized` and `sampled`."""
    baselines: list[DistributionBaselineRow]
