"""Tables and heat maps as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from auditor.reports.document import BarSegment, Cell, Column, HeatMap, HeatMapCell, Reason, Row, Table
from auditor.reports.number_format import MISSING_SYMBOL, format_count
from auditor.reports.render.cell_format import FormattedFigure, format_figure, iterate_rows, label_notes
from auditor.reports.render.escaping import escape_html, isolate_rtl
from auditor.reports.render.html_text import element, html_inline

N_SERIES_COLORS = 11
N_SHADES = 4
"""Shades of a heat map on either side of zero."""
_STATE_CLASSES = {"not_asked": "na", "no_answer": "no"}


def render_html_table(table: Table) -> str:
    """Render a table in a region that scrolls sideways, with its caption, legend and notes."""
    notes, colors = label_notes(table), {name: f"c{i % N_SERIES_COLORS}" for i, (name, _) in enumerate(table.legend)}
    rows = [(row.is_total, _render_row(table, row, notes, colors)) for row in iterate_rows(table)]
    row_groups = "".join(
        element("tfoot" if is_total else "tbody", "\n".join(row for _, row in group))
        for is_total, group in groupby(rows, lambda row: row[0])
    )
    header = "".join(
        element("th", html_inline(column.title), scope="col", class_=_column_class(column)) for column in table.columns
    )
    caption = element("caption", html_inline(table.caption) + _render_legend(table, colors))
    markup = element(
        "table",
        f"{caption}<thead><tr>{header}</tr></thead>\n{row_groups}",
        id=f"table-{table.id}",
        class_="figures" + " dense" * table.is_dense,
    )
    note_lines = [
        element("p", f"<sup>{label}</sup> {isolate_rtl(text)}", class_="note") for text, label in notes.items()
    ]
    return scroll_region(markup, table.label) + "".join(note_lines)


def scroll_region(content: str, label: str) -> str:
    """A region that scrolls sideways, by keyboard too."""
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=label).replace(
        "aria_label=", "aria-label=", 1
    )


def _column_class(column: Column) -> str:
    """CSS class of a column's cells; the default is for figures."""
    if column.kind in ("name", "text"):
        return "t"
    return "bar" if column.kind == "bar" else "b" if column.emphasis else ""


def _render_row(table: Table, row: Row, notes: Mapping[str, str], colors: Mapping[str, str]) -> str:
    """Render a row, whose first cell is its heading."""
    cells: list[str] = []
    index = 0
    for cell in row.cells:
        column = table.columns[index]
        if isinstance(cell, Reason):
            span = str(cell.columns) if cell.columns > 1 else ""
            cells.append(element("td", html_inline(cell.text), class_="why", colspan=span))
            index += cell.columns
            continue
        content = _render_cell(cell, column, notes, table, colors)
        if index == 0:
            cells.append(f'<th scope="row">{content}</th>')
        else:
            cells.append(element("td", content, class_=_column_class(column)))
        index += 1
    return element("tr", "".join(cells))


def _render_cell(cell: Cell, column: Column, notes: Mapping[str, str], table: Table, colors: Mapping[str, str]) -> str:
    """Render the content of a cell."""
    if cell is None:
        return MISSING_SYMBOL
    if column.kind == "name":
        return f"<bdi>{html_inline(cell)}</bdi>" if isinstance(cell, str) else html_inline(cell)
    if column.kind == "text":
        return html_inline(cell)
    if column.kind == "bar":
        return _render_bar(cell, dict(table.legend), colors)
    return _render_figure(format_figure(cell, column, notes))


def _render_figure(figure: FormattedFigure) -> str:
    """Render a figure with its interval and n in smaller type below it."""
    note = f"<sup>{figure.note}</sup>" if figure.note else ""
    if not figure.has_value:
        return f'<span class="why">{isolate_rtl(figure.value)}{note}</span>'
    details = " · ".join(filter(None, (isolate_rtl(figure.interval) + note, figure.n)))
    return escape_html(figure.value) + (f"<small>{details}</small>" if details else "")


