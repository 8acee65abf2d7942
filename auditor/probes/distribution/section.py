"""The section on distributions of answers: do models know, and show, how people disagree?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from auditor.config.probe_section import KeyFinding
from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL, Estimate, bound_p_value
from auditor.probes.distribution.figures.schema import (
    DistributionBaselineRow,
    DistributionCellRow,
    DistributionDimensionRow,
    DistributionGapRow,
    DistributionGroupRow,
    DistributionModelRow,
    DistributionReport,
)
from auditor.reports.charts.opinion_plots import Ridge, Step, gap_plot, ridge_plot, steering_plot
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Disclosure,
    Figure,
    FigureGrid,
    List,
    ListItem,
    Paragraph,
    Section,
    Status,
    Table,
)
from auditor.reports.number_format import describe_estimate, format_number, format_share, pluralize
from auditor.reports.sections.phrasing import build_finding, compare_interval, list_columns, slugify_unique, tabulate

MODES = {
    "verbalized": "stated shares",
    "sampled": "sampled answers",
    "tokens": "next-token probabilities",
}
RANKS = {"closest": "closest", "middle": "middling", "furthest": "furthest"}
MAX_OPEN_PLOTS = 4
"""Plots of gaps that are shown at once; further ones are in a disclosure."""


def build_examples(distribution: DistributionReport, ends: tuple[str, str]) -> list[Block]:
    """Ridge plots of the closest, middling and furthest cells of each model and mode; the first is open.

    Args:
        ends: meanings of the two ends of the scale.
    """
    by_series: dict[tuple[str, str], list[DistributionCellRow]] = {}
    for row in distribution.cells:
        by_series.setdefault((row.model, row.mode), []).append(row)
    plots: list[tuple[str, list[DistributionCellRow], Sequence[str]]] = []
    for (model, mode), rows in by_series.items():
        by_scale: dict[tuple[str, ...], list[DistributionCellRow]] = {}
        for row in rows:
            by_scale.setdefault(tuple(distribution.scales.get(row.topic, distribution.points)), []).append(row)
        for points, of_scale in by_scale.items():
            scale = f", answers {points[0]} to {points[-1]}" if len(by_scale) > 1 else ""
            plots.append((f"{model}, {MODES[mode]}{scale}", of_scale, points))
    slugs = slugify_unique([name for name, _, _ in plots])
    figures = [
        _build_ridges(f"opinions-{slug}", name, rows, points, () if distribution.scales else ends)
        for slug, (name, rows, points) in zip(slugs, plots, strict=True)
    ]
    return _open_first(figures)


def build_gap_figures(distribution: DistributionReport) -> list[Block]:
    """Scatter plots of gaps, people against model, for each two groups."""
    rows = [row for row in distribution.groups if row.people_gaps]
    titles = [f"{row.model}, {MODES[row.mode]}: {name_groups(row)}" for row in rows]
    figures = [
        Figure(
            f"gaps-{slug}",
            gap_plot(row.people_gaps, row.model_gaps),
            title,
            f"Gaps of the model against people’s in {pluralize(row.n, 'cell')}; slope of the gaps: "
            f"{describe_estimate('', row.slope)}.",
            f"slope {format_number(row.slope.value)}" if row.slope.value is not None else "slope not available",
            "distribution-groups",
        )
        for slug, title, row in zip(slugify_unique(titles), titles, rows, strict=True)
    ]
    if not figures:
        return []
    blocks: list[Block] = [FigureGrid(figures[:MAX_OPEN_PLOTS])]
    if others := figures[MAX_OPEN_PLOTS:]:
        blocks.append(Disclosure(pluralize(len(others), "more plot"), [FigureGrid(others)]))
    return blocks


def build_steering_figures(distribution: DistributionReport, ends: tuple[str, str]) -> list[Block]:
    """Plots of where naming each group moves a model's answers; the first is open.

    Args:
        ends: meanings of the two ends of the scale.
    """
    by_series: dict[tuple[str, str], dict[str, Step]] = {}
    for row in distribution.groups:
        steps = by_series.setdefault((row.model, row.mode), {})
        steps.update({label: step for label, step in _list_steps(row) if label not in steps})
    present = {key: list(steps.values()) for key, steps in by_series.items() if steps}
    names = [f"{model}, {MODES[mode]}" for model, mode in present]
    figures = [
        Figure(
            f"steering-{slug}",
            steering_plot(steps, ends),
            f"{name}: from the country to the group",
            "; ".join(
                f"{step.label}: the model moves from {format_number(step.before)} to {format_number(step.after)}, "
                f"people are at {format_number(step.people)}"
                for step in steps
            ),
            f"{name}. Mean answers over countries and topics, as shares of the scale.",
            "distribution-groups",
            steering_plot(steps, ends, is_narrow=True),
        )
        for slug, name, steps in zip(slugify_unique(names), names, present.values(), strict=True)
    ]
    return _open_first(figures)


def name_groups(row: DistributionGroupRow) -> str:
    """The two groups, in the order of the subtraction."""
    return f"{row.dimension}: {row.second} minus {row.first}"


def _build_ridges(
    figure_id: str, name: str, rows: Sequence[DistributionCellRow], points: Sequence[str], ends: Sequence[str]
) -> Figure:
    """The ridge plot of one model and mode; `ends` is empty where topics have different ones."""
    meanings = f" {points[0]}: {ends[0]}; {points[-1]}: {ends[1]}." if ends else ""
    ridges = [Ridge(f"{row.country}, {row.topic}", row.people, row.answers) for row in rows]
    counts = [sum(row.rank == rank for row in rows) for rank in RANKS]
    return Figure(
        figure_id,
        ridge_plot(ridges, points),
        f"{name}: people’s answers and the model’s",
        "; ".join(f"{row.country}, {row.topic}: W1 {format_number(row.w1)}" for row in rows),
        f"{name}. From the top: the {counts[0]} cells in which the model is closest to people, {counts[1]} in the "
        f"middle, and the {counts[2]} in which it is furthest.{meanings}",
        "distribution-cells",
        ridge_plot(ridges, points, is_narrow=True),
    )


def _list_steps(row: DistributionGroupRow) -> Iterator[tuple[str, Step]]:
    """Yield the steps of a row's two groups that have a figure, with their labels."""
    for step in row.steps:
        if step.before is not None and step.after is not None and step.people is not None:
            label = f"{row.dimension}: {step.group}"
            yield label, Step(label, step.before, step.after, step.people)


