"""Rows of the report on distributions of answers."""

from __future__ import annotations

from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_model import ReportModel


class DistributionModelRow(ReportModel):
    """A model's answers compared with people's shares, in one mode; cells weigh alike."""

    model: str
    mode: str
    """`verbalized`: it stated shares, what it knows; `sampled`: it answered as single people, what it does; `tokens`:
    probabilities of the answers as the next token."""
    n_cells: int
    """Cells with shares of people and of the model."""
    unusable: int
    """Answers about these countries and topics that could not be used."""
    w1: Estimate
    """Mean Wasserstein distance, in [0, 1]; to be read beside its floor."""
    w1_floor: Estimate
    """The same of a model that samples people perfectly, with the 95% band of sampling."""
    distance: Estimate
    """Root of the mean squared distance, corrected for sampling error; 0 is perfect."""
    skill: Estimate
    """1 is perfect, 0 as good as the mean of the other countries on the same topic, below 0 worse."""
    variance_ratio: Estimate
    """Variance of the model's answers divided by that of people's: below 1 is less diverse."""
    collapse: Estimate
    """Share of cells in which all sampled answers are the same."""
    order_effect: Estimate
    """By how much of the scale answers move towards the end that is shown first, in [-1, 1]."""
    total_variation: Estimate
    jensen_shannon: Estimate
    """Distance in bits."""


class DistributionGroupRow(ReportModel):
    """A model's gaps between two groups compared with people's; a gap is the second group's mean less the first's."""

    model: str
    mode: str
    dimension: str
    first: str
    second: str
    n: int
    """Cells with both groups, of people and of the model."""
    slope: Estimate
    """Slope through the origin: 1 is the right size, above 1 exaggerates, below 0 is the wrong direction."""
    intercept_slope: Estimate
    """The same with an intercept: differences of gaps between cells only."""
    r: Estimate
    """Correlation of the gaps as observed."""
    specificity: Estimate
    """Above 0 if the name of a group moves answers towards this group; in [-1, 1]."""
    steering_gain: Estimate
    """By how much the groups' names reduce the squared distance, less what an irrelevant attribute does."""


class DistributionBaselineRow(ReportModel):
    """A simple guess that does not see the cell."""

    name: str
    n_cells: int
    w1: float | None
    distance: float | None
    """Root of the mean squared distance, corrected for sampling error."""


class DistributionReport(ReportModel):
    """Models' answers on the survey's scale, compared with the shares of people's answers."""

    points: list[str]
    """The answers, from the low end of the scale to the high one."""
    is_ordered: bool
    has_sample_sizes: bool
    """Whether people's sampling error is known; otherwise there is no floor, and distances are not corrected for it."""
    models: list[DistributionModelRow]
    groups: list[DistributionGroupRow]
    baselines: list[DistributionBaselineRow]
