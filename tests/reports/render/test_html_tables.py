"""Tables of the page: headings, spans, totals, bars and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.reports.document import BarSegment, Cell, Column, Name, Reason, Row, Table
from auditor.reports.render.html_tables import MAX_COLUMNS, render_html_table


def test_first_cells_are_headings_and_names_are_isolated() -> None:
    columns = [Column("Model", "name"), Column(Name("b"), "number", emphasis=True), Column("Note")]
    html = render_html_table(Table("t", "Label", "Caption.", columns, [["<a>", 1, None]]))
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
