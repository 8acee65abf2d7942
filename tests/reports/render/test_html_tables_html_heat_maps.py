"""Heat maps: shades follow the values, and cells without a value say why."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from auditor.reports.document import HeatMap, HeatMapCell
from auditor.reports.render.html_tables import render_heat_map

BOUNDS = (0.1, 0.3, 0.5, 0.7)


def map_of(*cells: HeatMapCell, show_legend: bool = True) -> HeatMap:
    """A heat map with one row."""
    states = {"not_asked": "people were not asked", "no_answer": "no usable answer"}
    columns = [f"c{i}" for i in range(len(cells))]
    return HeatMap("Map", columns, [("row", cells)], BOUNDS, "stricter", "more permissive", states, show_legend)


@pytest.mark.parametrize(
    ("value", "shade"),
    [(0.0, "h0"), (0.09, "h0"), (0.1, "h1"), (-0.1, "h-1"), (0.69, "h3"), (0.7, "h4"), (-2.0, "h-4"), (-0.05, "h0")],
)
def test_shades_follow_the_values(value: float, shade: str) -> None:
    assert f'<td class="{shade}" title="tip">x</td>' in render_heat_map(map_of(HeatMapCell(value, "x", "tip")))


def test_cells_that_were_not_asked_differ_from_failed_ones() -> None:
    html = render_heat_map(
        map_of(
            HeatMapCell(None, "", "people were not asked", "not_asked"),
            HeatMapCell(None, "×", "no usable answer", "no_answer"),
            HeatMapCell(0.34, "+.34", 'people "0.00"'),
        )
    )
    assert re.findall(r'<td class="(\S+)" title="([^"]*)">([^<]*)</td>', html) == [
        ("na", "people were not asked", ""),
        ("no", "no usable answer", "×"),
        ("h2", "people &quot;0.00&quot;", "+.34"),
    ]


def test_the_legend_has_every_shade_and_state() -> None:
    html = render_heat_map(map_of(HeatMapCell(0.0, "0", "")))
    legend = html[: html.index("<table")]
    assert re.findall(r'<i class="([\w-]+)">', legend) == [
        "h-4", "h-3", "h-2", "h-1", "h0", "h1", "h2", "h3", "h4", "na", "no",
    ]  # fmt: skip
    assert "stricter" in legend
    assert "no usable answer" in legend
    assert "<i " not in render_heat_map(map_of(HeatMapCell(0.0, "0", ""), show_legend=False))


def test_the_legend_of_a_map_without_negative_values_begins_at_zero() -> None:
    heat_map = replace(map_of(HeatMapCell(0.0, "0", "")), state_labels={}, has_negative_values=False)
    html = render_heat_map(heat_map)
    assert re.findall(r'<i class="([\w-]+)">', html) == ["h0", "h1", "h2", "h3", "h4"]


def test_a_map_without_rows_is_rendered() -> None:
    assert "<tbody></tbody>" in render_heat_map(HeatMap("Map", [], [], BOUNDS, "low", "high"))
