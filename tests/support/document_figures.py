"""Check that every form of a document shows every figure in it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fnmatch import fnmatchcase
from html import unescape

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.measurement_schema import BaselineRow
from auditor.reports.data.report_model import ReportModel
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
from benchmarks.coverage.paths import iterate_estimates

NOT_SHOWN: Mapping[str, tuple[str, str]] = {
    ".alignment[].concordance_simultaneous": ("survey", "the words on agreement rest on it"),
    ".topics[].mae_simultaneous": ("survey", "the named findings rest on it"),
    ".countries[].mae_simultaneous": ("survey", "the named findings rest on it"),
    ".semantic.models[].consistency_simultaneous": ("semantic", "the finding of consistency above chance rests on it"),
    ".topics[].mae_ratio": ("survey", "only significant ones are named"),
    ".countries[].mae_ratio": ("survey", "only significant ones are named"),
    ".topics[].pearson_r_ci_low": ("survey", "a paper's table has it as CSV"),
    ".countries[].pearson_r_ci_low": ("survey", "a heat map has its value, a paper's table all of it as CSV"),
    ".cultural_findings.rows[].bias": ("labels", "only the first three findings are named"),
    ".over_models.figures[].summary.mean": ("one model", "a mean over one model is no figure over models"),
    ".conflicts.third_quartile": ("people", "no conflicts are looked for in imported scores"),
    ".conflicts.between_methods[].difference": ("two methods", "rescaled scores have no distance from others"),
    ".conflicts.within_noise": ("worked example", "a share of 0 is left out"),
    ".refusals.*": ("worked example", "a sentence says that there are none"),
    ".shortfalls.rows[].figure": ("worked example", "a sentence has the end that is beyond the threshold"),
    ".judge_quality.panel.balanced_accuracy": ("labels", "the gain over the best judge is shown"),
    ".logic.wordings[].instances.*": ("logic", "wordings have the shares of all instances only"),
    ".probes*.models[].ordinary_error": ("demo", "an exported table has it"),
    ".probes*.models[].made_up": ("demo", "a sentence has its value"),
    ".task.items[].right": ("task", "of two samples of one item only the value is shown"),
}
"""By the path of estimates, a whole report in which a page does not show all of them, and why."""
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


def assert_estimates_are_shown(report: Report, kind: str = "") -> None:
    """Check that every estimate of a report is shown with its n and interval in every form, but for `NOT_SHOWN`.

    Args:
        kind: of the whole report; that no entry of `NOT_SHOWN` for it is dead is checked too.

    Raises:
        AssertionError: a form lacks an estimate, or a table has it without the names of its row.
    """
    document = build_report_document(report)
    assert_figures_are_shown(document)
    hidden = set(find_hidden_estimates(report, document))
    assert {path for path in hidden if not any(fnmatchcase(path, _escape(entry)) for entry in NOT_SHOWN)} == set()
    for entry, (witness, _) in NOT_SHOWN.items():
        assert witness != kind or any(fnmatchcase(path, _escape(entry)) for path in hidden), f"{entry} is shown"


def _escape(pattern: str) -> str:
    """A pattern in which brackets stand for themselves."""
    return pattern.replace("[]", "[[]]")


def find_hidden_estimates(report: Report, document: Document) -> Iterator[str]:
    """The paths of estimates with a value that no table has, nor a sentence; the second has no n.

    A sentence has the interval, or the value and the reason why there is none. A table has the estimate in a row, or a
    column, with the names of its model, judge, place and others.
    """
    shown: dict[tuple[object, ...], list[str]] = {}
    for table in iterate_blocks(document):
        if isinstance(table, Table):
            for row, column, cell in iterate_cells(table):
                figure = cell.figure if isinstance(cell, Footnoted) else cell
                if isinstance(figure, Estimate):
                    shown.setdefault(_key(figure), []).append(f"{table.rows[row]} {column.title} {table.label}")
    sentences = read_visible_text(render_document(document, "markdown"), "markdown")
    names = name_estimates(report)
    for path, estimate in iterate_estimates(report):
        if estimate.value is not None:
            places = shown.get(_key(estimate), [])
            is_named = any(all(name in place for name in names.get(id(estimate), ())) for place in places)
            if not is_named and (places or not _is_in_sentence(estimate, sentences)):
                yield path


SUBJECTS = ("model", "judge", "name", "region", "topic", "country", "first", "second")
"""Fields of rows that say what their estimates are about."""


def name_estimates(row: ReportModel) -> dict[int, list[str]]:
    """The names of the rows that estimates within a row are in, by the identity of the estimate."""
    names = [name for field in SUBJECTS if isinstance(name := getattr(row, field, None), str)]
    by_id: dict[int, list[str]] = {}
    for field in type(row).model_fields:
        for value in iterate_values(getattr(row, field)):
            if isinstance(value, ReportModel):
                by_id |= name_estimates(value)
            elif isinstance(value, Estimate):  # a guess is one row where it is the same for all models
                by_id[id(value)] = [] if isinstance(row, BaselineRow) else names
    return by_id


def iterate_values(value: object) -> Iterator[object]:
    if isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from iterate_values(item)
    else:
        yield value


def _key(estimate: Estimate) -> tuple[object, ...]:
    return estimate.value, estimate.ci_low, estimate.ci_high, estimate.n


def _is_in_sentence(estimate: Estimate, text: str) -> bool:
    """Whether a text has the interval of an estimate, or its value and the reason why it has none."""
    low, high, value = estimate.ci_low, estimate.ci_high, estimate.value
    styles: list[tuple[NumberStyle, int]] = [("decimal", 2), ("signed", 2), ("percent", 0), ("percent", 1)]
    if low is None or high is None:
        return (estimate.reason or "") in text and any(format_styled(value, *style) in text for style in styles)
    points = " to ".join(format_styled(100 * end, "signed", 0) for end in (low, high))
    ends = [" to ".join(format_styled(end, *style) for end in (low, high)) for style in styles]
    return any(end in text for end in (points, *ends))


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
        missing = {number: n for number, n in numbers.items() if not _occurs(number, text, n)}
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


def _occurs(number: str, text: str, times: int) -> bool:
    """Whether a number is in a text so often, other than as a part of another number."""
    place = -1
    while times and (place := text.find(number, place + 1)) >= 0:  # faster than a regular expression
        before, after = text[place - 1] if place else " ", text[place + len(number) : place + len(number) + 1]
        times -= not (before.isdecimal() or before in ".\u202f" or after.isdecimal() or after == "\u202f")
    return not times


def _show_estimate(estimate: Estimate, style: NumberStyle, digits: int, *, shows_n: bool) -> ShownFigure:
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
                estimate.value, estimate.ci_low, estimate.ci_high, estimate.n if column.show_n else None,
            ]  # fmt: skip
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
