"""The section on distributions of answers: do models know, and show, how people disagree?"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.reports.data.distribution.schema import DistributionModelRow, DistributionReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, List, ListItem, Paragraph, Section, Table
from auditor.reports.number_format import describe_estimate, format_share, pluralize
from auditor.reports.sections.phrasing import build_finding
from auditor.reports.sections.tables import make_columns, tabulate

MODES = {
    "verbalized": "stated shares",
    "sampled": "sampled answers",
    "tokens": "next-token probabilities",
}
_INTRODUCTION = (
    "People of one country disagree. Here, shares of a model’s answers are compared with shares of people’s answers on "
    "the survey’s own scale. Shares that a model states are what it knows; its answers as single people are what it "
    "does. Shares of people are those of the respondents who answered."
)
_NOTE = (
    "W1 is the mean distance of the shares, from 0 to 1 (lower is better). The floor is the W1 of a model that samples "
    "people perfectly; it is not subtracted. The corrected distance and the skill do not depend on the number of "
    "answers. Skill is 1 for a perfect model and 0 for the mean of the other countries on the same topic."
)
_GROUP_NOTE = (
    "A gap is the mean of the second group minus that of the first. Slope 1 is the size of people’s gap, above 1 "
    "exaggerates it, below 0 is the wrong direction. Specificity is above 0 only if naming a group moves answers "
    "towards this group."
)


def build_distribution_section(report: Report) -> Section | None:
    """Build the section; None where no answer on the survey's scale is stored."""
    distribution = report.distribution
    if distribution is None:
        return None
    blocks: list[Block] = [
        Paragraph(_INTRODUCTION),
        List([_describe_row(row) for row in distribution.models], is_findings=True),
        *_list_cautions(distribution),
        _build_model_table(distribution),
        Paragraph(_NOTE, "note"),
    ]
    if distribution.baselines:
        blocks.append(_build_baseline_table(distribution))
    if distribution.groups:
        blocks += [_build_group_table(distribution), Paragraph(_GROUP_NOTE, "note")]
    return Section("distribution", "Do the models show how people disagree?", blocks, "Distributions")


def _describe_row(row: DistributionModelRow) -> ListItem:
    """One sentence on a model in one mode."""
    mode = f"({MODES[row.mode]}) "
    if row.skill.value is None:
        return build_finding(row.model, f"{mode}cannot be compared: {row.skill.reason}")
    skill = describe_estimate("skill", row.skill)
    ratio = row.variance_ratio.value
    diversity = "" if ratio is None else f", and its answers have {format_share(ratio)} of people’s variance"
    if row.skill.ci_low is not None and row.skill.ci_low > 0:
        verb = "knows" if row.mode == "verbalized" else "shows"
        claim = f"{verb} how opinions are spread better than the mean of the other countries does"
        return build_finding(row.model, f"{mode}{claim}{diversity} ({skill})", "positive")
    if row.skill.ci_high is not None and row.skill.ci_high < 0:
        claim = "is further from people’s opinions than the mean of the other countries"
        return build_finding(row.model, f"{mode}{claim}{diversity} ({skill})", "negative")
    claim = "is not shown to be closer to people’s opinions than the mean of the other countries"
    return build_finding(row.model, f"{mode}{claim}{diversity} ({skill})", "unclear")


def _list_cautions(distribution: DistributionReport) -> list[Block]:
    """What the figures lack."""
    cautions = []
    if not distribution.has_sample_sizes:
        cautions.append(
            "The survey has no sample sizes, so there is no floor, and distances include people’s sampling error."
        )
    unusable = sum(row.unusable for row in distribution.models)
    if unusable:
        verb = "is" if unusable == 1 else "are"
        cautions.append(f"{pluralize(unusable, 'answer')} could not be used and {verb} in no figure.")
    return [Paragraph(caution, "note") for caution in cautions]


def _build_model_table(distribution: DistributionReport) -> Table:
    """Distances with their floors, skill and diversity of each model and mode."""
    names = (
        {
            "w1": "W1 (lower is better)",
            "w1_floor": "Floor of W1",
            "distance": "Corrected distance",
            "skill": "Skill",
            "variance_ratio": "Variance ratio",
            "collapse": "Cells with equal answers",
            "order_effect": "Shift to the first option",
        }
        if distribution.is_ordered
        else {"total_variation": "Total variation", "jensen_shannon": "Jensen-Shannon distance (bits)"}
    )
    columns = [
        Column("Model", "name", "model"),
        Column("Asked for", "text", "mode"),
        Column("Cells", "number", "n_cells"),
        *make_columns("estimate", names),
    ]
    caption = "Shares of each model’s answers compared with people’s, with 95% CIs over other countries and topics."
    derived = {"mode": lambda row: MODES[row.mode]}
    return tabulate("distribution-models", "Distances from people", caption, distribution.models, columns, derived)


def _build_baseline_table(distribution: DistributionReport) -> Table:
    """What simple guesses reach."""
    columns = [
        Column("Guess", "text", "name"),
        Column("Cells", "number", "n_cells"),
        *make_columns("number", {"w1": "W1", "distance": "Corrected distance"}),
    ]
    caption = "Simple guesses of a cell’s shares, none of which sees the cell."
    return tabulate("distribution-baselines", "Simple guesses", caption, distribution.baselines, columns)


def _build_group_table(distribution: DistributionReport) -> Table:
    """Gaps between groups, people's against the model's."""
    names = {
        "slope": "Slope of gaps",
        "intercept_slope": "Slope with intercept",
        "r": "r of gaps",
        "specificity": "Specificity",
        "steering_gain": "Steering gain",
    }
    columns = [
        Column("Model", "name", "model"),
        Column("Asked for", "text", "mode"),
        Column("Groups", "text", "groups"),
        Column("Cells", "number", "n"),
        *make_columns("estimate", names),
    ]
    derived = {
        "mode": lambda row: MODES[row.mode],
        "groups": lambda row: f"{row.dimension}: {row.second} minus {row.first}",
    }
    caption = "Gaps between groups of people and the same gaps of the model, with 95% CIs over countries and topics."
    return tabulate("distribution-groups", "Gaps between groups", caption, distribution.groups, columns, derived)


def build_summary_tables(report: Report) -> Iterator[Table]:
    """Yield the table of models, printed at the end of a run."""
    if report.distribution is not None:
        yield _build_model_table(report.distribution)
