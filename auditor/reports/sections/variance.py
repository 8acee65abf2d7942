"""The section on where the uncertainty comes from, and what to buy next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from auditor.reports.data.agreement.variance import VarianceRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.sampling.design import DesignAverages
from auditor.reports.data.sampling.robustness import DesignAverageRow
from auditor.reports.document import Block, Cell, Disclosure, List, Paragraph, Section
from auditor.reports.number_format import format_count, format_number, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, join_first
from auditor.reports.sections.tables import tabulate

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
        yield f"about {row.to_halve.sample} samples a cell instead of {round(row.samples)}"
    for size, current, most, noun in (
        (row.to_halve.topic, row.topics, most_topics, "topics"),
        (row.to_halve.country, row.countries, most_countries, "countries"),
    ):
        if size is not None and size <= most:
            cells = f"{format_count(round(row.cells * size / current))} cells instead of {format_count(row.cells)}"
            yield f"about {size} {noun} instead of {current} ({cells})"
