"""Check that every form of a document shows every figure in it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import unescape

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Column,
    CountShare,
    Document,
    Figure,
    Footnoted,
    HeatMap,
    LowerBound,
    Paragraph,
    Printed,
    Reason,
    Row,
    Table,
)
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.number_format import NumberStyle, format_count, format_percent, format_styled, format_usd
from auditor.reports.output import render_document
from auditor.reports.render.table_files import render_csv, render_latex
from auditor.reports.render.tables import shorten_table
from auditor.reports.sections.report import build_report_document

_TAG_PATTERN = re.compile(r"<(?:style|svg|table class=\"heat).*?</(?:style|svg|table)>|<[^>]*>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """What a reader must be able to read of a figure.

    Attributes:
        numbers: the value, the interval and the n, as far as they are known and shown.
        reason: why the value or the interval is missing; empty if neither is.
    """

    numbers: tuple[str, ...]
    reason: str = ""


def iterate_figures(node: object) -> Iterator[ShownFigure]:
    """Every figure within a node, except for those of plots, heat maps and bars."""
    match node:
        case Figure() | HeatMap() | str():
            return
        case Table():
            yield from iterate_figures(node.caption)
            shown = shorten_table(node)
            if isinstance(shown, Paragraph):
                return
            for _, column, cell in iterate_cells(shown):
                match cell:
                    case Estimate() if column.kind == "interval":
                        yield _show_interval(cell, column)
                    case Estimate():
                        yield _show_estimate(cell, column.style, column.digits, shows_n=column.show_n)
                    case Footnoted():
                        yield _show_estimate(cell.figure, column.style, column.digits, shows_n=column.show_n)
                    case Printed():
                        yield ShownFigure((cell.text,))
                    case Reason(text=str() as reason):
                        yield ShownFigure((), reason)
                    case int() | float() | CountShare() | LowerBound():
                        yield ShownFigure((_show_number(cell, column),))
                    case _ if column.kind != "bar":
                        yield from iterate_figures(cell)
        case Sequence():
            for item in node:
                yield from iterate_figures(item)
        case _ if is_dataclass(node):
            for field in fields(node):
                yield from iterate_figures(getattr(node, field.name))


def iterate_cells(table: Table) -> Iterator[tuple[int, Column, object]]:
    """The row, column and content of each cell of a table; a reason stands for the columns that it spans."""
    for i, row in enumerate(table.rows):
        cells = [
            cell
            for cell in (row.cells if isinstance(row, Row) else row)
            for _ in range(cell.columns if isinstance(cell, Reason) else 1)
        ]
        for column, cell in zip(table.columns, cells, strict=True):
            yield i, column, cell


def assert_report_shows_figures(report: Report, *section_ids: str) -> None:
    """Check that a report has sections, and shows all its figures in every format.

    Raises:
        AssertionError: a section or a figure is missing.
    """
    document = build_report_document(report)
    assert set(section_ids) <= {section.id for section in document.sections}
    assert_figures_are_shown(document)


def assert_figures_are_shown(document: Document) -> None:
    """Check that the page, Markdown and text have all figures of the rows that pages show, CSV and LaTeX those of all.

    Raises:
        AssertionError: a form lacks a figure; the message names the form and the figures.
    """
    figures = list(iterate_figures(document))
    numbers = Counter(number for figure in figures for number in figure.numbers)
    reason_words = {word for figure in figures for word in figure.reason.split()}
    for output_format in ("html", "markdown", "text"):
        text = read_visible_text(render_document(document, output_format), output_format)
        missing = {number: n for number, n in numbers.items() if _count_occurrences(number, text) < n}
        assert not missing, f"{output_format} lacks {missing}"
        unknown_words = {word for word in reason_words if word not in text}
        assert not unknown_words, f"{output_format} lacks words of reasons: {unknown_words}"
    for table in iterate_blocks(document):
        if isinstance(table, Table):
            _assert_table_files_have_figures(table)


def read_visible_text(form: str, output_format: str) -> str:
    """The text that a reader sees of a form, on one line; plots and heat maps are left out."""
    if output_format == "html":
        form = unescape(_TAG_PATTERN.sub(" ", form))
    if output_format == "markdown":
        form = unescape(form)
    return re.sub(r"[^\S\u202f]+", " ", form)


def _count_occurrences(number: str, text: str) -> int:
    """How often a number is in a text, other than as a part of another number."""
    return len(re.findall(rf"(?<![\d.\u202f]){re.escape(number)}(?![\d\u202f])", text))


def _show_estimate(estimate: Estimate, style: NumberStyle, digits: int, *, shows_n: bool) -> ShownFigure:
    """What must be readable of an estimate."""
    if estimate.value is None:
        return ShownFigure((), estimate.reason or "")
    value, low, high = (
        format_styled(figure, style, digits) for figure in (estimate.value, estimate.ci_low, estimate.ci_high)
    )
    n = (f"n {format_count(estimate.n)}",) if shows_n else ()
    if estimate.ci_low is None or estimate.ci_high is None:
        return ShownFigure((value, *n), estimate.reason or "")
    return ShownFigure((value, f"{low} to {high}", *n))


def _show_interval(estimate: Estimate, column: Column) -> ShownFigure:
    """What must be readable of an estimate in a column of intervals, whose value is in another column."""
    if estimate.ci_low is None or estimate.ci_high is None:
        return ShownFigure((), estimate.reason or "")
    low, high = (format_styled(end, column.style, column.digits) for end in (estimate.ci_low, estimate.ci_high))
    return ShownFigure((f"{low} to {high}",))


def _show_number(cell: float | CountShare | LowerBound, column: Column) -> str:
    """What must be readable of a number."""
    if isinstance(cell, CountShare):
        return format_percent(cell.n, cell.total)
    if isinstance(cell, LowerBound) and column.style == "usd":
        return format_usd(cell.value, lower_bound=True)
    value = cell.value if isinstance(cell, LowerBound) else cell
    return format_styled(value, column.style, column.digits)


def _assert_table_files_have_figures(table: Table) -> None:
    """Check that CSV and LaTeX have the figures of each row of a table."""
    csv_rows = list(csv.reader(io.StringIO(render_csv(table))))[1:]
    latex_rows = [line for line in render_latex([table]).splitlines() if line.endswith(r" \\")][2:]
    assert len(csv_rows) == len(latex_rows) == len(table.rows), table.id
    csv_values = {value for row in csv_rows for value in row}
    latex_text = "\n".join(latex_rows)
    for _, column, cell in iterate_cells(table):
        figure = cell.figure if isinstance(cell, Footnoted) else cell
        estimate = figure if isinstance(figure, Estimate) else None
        if estimate is not None:
            values: list[float | None] = [
                estimate.value,
                estimate.ci_low,
                estimate.ci_high,
                estimate.n if column.show_n else None,
            ]
            if column.kind == "interval":
                values = [None, estimate.ci_low, estimate.ci_high, None]
            shown_values = [values[0]] if None in values[1:3] else values[:3]
        elif isinstance(cell, int | float):
            values = shown_values = [cell]
        else:
            continue
        assert {str(value) for value in values if value is not None} <= csv_values, f"CSV of {table.id} lacks {values}"
        for value in shown_values:
            if value is not None and column.style == "decimal" and abs(value) >= 0.01:
                number = str(value) if isinstance(value, int) else f"{value:.{column.digits}f}"
                assert number in latex_text, f"LaTeX of {table.id} lacks {number}"
