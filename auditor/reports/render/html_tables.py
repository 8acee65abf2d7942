"""Tables as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from auditor.reports.document import BarSegment, Cell, Column, Name, Paragraph, Reason, Row, Table, Text
from auditor.reports.number_format import MISSING_SYMBOL, format_count
from auditor.reports.render.cell_format import FormattedFigure, format_figure, format_reason, iterate_rows, label_notes
from auditor.reports.render.escaping import escape_html, isolate_rtl
from auditor.reports.render.html_text import element, html_inline, scroll_region
from auditor.reports.render.shortened_tables import shorten_table
from auditor.reports.render.table_split import split_table

N_SERIES_COLORS = 11
BAR_WIDTH_RULES = "\n".join(f".w{percent}{{width:{percent}%}}" for percent in range(1, 101))
MAX_COLUMNS = 25
"""A table with more columns is broken into several, so that each fits on paper."""
MAX_COLUMNS_IN_FULL_SIZE = 8
"""A table with more columns is printed in type whose size depends on their number."""
MAX_UNBROKEN_REASON_LENGTH = 40
"""A longer reason against an interval is broken into lines, since it would widen its column."""
COLUMN_COUNT_RULES = "\n".join(f".n{n}{{--n:{n}}}" for n in range(MAX_COLUMNS_IN_FULL_SIZE + 1, MAX_COLUMNS + 1))


def render_html_table(table: Table) -> str:
    """Render a table in a region that scrolls sideways, with its caption, legend and notes; or as a sentence."""
    shortened = shorten_table(table)
    if isinstance(shortened, Paragraph):
        return element("p", html_inline(shortened.content), class_=shortened.role, id=f"table-{table.id}")
    table = shortened
    notes = label_notes(table)
    colors = {series: f"c{i % N_SERIES_COLORS}" for i, (series, _) in enumerate(table.legend)}
    parts = split_table(table, MAX_COLUMNS)
    regions = [_TableRenderer(part, notes, colors).render(is_first=part is parts[0]) for part in parts]
    note_lines = [
        element("p", f"<sup>{label}</sup> {isolate_rtl(text)}", class_="note") for text, label in notes.items()
    ]
    return "\n".join([*regions, *note_lines])


@dataclass(frozen=True, slots=True)
class _TableRenderer:
    """Renders one table.

    Attributes:
        notes: labels of the notes below the table, by their text.
        colors: CSS classes of the series of the table's bars.
    """

    table: Table
    notes: Mapping[str, str]
    colors: Mapping[str, str]

    def render(self, *, is_first: bool) -> str:
        """Render the table in its region; the first part of a table that was broken has its id."""
        table = self.table
        header = "".join(
            element("th", html_inline(column.title), scope="col", class_=_column_class(column))
            for column in table.columns
        )
        row_groups = [
            element("tfoot" if is_total else "tbody", "\n".join(map(self._render_row, rows)))
            for is_total, rows in groupby(iterate_rows(table), lambda row: row.is_total)
        ]
        n_columns = len(table.columns)
        size_class = f" many n{n_columns}" if n_columns > MAX_COLUMNS_IN_FULL_SIZE else ""
        markup = element(
            "table",
            f"<caption>{html_inline(table.caption)}{self._render_legend()}</caption>\n"
            f"<thead><tr>{header}</tr></thead>\n" + "\n".join(row_groups),
            id=f"table-{table.id}" if is_first else "",
            class_="figures" + " dense" * table.is_dense + size_class,
        )
        return scroll_region(markup, table.label)

    def _render_row(self, row: Row) -> str:
        """Render a row, whose first cell is its heading."""
        cells: list[str] = []
        column_index = 0
        for cell in row.cells:
            column = self.table.columns[column_index]
            if isinstance(cell, Reason):
                span = str(cell.columns) if cell.columns > 1 else ""
                figure = format_reason(cell, self.notes)
                content = _render_figure(figure) if figure else html_inline(cell.text)
                cells.append(element("td", content, class_="why", colspan=span))
                column_index += cell.columns
                continue
            content = self._render_cell(cell, column)
            if column_index == 0:
                cells.append(f'<th scope="row">{content}</th>')
            else:
                cells.append(element("td", content, class_=_column_class(column)))
            column_index += 1
        return element("tr", "".join(cells), class_="muted" if row.is_muted else "")

    def _render_cell(self, cell: Cell, column: Column) -> str:
        """Render the content of a cell."""
        if cell is None:
            return MISSING_SYMBOL
        if column.kind == "name":
            return html_inline(Name(cell) if isinstance(cell, str) else cast(Text, cell))
        if column.kind == "text":
            return html_inline(cast(Text, cell))
        if column.kind == "bar":
            return self._render_bar(cast(Sequence[BarSegment], cell))
        return _render_figure(format_figure(cell, column, self.notes))

    def _render_bar(self, segments: Sequence[BarSegment]) -> str:
        """Render a bar whose parts are as long as their shares."""
        labels, total = dict(self.table.legend), sum(segment.n for segment in segments)
        shown_segments = [segment for segment in segments if segment.n]
        parts = [
            f'<i class="{self.colors[segment.series]} w{max(1, round(100 * segment.n / total))}"></i>'
            for segment in shown_segments
        ]
        text = ", ".join(f"{labels[segment.series]} {format_count(segment.n)}" for segment in shown_segments)
        return f'<span class="bar" role="img" aria-label="{escape_html(text)}">{"".join(parts)}</span>'

    def _render_legend(self) -> str:
        """Render the legend of the table's bars, with the series that occur in it."""
        shown_series = {
            segment.series
            for row in iterate_rows(self.table)
            for cell in row.cells
            if isinstance(cell, list | tuple)
            for segment in cell
            if isinstance(segment, BarSegment) and segment.n
        }
        entries = [
            f'<span><i class="{self.colors[series]}"></i>{isolate_rtl(label)}</span>'
            for series, label in self.table.legend
            if series in shown_series
        ]
        return f'<span class="key" aria-hidden="true">{"".join(entries)}</span>' if entries else ""


def _column_class(column: Column) -> str:
    """CSS class of a column's cells; the default is for figures."""
    if column.kind in ("name", "text", "bar"):
        return "t"
    return "b" if column.emphasis else ""


def _render_figure(figure: FormattedFigure) -> str:
    """Render a figure with its interval and n in smaller type below it."""
    note = f"<sup>{figure.note}</sup>" if figure.note else ""
    if not figure.has_value:
        return f'<span class="why">{isolate_rtl(figure.value)}{note}</span>'
    reason = "" if figure.interval else figure.reason
    interval = ", ".join(map(isolate_rtl, filter(None, (figure.main_interval, reason)))) + note
    details = ", ".join(filter(None, (interval, figure.n.replace(" ", "\u00a0"))))
    class_ = "long" if len(reason) > MAX_UNBROKEN_REASON_LENGTH else ""
    return escape_html(figure.value).replace(" ", "\u00a0") + (
        element("small", details, class_=class_) if details else ""
    )
