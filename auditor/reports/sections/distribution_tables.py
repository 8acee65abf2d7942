"""Tables of the section on distributions: distances with their floors, diversity, simple guesses, cells and groups."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.reports.data.distribution.schema import DistributionReport
from auditor.reports.document import Column, Table
from auditor.reports.sections.distribution_plots import MODES, name_groups
from auditor.reports.sections.tables import make_columns, tabulate

_MODEL, _MODE, _CELLS = Column("Model", "name", "model"), Column("Asked for", "text", "mode"), "Cells"
_DERIVED = {"mode": lambda row: MODES[row.mode]}


def build_distance_table(distribution: DistributionReport) -> Table:
    """Distances with their floors, and skill, of each model and mode."""
    names = {
        "w1": "W1 (lower is better)",
        "w1_floor": "Floor of W1",
        "distance": "Corrected distance",
        "skill": "Skill",
        "skill_region": "Skill against the region",
    }
    caption = "Shares of each model’s answers compared with people’s, with 95% CIs over other countries and topics."
    return _tabulate_models("distribution-models", "Distances from people", caption, distribution, names)


def build_diversity_table(distribution: DistributionReport) -> Table:
    """Diversity of answers, and the effects of the order of the scale and of the country's name."""
    names = {
        "variance_ratio": "Variance ratio",
        "collapse": "Cells with equal answers",
        "order_effect": "Shift to the first option",
        "country_gain": "Gain by naming the country",
    }
    caption = (
        "Variance ratio: variance of answers divided by people’s; below 1, answers are less diverse. Shift: by how "
        "much of the scale answers move to the end that is shown first. Gain: by how much the squared distance falls "
        "when the question names the country."
    )
    return _tabulate_models("distribution-diversity", "Diversity of answers", caption, distribution, names)


def build_nominal_table(distribution: DistributionReport) -> Table:
    """Distances of choices without an order."""
    names = {"total_variation": "Total variation", "jensen_shannon": "Jensen-Shannon distance (bits)"}
    caption = "Shares of each model’s answers compared with people’s, with 95% CIs over other countries and topics."
    return _tabulate_models("distribution-models", "Distances from people", caption, distribution, names)


def build_knowledge_table(distribution: DistributionReport) -> Table:
    """What models know against what they do."""
    columns = [
        _MODEL,
        Column(_CELLS, "number", "n"),
        *make_columns("estimate", {"knowledge_gap": "Sampled minus stated, squared distance"}),
    ]
    caption = (
        "Squared distance from people of the sampled answers less that of the stated shares. Above 0, a model knows "
        "more about people than its own answers show."
    )
    return tabulate(
        "distribution-knowledge", "What models know and what they do", caption, distribution.knowledge, columns
    )


def build_baseline_table(distribution: DistributionReport) -> Table:
    """What simple guesses reach."""
    columns = [
        Column("Guess", "text", "name"),
        Column(_CELLS, "number", "n_cells"),
        *make_columns("number", {"w1": "W1", "distance": "Corrected distance"}),
    ]
    caption = "Simple guesses of a cell’s shares, none of which sees the cell."
    return tabulate("distribution-baselines", "Simple guesses", caption, distribution.baselines, columns)


def build_cell_table(distribution: DistributionReport) -> Table:
    """The cells of the ridge plots."""
    columns = [
        _MODEL,
        _MODE,
        Column("Country", "name", "country"),
        Column("Topic", "name", "topic"),
        Column("Among the cells", "text", "rank"),
        Column("W1", "number", "w1"),
    ]
    caption = "Cells in which each model is closest to people, in the middle, and furthest from them."
    return tabulate("distribution-cells", "Examples of cells", caption, distribution.cells, columns, _DERIVED)


def build_group_table(distribution: DistributionReport) -> Table:
    """Gaps between groups, people's against the model's."""
    names = {
        "slope": "Slope of gaps",
        "intercept_slope": "Slope with intercept",
        "r": "r of gaps",
        "specificity": "Specificity",
        "steering_gain": "Steering gain",
    }
    columns = [
        _MODEL,
        _MODE,
        Column("Groups", "text", "groups"),
        Column(_CELLS, "number", "n"),
        *make_columns("estimate", names),
    ]
    derived = {**_DERIVED, "groups": name_groups}
    caption = "Gaps between groups of people and the same gaps of the model, with 95% CIs over countries and topics."
    return tabulate("distribution-groups", "Gaps between groups", caption, distribution.groups, columns, derived)


def build_dimension_table(distribution: DistributionReport) -> Table:
    """Whether groups add up to the country, and how diverse they are inside."""
    names = {
        "coherence": "Distance of all groups from the country",
        "within_variance_ratio": "Variance ratio within groups",
    }
    columns = [
        _MODEL,
        _MODE,
        Column("Dimension", "text", "dimension"),
        Column(_CELLS, "number", "n"),
        *make_columns("estimate", names),
    ]
    caption = (
        "Distance: W1 of the groups’ answers, put together by people’s numbers, from the answers for the country; 0 "
        "if they add up. Variance ratio within groups: below 1, the model makes people of one group too alike."
    )
    return tabulate("distribution-dimensions", "Groups together", caption, distribution.dimensions, columns, _DERIVED)


def _tabulate_models(
    table_id: str, title: str, caption: str, distribution: DistributionReport, names: Mapping[str, str]
) -> Table:
    """A table of estimates of each model and mode."""
    columns = [_MODEL, _MODE, Column(_CELLS, "number", "n_cells"), *make_columns("estimate", names)]
    return tabulate(table_id, title, caption, distribution.models, columns, _DERIVED)
