"""What the intervals assume, figures without some countries or topics, and where the uncertainty comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from auditor.metrics.intervals.two_way import MAX_INFLUENCE
from auditor.reports.data.agreement.sensitivity import InfluentialUnit, SensitivityRow, VarianceRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.robustness import DesignAverageRow, DesignAverages
from auditor.reports.document import Block, Cell, Disclosure, Link, List, Paragraph, Section, Text
from auditor.reports.number_format import format_count, format_number, pluralize
from auditor.reports.sections.phrasing import MAX_LONG_TABLE_ROWS, SeriesLabels, join_first, join_with_and, tabulate

FIGURE_LABELS = {"pearson_r": "r", "mae": "mean absolute error", "bias": "bias"}
FIGURES_IN_SENTENCES = {"pearson_r": "r", "mae": "the mean absolute error", "bias": "the bias"}


def build_assumptions(report: Report) -> list[Block]:
    """State what the intervals assume, and link to the figures without one zone or family of topics."""
    if not report.alignment:
        return []
    is_by_zone = report.audit.survey.clusters == "zone"
    units = "cultural zones of the countries, and the topics," if is_by_zone else "countries and topics"
    assumption = f"95% CIs treat the {units} as a random draw from similar ones."
    if not report.sensitivity:
        return [Paragraph(assumption)]
    alike = (
        "neighbouring zones, or topics of one family,"
        if is_by_zone
        else ("countries of one cultural zone, or topics of one family,")
    )
    text: Text = [
        f"{assumption} They are too narrow if {alike} are alike (see ",
        Link("zones and families", "sensitivity"),
        ").",
    ]
    return [Paragraph(text)]


def _describe_largest_changes(report: Report) -> str:
    """Name the largest change of each figure over all models, in a sentence for each kind of group that is left out."""
    labels = SeriesLabels.of(report)
    figures = {
        (row.model, row.method): {"pearson_r": row.pearson_r.value, "mae": row.mae.value, "bias": row.bias.value}
        for row in report.alignment
    }
    changes: dict[str, dict[str, tuple[float, str]]] = {}
    fewest_left: dict[str, int] = {}
    for row in report.sensitivity:
        figure = figures.get((row.model, row.method), {}).get(row.figure)
        if figure is None:
            continue
        change = max(abs(row.lowest.value - figure), abs(row.highest.value - figure))
        by_figure = changes.setdefault(row.without, {})
        by_figure[row.figure] = max(by_figure.get(row.figure, (-1.0, "")), (change, labels.label(row)))
        fewest_left[row.without] = min(row.fewest_left, fewest_left.get(row.without, row.fewest_left))
    sentences = []
    for noun, by_figure in changes.items():
        parts = [
            f"{FIGURES_IN_SENTENCES[name]} by at most {format_number(change)} ({label})"
            for name, (change, label) in by_figure.items()
        ]
        left = f", which leaves at least {pluralize(fewest_left[noun], 'topic')}," if noun == "topic family" else ""
        sentences.append(f"Leaving out one {noun}{left} changes {join_with_and(parts)}.")
    return " ".join(sentences)


def list_influence_cautions(report: Report) -> Iterator[str]:
    """Yield a caution for each country or topic on which nearly all uncertainty of a distance from people rests."""
    labels = SeriesLabels.of(report)
    by_unit: dict[tuple[str, str, str], list[InfluentialUnit]] = {}
    for unit in report.influence:
        by_unit.setdefault((unit.kind, unit.name, unit.figure), []).append(unit)
    for (kind, name, figure), units in by_unit.items():
        plural = "countries" if kind == "country" else "topics"
        without = [f"{labels.label(unit)} {format_number(unit.without)}" for unit in units]
        yield (
            f"{name} is unlike all other {plural}: more than {MAX_INFLUENCE:.0%} of the uncertainty over {plural} of "
            f"{FIGURES_IN_SENTENCES[figure]} rests on it. Without it: {join_first(without)}."
        )


def build_sensitivity_section(report: Report) -> Section | None:
    """Build the section on figures without one zone or family; None where there is only one."""
    if not report.sensitivity:
        return None
    caption = (
        "Range of each figure when each zone (of the Inglehart-Welzel map; a country that is not on it is its own) and "
        "each topic family of the survey (without families, each topic) is left out in turn. “Without” names the one "
        "whose omission gives the value; “fewest left” is the smallest number of remaining countries or topics."
    )
    labels = SeriesLabels.of(report)
    derived = {"model": labels.label, "figure": lambda row: FIGURE_LABELS[row.figure]}
    has_families = any(row.without == "topic family" for row in report.sensitivity)
    group = "family of topics" if has_families else "topic"
    title = f"How much do the results depend on one cultural zone, or one {group}?"
    contents_title = "Zones and families of topics" if has_families else "Zones and topics"
    table = tabulate(
        "sensitivity",
        "Figures without one group",
        caption,
        sorted(report.sensitivity, key=lambda row: row.lowest.value - row.highest.value),
        SensitivityRow,
        derived,
        max_rows=MAX_LONG_TABLE_ROWS,
    )
    return Section(
        "sensitivity",
        title,
        [Paragraph(_describe_largest_changes(report), "finding"), Disclosure(table.label, [table])],
        contents_title,
    )


_EXPLANATION = (
    "With few countries or topics, this division is rough. All samples have the same wording, whose effect is not "
    "included."
)

MIN_STD_ERROR = 0.005
"""Least standard error of r that is worth halving: below it, the 95% CI is about the shown value ± 0.01."""
SOURCE_PHRASES = {
    "country": "the choice of countries",
    "topic": "the choice of topics",
    "cell": "variation between cells (a country and a topic)",
    "sample": "the randomness of answers",
    "language": "the choice of languages",
}


def build_variance_section(report: Report) -> Section | None:
    """Build the section on the sources of uncertainty; None where no figure has one."""
    rows = [row for row in report.variance if row.shares is not None]
    if not rows:
        return None
    labels = SeriesLabels.of(report)
    with_people = [cell for cell in report.audit.cells if cell.survey is not None]
    sizes = len({cell.country for cell in with_people}), len({cell.topic for cell in with_people})
    advice = [
        f"{labels.label(row)}: {describe_purchase(row, *sizes)}"
        for row in rows
        if row.figure == "r" and (row.std_error or 0.0) >= MIN_STD_ERROR
    ]
    derived: Mapping[str, Callable[[VarianceRow], Cell]] = {
        "model": labels.label,
        "negative": lambda row: ", ".join(row.negative) or None,
    }
    table = tabulate(
        "variance",
        "Where the uncertainty comes from",
        "Share of the variance of each figure that comes from each source, and the standard error from their sum. "
        "Samples: the randomness of repeated answers, which Cells includes if each cell has one. Set to 0: sources "
        "with a negative estimate, which are too small to detect.",
        rows,
        VarianceRow,
        derived,
    )
    blocks: list[Block] = [
        Paragraph(_summarize_sources(rows), "finding"),
        Paragraph(_EXPLANATION, "note"),
        *([List(advice)] if advice else []),
        Disclosure("Shares of the variance", [table]),
        *_list_design_tables(report.designs),
    ]
    return Section("variance", "Where does the uncertainty come from?", blocks, "Uncertainty")


def _list_design_tables(designs: DesignAverages | None) -> list[Block]:
    """The figures over several designs, where the audit was asked in some."""
    if designs is None:
        return []
    caption = (
        f"Means over {pluralize(designs.runs, 'design')}, in which each level of each choice counts alike "
        f"({join_first(list(designs.choices))}); other figures of this report are those of the audit’s design. Lowest, "
        "highest: MAE in a single design."
    )
    return [tabulate("design-averages", "Figures over designs", caption, designs.averages, DesignAverageRow)]


def _summarize_sources(rows: Sequence[VarianceRow]) -> str:
    """Name the source that most often has the largest share of the variance."""
    largest = Counter(
        max((share, name) for name in SOURCE_PHRASES if (share := getattr(row.shares, name)) is not None)[1]
        for row in rows
    )
    source, n = largest.most_common(1)[0]
    return (
        f"For {format_count(n)} of {pluralize(len(rows), 'estimate')} (of r, MAE and bias, for each model), the "
        f"largest source of uncertainty is {SOURCE_PHRASES[source]}."
    )


def describe_purchase(row: VarianceRow, most_countries: int, most_topics: int) -> str:
    """State what alone would halve the standard error, as a predicate of the model's figure.

    Args:
        most_countries, most_topics: that the survey has; more cannot be asked about.
    """
    error = f"the standard error of its {row.figure} is {format_number(row.std_error, 3)}"
    options = list(list_options(row, most_countries, most_topics))
    if options:
        return f"{error}. To halve it, plan {', or '.join(options)}."
    size = f"{pluralize(most_countries, 'country', 'countries')} and {pluralize(most_topics, 'topic')}"
    return f"{error}. The {size} of this audit are too few to halve it, and more samples for each cell do not help."


def list_options(row: VarianceRow, most_countries: int, most_topics: int) -> Iterator[str]:
    """Each kind of which the survey has enough to halve the standard error, and the cells that this takes."""
    if row.to_halve is None:
        return
    if row.to_halve.sample is not None:
        # A mean that is no whole number is of cells that lost samples: more have to be asked for than are usable.
        noun, digits = ("sample", 0) if float(row.samples).is_integer() else ("usable sample", 1)
        yield f"about {pluralize(row.to_halve.sample, noun)} a cell instead of {row.samples:.{digits}f}"
    for size, current, most, noun in (
        (row.to_halve.topic, row.topics, most_topics, "topics"),
        (row.to_halve.country, row.countries, most_countries, "countries"),
    ):
        if size is not None and size <= most:
            cells = f"{format_count(round(row.cells * size / current))} cells instead of {format_count(row.cells)}"
            yield f"about {size} {noun} instead of {current} ({cells})"