def _render_bar(segments: Sequence[BarSegment], labels: Mapping[str, str], colors: Mapping[str, str]) -> str:
    """Render a bar whose parts are as long as their shares."""
    total = sum(segment.n for segment in segments)
    parts = [(segment, max(1, round(100 * segment.n / total))) for segment in segments if segment.n]
    bar = "".join(f'<i class="{colors[segment.series]} w{percent}"></i>' for segment, percent in parts)
    label = ", ".join(f"{labels[segment.series]} {format_count(segment.n)}" for segment, _ in parts)
    return f'<span class="bar" role="img" aria-label="{escape_html(label)}">{bar}</span>'


def _render_legend(table: Table, colors: Mapping[str, str]) -> str:
    """Render the legend of a table's bars, with the series that occur in it."""
    shown_series = {segment.series for segment in _iterate_segments(table) if segment.n}
    entries = [
        f'<span><i class="{colors[name]}"></i>{isolate_rtl(label)}</span>'
        for name, label in table.legend
        if name in shown_series
    ]
    return f'<span class="key" aria-hidden="true">{"".join(entries)}</span>' if entries else ""


def _iterate_segments(table: Table) -> Iterator[BarSegment]:
    """The segments of all bars of a table."""
    for row in iterate_rows(table):
        for cell, column in zip(row.cells, table.columns, strict=False):
            if column.kind == "bar" and cell is not None and not isinstance(cell, Reason):
                yield from cell


def render_heat_map(heat_map: HeatMap) -> str:
    """Render a heat map as a table of coloured cells, with its legend."""
    header = "".join(f'<th scope="col"><span dir="auto">{escape_html(name)}</span></th>' for name in heat_map.columns)
    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{escape_html(name)}</bdi></th>'
        + "".join(_render_heat_map_cell(cell, heat_map.bounds) for cell in cells)
        + "</tr>"
        for name, cells in heat_map.rows
    )
    markup = (
        f'<table class="heat"><caption class="hidden">{isolate_rtl(heat_map.label)}</caption>'
        f"<thead><tr><td></td>{header}</tr></thead>\n<tbody>{rows}</tbody></table>"
    )
    return (_render_heat_map_legend(heat_map) if heat_map.show_legend else "") + scroll_region(markup, heat_map.label)


def _render_heat_map_cell(cell: HeatMapCell, bounds: Sequence[float]) -> str:
    """Render one coloured cell."""
    css_class = _STATE_CLASSES.get(cell.state) or _shade_class(cell.value, bounds)
    return f'<td class="{css_class}" title="{escape_html(cell.tooltip)}">{escape_html(cell.text)}</td>'


def _shade_class(value: float | None, bounds: Sequence[float]) -> str:
    """CSS class for a value: from `h-4` (far below zero) to `h4` (far above)."""
    step = sum(abs(value or 0.0) >= bound for bound in bounds)
    return f"h{-step if value is not None and value < 0 else step}"


def _render_heat_map_legend(heat_map: HeatMap) -> str:
    """Render the legend of a heat map: its shades, and the states of cells without a value."""
    n_shades = len(heat_map.bounds)
    ramp = "".join(f'<i class="h{step}"></i>' for step in range(-n_shades, n_shades + 1))
    states = [
        f'<span><i class="{_STATE_CLASSES[state]}">{"×" if state == "no_answer" else ""}</i>{isolate_rtl(label)}</span>'
        for state, label in heat_map.state_labels.items()
    ]
    low_label, high_label = isolate_rtl(heat_map.low_label), isolate_rtl(heat_map.high_label)
    scale = f'<span>{low_label} <span class="ramp">{ramp}</span> {high_label}</span>'
    return f'<p class="key" aria-hidden="true">{scale}{"".join(states)}</p>'
