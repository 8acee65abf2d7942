"""A trade-off plot shows each setting with its cost, accuracy, interval and spread."""

from __future__ import annotations

from functools import partial

import pytest

from auditor.reports.charts.theme import SERIES_COLORS
from auditor.reports.charts.tradeoff_plot import MAX_INTERVALS, TradeoffPoint, round_ticks, tradeoff_plot
from tests.support.drawn_figures import draw, texts_of, tooltips_of

POINTS = [
    TradeoffPoint(f"{n}", n * 100.0, 0.4 + n / 50 + i / 10, series, 0.3, 0.7, 0.2 / n)
    for i, series in enumerate(("oak", "ash"))
    for n in (1, 5, 10)
]
plot = partial(tradeoff_plot, cost_title="Calls", accuracy_title="Pearson r")


def test_dots_have_labels_tooltips_and_the_color_of_their_series() -> None:
    svg = draw(plot(POINTS))
    assert {"oak", "ash", "1", "5", "10", "Calls", "Pearson r", "1\u202f000"} <= set(texts_of(svg))
    assert tooltips_of(svg)[0] == "oak, 1: 0.42 (0.30 to 0.70)"
    colors = [path.get("fill") for path in svg.iter("path") if path.find("title") is not None]
    assert colors == [SERIES_COLORS[0]] * 3 + [SERIES_COLORS[1]] * 3


def test_a_larger_spread_is_a_larger_dot() -> None:
    svg = draw(plot(POINTS[:3]))
    radii = [float(path.attrib["d"][1:].split(",")[0]) for path in svg.iter("path") if path.find("title") is not None]
    assert radii == sorted(radii, reverse=True)
    assert len(set(radii)) == 3


def test_a_single_series_has_no_legend_and_the_full_width() -> None:
    points = [TradeoffPoint("merge sort", 20, 0.7), TradeoffPoint("all pairs", 190, 0.8)]
    spec = plot(points, log_cost=True)
    assert spec["width"] > plot(POINTS)["width"]  # type: ignore[operator]
    assert {"merge sort", "all pairs", "20", "50", "100"} <= set(texts_of(draw(spec)))


def test_a_logarithmic_axis_refuses_a_cost_of_zero() -> None:
    with pytest.raises(ValueError, match="positive"):
        plot([TradeoffPoint("free", 0, 0.5)], log_cost=True)


@pytest.mark.parametrize("log_cost", [False, True])
@pytest.mark.parametrize("points", [[], [TradeoffPoint("one", 1, 0.0)], [TradeoffPoint("one", 5, -1)] * 2])
def test_few_and_equal_points_are_drawn(points: list[TradeoffPoint], log_cost: bool) -> None:
    assert len(tooltips_of(draw(plot(points, log_cost=log_cost)))) == len(points)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 987_654), (-0.02, 0.031), (0.4, 0.41), (0, 1e-5)])
def test_ticks_are_round_and_few_and_within_the_axis(low: float, high: float) -> None:
    ticks = round_ticks(low, high)
    assert 2 <= len(ticks) <= MAX_INTERVALS + 1
    assert all(low <= tick <= high for tick in ticks)
