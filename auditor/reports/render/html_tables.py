"""Tables and heat maps as HTML, and the inline nodes in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from auditor.reports.document import (
    BarSegment,
    Cell,
    Column,
    HeatMap,
    HeatMapCell,
    Name,
    Paragraph,
    Reason,
    Row,
    Table,
    Text,
)
from auditor.reports.number_format import MISSING_SYMBOL, format_count
from auditor.reports.render.escaping import InlineMarkup, escape_html, isolate_rtl, render_inline
from auditor.reports.render.plain_text import split_table
from auditor.reports.render.tables import (
    FormattedFigure,
    format_figure,
    format_reason,
    iterate_rows,
    label_notes,
    shorten_table,
)

_MARKUP = InlineMarkup(
    text=isolate_rtl,
    name=lambda name: f"<bdi>{escape_html(name)}</bdi>",
    strong=lambda content: f"<strong>{content}</strong>",
    code=lambda code: f"<code>{escape_html(code)}</code>",
    link=lambda text, target: f'<a href="{escape_html(target)}">{isolate_rtl(text)}</a>',
)


def html_inline(text: Text) -> str:
    """Render a text as HTML."""
    return render_inline(text, _MARKUP)


def element(tag: str, content: str, **attributes: str) -> str:
    """Put markup into an element; an attribute `class_` is written as `class`, an empty one is left out."""
    attribute_markup = "".join(
        f' {name.rstrip("_")}="{escape_html(value)}"' for name, value in attributes.items() if value
    )
    return f"<{tag}{attribute_markup}>{content}</{tag}>"


def scroll_region(content: str, label: str) -> str:
    """Put markup into a region that scrolls sideways, by keyboard too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape_html(label)}">{content}</div>'


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


MAX_HEAT_MAP_COLUMNS_IN_FULL_SIZE = 25
"""A heat map with more columns is printed in smaller type."""
_STATE_CLASSES = {"not_asked": "na", "no_answer": "no"}


def render_heat_map(heat_map: HeatMap) -> str:
    """Render a heat map as a table of coloured cells, with its legend."""
    header = "".join(f'<th scope="col"><span dir="auto">{escape_html(name)}</span></th>' for name in heat_map.columns)
    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{escape_html(name)}</bdi></th>'
        + "".join([_render_cell(cell, heat_map.bounds) for cell in cells])
        + "</tr>"
        for name, cells in heat_map.rows
    )
    css_class = "heat many" if len(heat_map.columns) > MAX_HEAT_MAP_COLUMNS_IN_FULL_SIZE else "heat"
    markup = (
        f'<table class="{css_class}"><caption class="hidden">{isolate_rtl(heat_map.label)}</caption>'
        f"<thead><tr><td></td>{header}</tr></thead>\n<tbody>{rows}</tbody></table>"
    )
    return (_render_legend(heat_map) if heat_map.show_legend else "") + scroll_region(markup, heat_map.label)


def _render_cell(cell: HeatMapCell, bounds: Sequence[float]) -> str:
    """Render one coloured cell."""
    css_class = _STATE_CLASSES.get(cell.state) or _shade_class(cell.value or 0.0, bounds)
    content = escape_html(cell.text)
    if cell.page:
        content = f'<a href="{escape_html(cell.page)}">{content}</a>'
    return f'<td class="{css_class}" title="{escape_html(cell.tooltip)}">{content}</td>'


def _shade_class(value: float, bounds: Sequence[float]) -> str:
    """CSS class for a value: `h-4` (far below zero) to `h4` (far above)."""
    step = sum([abs(value) >= bound for bound in bounds])
    return f"h{-step if value < 0 else step}"


def _render_legend(heat_map: HeatMap) -> str:
    """Render the legend of a heat map: its shades, and the states of cells without a value."""
    n_shades = len(heat_map.bounds)
    first_step = -n_shades if heat_map.has_negative_values else 0
    ramp = "".join(f'<i class="h{step}"></i>' for step in range(first_step, n_shades + 1))
    low_label, high_label = isolate_rtl(heat_map.low_label), isolate_rtl(heat_map.high_label)
    states = [
        f'<span><i class="{_STATE_CLASSES[state]}">{"×" if state == "no_answer" else ""}</i>{isolate_rtl(label)}</span>'
        for state, label in heat_map.state_labels.items()
    ]
    scale = f'<span>{low_label} <span class="ramp">{ramp}</span> {high_label}</span>'
    return f'<p class="key" aria-hidden="true">{scale}{"".join(states)}</p>'
