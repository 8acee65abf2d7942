"""Tables and heat maps of a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.reports.document import BarSegment, Cell, Column, HeatMap, HeatMapCell, Name, Reason, Row, Table
from auditor.reports.render.html_tables import MAX_COLUMNS, render_heat_map, render_html_table


def test_first_cells_are_headings_and_names_are_isolated() -> None:
    columns = [Column("Model", "name"), Column(Name("b"), "number", emphasis=True), Column("Note")]
    html = render_html_table(Table("t", "Label", "Caption.", columns, [["<a>", 1, None], ["b", 2, "x"]]))
    assert '<table id="table-t" class="figures">' in html
    assert (
        '<tr><th scope="col" class="t">Model</th><th scope="col" class="b"><bdi>b</bdi></th>'
        '<th scope="col" class="t">Note</th></tr>' in html
    )
    assert '<tr><th scope="row"><bdi>&lt;a&gt;</bdi></th><td class="b">1</td><td class="t">–</td></tr>' in html


def test_interval_and_n_are_below_the_value() -> None:
    columns = [Column("Model", "name"), Column("r", "estimate")]
    html = render_html_table(Table("t", "Label", "", columns, [["a", Estimate(0.5, 9, 0.4, 0.6)]]))
    assert "<td>0.50<small>0.40 to 0.60, n\u00a09</small></td>" in html


def test_the_interval_of_a_share_for_the_measured_cells_is_shown_with_its_name() -> None:
    columns = [Column("Model", "name"), Column("Share", "estimate")]
    both = ShareEstimate(0.5, 9, 0.2, 0.8, cells_ci_low=0.4, cells_ci_high=0.6)
    cells_only = ShareEstimate(0.5, 9, reason="too few", cells_ci_low=0.4, cells_ci_high=0.6)
    html = render_html_table(Table("t", "Label", "", columns, [["a", both], ["b", cells_only]]))
    assert "<small>0.20 to 0.80, n\u00a09</small>" in html
    assert "<small>0.40 to 0.60 for these cells, no 95% CI: too few, n\u00a09</small>" in html


def test_reasons_span_columns_and_totals_are_in_the_foot() -> None:
    columns = [Column("Model", "name"), Column("r", "number"), Column("p", "number"), Column("n", "number")]
    rows: list[Row | Sequence[Cell]] = [Row(["all", 0.5, 0.1, 5], is_total=True), ["a", Reason(["too ", "few"], 2), 3]]
    html = render_html_table(Table("t", "Label", "", columns, rows))
    assert '<td class="why" colspan="2">too few</td><td>3</td>' in html
    assert html.index("<tbody>") < html.index("too few") < html.index("<tfoot>") < html.index("<bdi>all</bdi>")


def test_bars_are_as_long_as_their_shares_and_have_a_legend_of_what_occurs() -> None:
    legend = [("ok", "usable"), ("refused", "refused"), ("missing", "not recorded")]
    rows: list[Row | Sequence[Cell]] = [
        ["a", [BarSegment("ok", 75), BarSegment("missing", 25)]],
        ["b", [BarSegment("ok", 0)]],
        ["c", None],
    ]
    html = render_html_table(Table("t", "l", "", [Column("Model", "name"), Column("Bar", "bar")], rows, legend))
    assert '<span class="bar" role="img" aria-label="usable 75, not recorded 25"><i class="c0 w75"></i>' in html
    assert re.findall(r'<i class="(c\d+)"></i>([\w ]+)', html) == [("c0", "usable"), ("c2", "not recorded")]


def test_a_share_that_is_not_zero_is_visible_in_its_bar() -> None:
    bar = [BarSegment("ok", 9999), BarSegment("refused", 1)]
    columns = [Column("Model", "name"), Column("Bar", "bar")]
    html = render_html_table(Table("t", "l", "", columns, [["a", bar]], [("ok", "ok"), ("refused", "refused")]))
    assert 'class="c1 w1"' in html


def test_reasons_that_repeat_are_a_note_below_the_table() -> None:
    missing = Estimate(0.1, 3, reason="fewer than five countries")
    columns = [Column("Model", "name"), Column("r", "estimate", show_n=False)]
    rows: list[Row | Sequence[Cell]] = [["a", missing] for _ in range(3)]
    html = render_html_table(Table("t", "l", "", columns, rows))
    assert html.count("<small>no 95% CI<sup>a</sup></small>") == 3
    assert html.endswith('<p class="note"><sup>a</sup> fewer than five countries</p>')


def test_tables_with_more_columns_than_fit_on_paper_are_broken() -> None:
    columns = [Column(f"column {i}", "number") for i in range(MAX_COLUMNS + 5)]
    html = render_html_table(Table("t", "l", "", columns, [list(range(len(columns)))]))
    assert html.count("<table ") == html.count('<div class="scroll"') == 2
    assert html.count('id="table-t"') == 1
    assert 'class="figures many n15"' in html


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
