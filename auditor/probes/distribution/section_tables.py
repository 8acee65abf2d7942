"""Tables of the section on distributions: distances with their floors, diversity, simple guesses, cells and groups."""

from __future__ import annotations

from auditor.probes.distribution.figures.schema import (
    DistributionBaselineRow,
    DistributionCellRow,
    DistributionDimensionRow,
    DistributionGapRow,
    DistributionGroupRow,
    DistributionModelRow,
    DistributionReport,
)
from auditor.probes.distribution.section_plots import MODES, name_groups
from auditor.reports.document import Table
from auditor.reports.sections.tables import list_columns, tabulate

_DERIVED = {"mode": lambda row: MODES[row.mode]}


def build_distance_table(distribution: DistributionReport) -> Table:
    """Distances with their floors, and skill, of each model and mode."""
    caption = "Shares of each model’s answers compared with people’s, with 95% CIs over other countries and topics."
    return tabulate(
        "distribution-models", "Distances from people", caption, distribution.models, DistributionModelRow, _DERIVED
    )


def build_diversity_table(distribution: DistributionReport) -> Table:
    """Diversity of answers, and the effects of the order of the scale and of the country's name."""
    caption = (
        "Variance ratio: variance of answers divided by people’s; below 1, answers are less diverse. Shift: by how "
        "much of the scale answers move to the end that is shown first. Gain: by how much the squared distance falls "
        "when the question names the country."
    )
    rows = distribution.models
    return tabulate("distribution-diversity", "Diversity of answers", caption, rows, DistributionModelRow, _DERIVED)


def build_nominal_table(distribution: DistributionReport) -> Table:
    """Distances of choices without an order."""
    caption = "Shares of each model’s answers compared with people’s, with 95% CIs over other countries and topics."
    columns = list_columns(DistributionModelRow, "distribution-nominal")
    rows = distribution.models
    return tabulate("distribution-models", "Distances from people", caption, rows, columns, _DERIVED)


def build_knowledge_table(distribution: DistributionReport) -> Table:
    """What models know against what they do."""
    caption = (
        "Squared distance from people of the sampled answers less that of the stated shares. Above 0, a model knows "
        "more about people than its own answers show."
    )
    title = "What models know and what they do"
    return tabulate("distribution-knowledge", title, caption, distribution.knowledge, DistributionGapRow)


def build_baseline_table(distribution: DistributionReport) -> Table:
    """What simple guesses reach."""
    caption = "Simple guesses of a cell’s shares, none of which sees the cell."
    return tabulate(
        "distribution-baselines", "Simple guesses", caption, distribution.baselines, DistributionBaselineRow
    )


def build_cell_table(distribution: DistributionReport) -> Table:
    """The cells of the ridge plots."""
    caption = "Cells in which each model is closest to people, in the middle, and furthest from them."
    return tabulate(
        "distribution-cells", "Examples of cells", caption, distribution.cells, DistributionCellRow, _DERIVED
    )


def build_group_table(distribution: DistributionReport) -> Table:
    """Gaps between groups, people's against the model's."""
    derived = {**_DERIVED, "groups": name_groups}
    caption = "Gaps between groups of people and the same gaps of the model, with 95% CIs over countries and topics."
    return tabulate(
        "distribution-groups", "Gaps between groups", caption, distribution.groups, DistributionGroupRow, derived
    )


def build_dimension_table(distribution: DistributionReport) -> Table:
    """Whether groups add up to the country, and how diverse they are inside."""
    caption = (
        "Distance: W1 of the groups’ answers, put together by people’s numbers, from the answers for the country; 0 "
        "if they add up. Variance ratio within groups: below 1, the model makes people of one group too alike."
    )
    rows = distribution.dimensions
    return tabulate("distribution-dimensions", "Groups together", caption, rows, DistributionDimensionRow, _DERIVED)
