"""The section on distributions of answers: do models know, and show, how people disagree?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.probes.distribution.figures.schema import DistributionModelRow, DistributionReport
from auditor.probes.distribution.section_plots import (
    MODES,
    build_examples,
    build_gap_figures,
    build_steering_figures,
)
from auditor.probes.distribution.section_tables import (
    build_baseline_table,
    build_cell_table,
    build_dimension_table,
    build_distance_table,
    build_diversity_table,
    build_group_table,
    build_knowledge_table,
    build_nominal_table,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Disclosure, List, ListItem, Paragraph, Section, Status, Table
from auditor.reports.number_format import describe_estimate, format_share, pluralize
from auditor.reports.sections.phrasing import build_finding, compare_interval

MIN_VARIANCE_RATIO = 1e-6
"""A smaller variance is a rounding error."""
TITLE = "Do the models show how people disagree?"
_INTRODUCTION = (
    "People of one country disagree. Here, shares of a model’s answers are compared with shares of people’s answers on "
    "the survey’s own scale. Shares that a model states are what it knows; its answers as single people are what it "
    "does. Shares of people are those of the respondents who answered."
)
_NOTE = (
    "W1 is the mean distance of the shares, from 0 to 1 (lower is better). The floor is the W1 of a model that samples "
    "people perfectly; it is not subtracted. The corrected distance and the skill do not depend on the number of "
    "answers. Skill is 1 for a perfect model and 0 for the mean of the other countries on the same topic, or of the "
    "other countries of the region. It may exceed 1 by chance."
)
_GROUP_NOTE = (
    "A gap is the mean of the second group minus that of the first. Slope 1 is the size of people’s gap, above 1 "
    "exaggerates it, below 0 is the wrong direction. Specificity is above 0 only if naming a group moves answers "
    "towards this group."
)
_STEERING_NOTE = (
    "An arrow goes from the model’s mean answer for the country to that for the group. A model that knows the group "
    "ends at the diamond, the mean answer of its people."
)


def build_distribution_section(report: Report) -> Section | None:
    """Build the section; None where no answer on the survey's scale is stored."""
    distribution = report.find(DistributionReport)
    if distribution is None:
        return None
    blocks: list[Block] = [
        Paragraph(_INTRODUCTION),
        List([_describe_model(rows) for rows in _group_by_model(distribution)], is_findings=True),
        *_list_cautions(distribution),
    ]
    if distribution.is_ordered:
        blocks += [build_distance_table(distribution), Paragraph(_NOTE, "note"), build_diversity_table(distribution)]
    else:
        blocks.append(build_nominal_table(distribution))
    if distribution.knowledge:
        blocks.append(build_knowledge_table(distribution))
    if distribution.baselines:
        blocks.append(build_baseline_table(distribution))
    if distribution.cells:
        ends = report.audit.survey.scale
        examples = [
            *build_examples(distribution, ends),
            Disclosure("Table of these cells", [build_cell_table(distribution)]),
        ]
        blocks.append(Section("distribution-examples", "Where the model is close to people, and where not", examples))
    if distribution.groups:
        blocks.append(_build_group_section(report, distribution))
    return Section("distribution", TITLE, blocks, "Distributions")


def build_summary_tables(report: Report) -> Iterator[Table]:
    """Yield the table of distances, printed at the end of a run."""
    distribution = report.find(DistributionReport)
    if distribution is not None:
        yield (build_distance_table if distribution.is_ordered else build_nominal_table)(distribution)


def find_key_finding(report: Report) -> ListItem | None:
    """The finding for the first page: answers that are too alike, or worse than other countries; None for neither."""
    distribution = report.find(DistributionReport)
    rows = distribution.models if distribution else []
    alike = [row for row in rows if row.mode != "verbalized" and _is_too_alike(row)]
    if alike:
        row = min(alike, key=lambda row: row.variance_ratio.value or 0.0)
        ratio = describe_estimate("ratio", row.variance_ratio)
        sentence = (
            f"({MODES[row.mode]}) shows {format_share(row.variance_ratio.value or 0.0)} of the variance of people’s "
            f"opinions: it makes people of one country too alike ({ratio})"
        )
        return build_finding(row.model, sentence, "negative")
    worse = [row for row in rows if compare_interval(row.skill) == "negative"]
    return _describe_model([min(worse, key=lambda row: row.skill.value or 0.0)]) if worse else None


