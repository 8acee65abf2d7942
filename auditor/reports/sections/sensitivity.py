"""What the intervals assume, and the section on figures without one cultural zone or one family of topics."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.metrics.leave_out import MAX_INFLUENCE
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.agreement.sensitivity import InfluentialUnit, SensitivityRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Disclosure, Link, Paragraph, Section, Text
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, join_first, join_with_and
from auditor.reports.sections.tables import MAX_LONG_TABLE_ROWS, tabulate

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
    figures = {(row.model, row.method): _get_figures(row) for row in report.alignment}
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


def _get_figures(row: AlignmentRow) -> dict[str, float | None]:
    """The figures of one model over all cells, by their name in `SensitivityRow`."""
    return {"pearson_r": row.pearson_r.value, "mae": row.mae.value, "bias": row.bias.value}


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
