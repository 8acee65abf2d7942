"""The section on distributions of answers: do models know, and show, how people disagree?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.config.probe_section import KeyFinding
from auditor.metrics.confidence import SIGNIFICANCE_LEVEL, bound_p_value
from auditor.metrics.estimate import Estimate
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


def find_key_finding(report: Report) -> KeyFinding | None:
    """The finding for the first page: answers that are too alike, or worse than other countries; None for neither.

    Its p-value is adjusted for all models and modes, and for both claims on each (Bonferroni).
    """
    distribution = report.find(DistributionReport)
    rows = distribution.models if distribution else []
    n_tests = sum(row.skill.ci_low is not None for row in rows)
    n_tests += sum(row.variance_ratio.ci_low is not None for row in rows if row.mode != "verbalized")
    alike = [row for row in rows if row.mode != "verbalized" and _is_too_alike(row)]
    if alike:
        row = min(alike, key=lambda row: row.variance_ratio.value or 0.0)
        ratio = describe_estimate("ratio", row.variance_ratio)
        sentence = (
            f"({MODES[row.mode]}) shows {format_share(row.variance_ratio.value or 0.0)} of the variance of people’s "
            f"opinions: it makes people of one country too alike ({ratio})"
        )
        finding = build_finding(row.model, sentence, "negative")
        return KeyFinding(TITLE, finding, _bound_p_value(row.variance_ratio, n_tests, 1))
    worse = [row for row in rows if compare_interval(row.skill) == "negative"]
    if not worse:
        return None
    row = min(worse, key=lambda row: row.skill.value or 0.0)
    return KeyFinding(TITLE, _describe_model([row]), _bound_p_value(row.skill, n_tests))


def _bound_p_value(estimate: Estimate, n_tests: int, reference: float = 0.0) -> float | None:
    """Upper bound of an estimate's p-value, for the number of tests; None without an interval, as of no variance."""
    if estimate.value is None or estimate.ci_low is None or estimate.ci_high is None:
        return None
    return min(1.0, n_tests * bound_p_value(estimate.value, estimate.ci_low, estimate.ci_high, reference))


def describe_models(report: Report) -> List | None:
    """One sentence on each model; None where no answer on the survey's scale is stored.

    Skills are compared with 0 given the number of models (Holm).
    """
    distribution = report.find(DistributionReport)
    if distribution is None:
        return None
    from auditor.metrics.multiple_testing import holm  # loads numpy

    models = _group_by_model(distribution)
    p_values = [_bound_p_value(_find_compared_row(rows).skill, 1) for rows in models]
    adjusted = holm([1.0 if p_value is None else p_value for p_value in p_values])
    shown = [bool(p_value <= SIGNIFICANCE_LEVEL) for p_value in adjusted]
    findings = [_describe_model(rows, is_shown=is_shown) for rows, is_shown in zip(models, shown, strict=True)]
    return List(findings, is_findings=True)


def _is_too_alike(row: DistributionModelRow) -> bool:
    """Whether answers are less diverse than people's; without any variance there is no interval."""
    ratio = row.variance_ratio
    has_none = ratio.value is not None and ratio.value < MIN_VARIANCE_RATIO
    return has_none or compare_interval(ratio, 1) == "negative"


def _group_by_model(distribution: DistributionReport) -> list[list[DistributionModelRow]]:
    """The rows of each model."""
    names = dict.fromkeys(row.model for row in distribution.models)
    return [[row for row in distribution.models if row.model == name] for name in names]


def _find_compared_row(rows: list[DistributionModelRow]) -> DistributionModelRow:
    """The row of a model whose skill its sentence states."""
    return next((row for row in rows if row.skill.value is not None), rows[0])


def _describe_model(rows: list[DistributionModelRow], *, is_shown: bool = True) -> ListItem:
    """One sentence on a model: what it knows, and how diverse its answers are.

    Args:
        is_shown: whether a skill whose interval excludes 0 is different from 0 given the number of models.
    """
    row = _find_compared_row(rows)
    if row.skill.value is None:
        return build_finding(row.model, f"({MODES[row.mode]}) cannot be compared: {row.skill.reason}")
    status = compare_interval(row.skill) if is_shown else "unclear"
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