def describe_models(report: Report) -> List | None:
    """One sentence on each model; None where no answer on the survey's scale is stored."""
    distribution = report.find(DistributionReport)
    if distribution is None:
        return None
    return List([_describe_model(rows) for rows in _group_by_model(distribution)], is_findings=True)


def _is_too_alike(row: DistributionModelRow) -> bool:
    """Whether answers are less diverse than people's; without any variance there is no interval."""
    ratio = row.variance_ratio
    has_none = ratio.value is not None and ratio.value < MIN_VARIANCE_RATIO
    return has_none or compare_interval(ratio, 1) == "negative"


def _group_by_model(distribution: DistributionReport) -> list[list[DistributionModelRow]]:
    """The rows of each model."""
    names = dict.fromkeys(row.model for row in distribution.models)
    return [[row for row in distribution.models if row.model == name] for name in names]


def _describe_model(rows: list[DistributionModelRow]) -> ListItem:
    """One sentence on a model: what it knows, and how diverse its answers are."""
    row = next((row for row in rows if row.skill.value is not None), rows[0])
    if row.skill.value is None:
        return build_finding(row.model, f"({MODES[row.mode]}) cannot be compared: {row.skill.reason}")
    status = compare_interval(row.skill)
    verb = "knows" if row.mode == "verbalized" else "shows"
    claims: dict[Status, str] = {
        "positive": f"{verb} how opinions are spread better than the mean of the other countries does",
        "negative": "is further from people’s opinions than the mean of the other countries",
    }
    claim = claims.get(status, "is not shown to be closer to people’s opinions than the mean of the other countries")
    figures = f"{MODES[row.mode]}: {describe_estimate('skill', row.skill)}"
    shown = next((other for other in rows if other.mode == "sampled"), row)
    if shown.variance_ratio.value is not None:
        conjunction = "but" if status == "positive" and _is_too_alike(shown) else "and"
        claim += f", {conjunction} its answers show {format_share(shown.variance_ratio.value)} of people’s diversity"
        ratio = describe_estimate("variance ratio", shown.variance_ratio)
        figures += f"; {ratio}" if shown is row else f"; {MODES[shown.mode]}: {ratio}"
    return build_finding(row.model, f"{claim} ({figures})", "unclear" if status == "neutral" else status)


def _build_group_section(report: Report, distribution: DistributionReport) -> Section:
    """Gaps between groups, and what naming a group does."""
    blocks: list[Block] = [
        build_group_table(distribution),
        Paragraph(_GROUP_NOTE, "note"),
        *build_gap_figures(distribution),
    ]
    if steering := build_steering_figures(distribution, report.audit.survey.scale):
        blocks += [Paragraph(_STEERING_NOTE), *steering]
    if distribution.dimensions:
        blocks.append(build_dimension_table(distribution))
    return Section("distribution-groups-section", "Does the model know how groups differ?", blocks)


def _list_cautions(distribution: DistributionReport) -> list[Block]:
    """What the figures lack."""
    cautions = []
    if not distribution.has_sample_sizes:
        cautions.append(
            "The survey has no sample sizes, so there is no floor, and distances include people’s sampling error."
        )
    losses: Counter[str] = sum((Counter(row.losses) for row in distribution.models), Counter())
    causes = ", ".join(f"{outcome.replace('_', ' ')}: {n}" for outcome, n in losses.most_common())
    n_incomplete = sum(row.incomplete for row in distribution.models)
    if n_incomplete:
        cautions.append(
            f"{pluralize(n_incomplete, 'cell')} of a model and mode had too few usable answers: fewer than half, or "
            "none in one order of the scale."
        )
    counts = {
        f"could not be used and {{is}} in no figure ({causes})": losses.total(),
        "of stated shares did not add up to 100% and {is} divided by the sum": sum(
            row.rescaled for row in distribution.models
        ),
        "of next-token probabilities {has} an option that the provider did not list; its share counts as 0": sum(
            row.unlisted for row in distribution.models
        ),
    }
    for text, n in counts.items():
        if n:
            verbs = {"{is}": "is", "{has}": "has"} if n == 1 else {"{is}": "are", "{has}": "have"}
            for placeholder, verb in verbs.items():
                text = text.replace(placeholder, verb)
            cautions.append(f"{pluralize(n, 'answer')} {text}.")
    masses = [f"{row.model} {format_share(row.mass)}" for row in distribution.models if row.mass is not None]
    if masses:
        cautions.append(f"Mean probability of all options together as the next token: {', '.join(masses)}.")
    return [Paragraph(caution, "note") for caution in cautions]
