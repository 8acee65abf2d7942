"""Marks of the SVG charts are at the positions of their values."""

from __future__ import annotations

import re

import pytest

from auditor.reports.pages import svg_charts
from auditor.reports.pages.svg_charts import Axis, IntervalMark


def test_a_dot_is_at_its_value_within_its_interval() -> None:
    plot = svg_charts.interval_plot([IntervalMark("m", 0.5, 0.25, 0.75, "note")], svg_charts.CORRELATION_AXIS, "t", "d")
    dot = float(re.search(r'circle class="dot" cx="([\d.]+)"', plot)[1])  # type: ignore[index]
    ends = [float(x) for x in re.search(r'class="range" x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"', plot).groups()]  # type: ignore[union-attr]
    assert dot == pytest.approx(sum(ends) / 2, abs=0.1)
    # r = 0.5 is at three quarters of the axis from -1 to 1.
    assert dot == pytest.approx(
        svg_charts.LABEL_WIDTH + 0.75 * (svg_charts.PLOT_WIDTH - svg_charts.LABEL_WIDTH - svg_charts.ANNOTATION_WIDTH),
        abs=0.1,
    )


def test_a_missing_value_has_no_mark() -> None:
    plot = svg_charts.interval_plot(
        [IntervalMark("m", None, None, None, "not measurable")], svg_charts.SHARE_AXIS, "t", "d"
    )
    assert "circle" not in plot
    assert "range" not in plot
    assert "not measurable" in plot


def test_a_value_beyond_the_axis_is_put_on_its_edge() -> None:
    assert Axis(0, 1, (), "").position(7.0, 100, 50) == 150


def test_scatter_puts_equal_scores_on_the_diagonal() -> None:
    plot = svg_charts.scatter_plot([(-1.0, -1.0, ""), (0.5, 0.5, "tip & <b>")], "t", "d")
    points = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', plot)
    assert all(float(x) + float(y) == pytest.approx(svg_charts.SCATTER_SIZE) for x, y in points)
    assert "<title>tip &amp; &lt;b&gt;</title>" in plot


def test_bar_is_split_by_counts() -> None:
    bar = svg_charts.stacked_bar([("ok", 3), ("none", 0), ("missing", 1)], "t")
    widths = [float(w) for w in re.findall(r'width="([\d.]+)"', bar)]
    assert widths == [svg_charts.PLOT_WIDTH * 0.75, svg_charts.PLOT_WIDTH * 0.25]
    assert "rect" not in svg_charts.stacked_bar([("ok", 0)], "t")


def test_long_names_are_shortened_with_the_full_name_as_title() -> None:
    plot = svg_charts.interval_plot([IntervalMark("m" * 80, 0.5, 0.4, 0.6, "")], svg_charts.SHARE_AXIS, "t", "d")
    assert f"<title>{'m' * 80}</title>{'m' * (svg_charts.MAX_LABEL_LENGTH - 1)}…" in plot


@pytest.mark.parametrize(
    ("values", "high"), [([0.1, None], 0.2), ([0.21], 0.4), ([], 0.2), ([1.9], 2.0), ([0.4], 0.4), ([None], 0.2)]
)
def test_error_axis_is_round_and_wide_enough(values: list[float | None], high: float) -> None:
    assert svg_charts.error_axis(values, "MAE").high == high
