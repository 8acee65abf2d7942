"""What the intervals assume, and the section on figures without one cultural zone or one family of topics."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.data.agreement.sensitivity import SensitivityRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, Disclosure, Link, List, Paragraph, Section, Text
from auditor.reports.number_format import format_number, format_signed
from auditor.reports.sections.phrasing import SeriesLabels, build_finding
from auditor.reports.sections.tables import tabulate

MAX_OPEN_RANGES = 6
"""With more series of scores, their ranges are in a disclosure."""
FIGURE_LABELS = {"pearson_r": "r", "mae": "mean absolute error", "bias": "bias"}
SENSITIVITY_COLUMNS = (
    Column("Model", "name"),
    Column("Figure"),
    Column("Left out in turn", "text", "without"),
    Column("How many", "number", "groups"),
    Column("Lowest", "number", "lowest.value"),
    Column("Without", "name", "lowest.left_out"),
    Column("Highest", "number", "highest.value"),
    Column("Without", "name", "highest.left_out"),
)


def build_assumptions(report: Report) -> list[Block]:
    """State what the intervals assume, with the range of each figure without one zone or one family of topics."""
    if not report.alignment:
        return []
    assumption = "95% CIs take countries and topics as exchangeable: as draws from others like these."
    if not report.sensitivity:
        return [Paragraph(assumption)]
    text: Text = [
        f"{assumption} They are too narrow where countries of one cultural zone, or topics of one family, are alike. "
        "The ranges below show how much one of them matters; ",
        Link("the table", "sensitivity"),
        " names them.",
    ]
    labels = SeriesLabels.of(report)
    rows_by_label: dict[str, list[SensitivityRow]] = {}
    for row in report.sensitivity:
        rows_by_label.setdefault(labels.label(row), []).append(row)
    ranges = List([build_finding(label, _describe_ranges(rows)) for label, rows in rows_by_label.items()])
    if len(rows_by_label) <= MAX_OPEN_RANGES:
        return [Paragraph(text), ranges]
    summary = f"Ranges of each of the {len(rows_by_label)} series of scores"
    return [Paragraph(text), Disclosure(summary, [ranges], in_print="hidden")]


def _describe_ranges(rows: Sequence[SensitivityRow]) -> str:
    """Describe the ranges of one series, as a predicate: by what is left out, then by figure."""
    by_noun: dict[str, list[str]] = {}
    for row in rows:
        form = format_signed if row.figure == "bias" else format_number
        by_noun.setdefault(row.without, []).append(
            f"{FIGURE_LABELS[row.figure]} {form(row.lowest.value)} to {form(row.highest.value)}"
        )
    return "; ".join(f"without one {noun}: {', '.join(ranges)}" for noun, ranges in by_noun.items())


def build_sensitivity_section(report: Report) -> Section | None:
    """Build the section on figures without one zone or family; None where there is only one."""
    if not report.sensitivity:
        return None
    caption = (
        "Range of each figure when each cultural zone, and each family of topics, is left out in turn, and which one "
        "is left out at the ends. Zones are those of the Inglehart-Welzel map, or regions of the United Nations for "
        "countries that it does not place. Families are those of the survey’s description; without any, single topics "
        "are left out."
    )
    labels = SeriesLabels.of(report)
    derived = {"model": labels.label, "figure": lambda row: FIGURE_LABELS[row.figure]}
    title = "How much depends on one cultural zone, or one family of topics?"
    table = tabulate(
        "sensitivity", "Figures without one group", caption, report.sensitivity, SENSITIVITY_COLUMNS, derived
    )
    return Section("sensitivity", title, [table], "Zones and families of topics")
