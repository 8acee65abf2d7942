"""Heat maps as HTML tables."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.document import HeatMap, HeatMapCell
from auditor.reports.render.escaping import escape_html, isolate_rtl
from auditor.reports.render.html_text import scroll_region

MAX_COLUMNS_IN_FULL_SIZE = 25
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
    css_class = "heat many" if len(heat_map.columns) > MAX_COLUMNS_IN_FULL_SIZE else "heat"
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