def _open_first(figures: Sequence[Figure]) -> list[Block]:
    """The first figure, and the others in disclosures."""
    return [*figures[:1], *(Disclosure(figure.title, [figure]) for figure in figures[1:])]


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


MIN_VARIANCE_RATIO = 1e-6
"""A smaller variance is a rounding error."""
MIN_EQUAL_CELLS = 25
"""Fewest cells without any variance, of which there is no interval, that show that answers are too alike: a few answers
on one question are often equal by chance. An interval needs as many, of 5 countries and 5 topics."""
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
    "other countries of the region. It may exceed 1 by chance. A model is better only if its interval is above "
    "1 / n, the skill of the exact mean of all n countries."
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
        _describe_models(distribution),
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
        ends = report.audit.survey.survey.scale
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
    return KeyFinding(TITLE, _describe_model([row]), _bound_p_value(row.skill, n_tests, _find_reference(row)))


def _bound_p_value(estimate: Estimate, n_tests: int, reference: float = 0.0) -> float | None:
    """Upper bound of an estimate's p-value, for the number of tests; None without an interval, as of no variance."""
    if estimate.value is None or estimate.ci_low is None or estimate.ci_high is None:
        return None
    return min(1.0, n_tests * bound_p_value(estimate.value, estimate.ci_low, estimate.ci_high, reference))


def describe_models(report: Report) -> List | None:
    """One sentence on each model; None where no answer on the survey's scale is stored."""
    distribution = report.find(DistributionReport)
    return None if distribution is None else _describe_models(distribution)


def _describe_models(distribution: DistributionReport) -> List:
    """One sentence on each model, whose skill is compared with 0 given the number of models (Holm)."""
    from auditor.metrics.intervals.multiple_testing import holm  # loads numpy

    models = _group_by_model(distribution)
    compared = [_find_compared_row(rows) for rows in models]
    p_values = [None if _is_between(row) else _bound_p_value(row.skill, 1, _find_reference(row)) for row in compared]
    adjusted = holm([1.0 if p_value is None else p_value for p_value in p_values])
    shown = [bool(p_value <= SIGNIFICANCE_LEVEL) for p_value in adjusted]
    findings = [_describe_model(rows, is_shown=is_shown) for rows, is_shown in zip(models, shown, strict=True)]
    return List(findings, is_findings=True)


def _is_too_alike(row: DistributionModelRow) -> bool:
    """Whether answers are less diverse than people's; without any variance there is no interval."""
    ratio = row.variance_ratio
    has_none = ratio.value is not None and ratio.value < MIN_VARIANCE_RATIO and ratio.n >= MIN_EQUAL_CELLS
    return has_none or compare_interval(ratio, 1) == "negative"


def _group_by_model(distribution: DistributionReport) -> list[list[DistributionModelRow]]:
    """The rows of each model."""
    names = dict.fromkeys(row.model for row in distribution.models)
    return [[row for row in distribution.models if row.model == name] for name in names]


def _find_reference(row: DistributionModelRow) -> float:
    """The skill that a model is compared with: 0 to be worse, and to be better that of the exact mean of all countries.

    A model with that mean beats the mean of the other countries, which is one of few, without knowing any country; so
    seems one that comes close to it by luck.
    """
    return row.exact_mean_skill or 0.0 if (row.skill.value or 0.0) > 0 else 0.0


def _is_between(row: DistributionModelRow) -> bool:
    """Whether a skill is neither below 0 nor above that of the exact mean: such a model is neither worse nor better."""
    return 0 < (row.skill.value or 0.0) <= _find_reference(row)


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
    is_shown = is_shown and not _is_between(row)
    status = compare_interval(row.skill, _find_reference(row)) if is_shown else "unclear"
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
    if steering := build_steering_figures(distribution, report.audit.survey.survey.scale):
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
