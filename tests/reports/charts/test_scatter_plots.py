"""Scatter plots of scores, and reliability diagrams."""

from __future__ import annotations

import json
import re

from auditor.reports.charts.scatter_plots import (
    MAX_POINTS,
    ReliabilityPoint,
    ScorePair,
    reliability_diagram,
    scatter_plot,
)
from tests.support.drawn_figures import draw, texts_of, tooltips_of


def pairs(n: int, tooltip: str = "") -> list[ScorePair]:
    return [ScorePair((i * 37 % 199) / 100 - 0.99, (i * 61 % 193) / 100 - 0.96, tooltip) for i in range(n)]


def test_points_are_drawn_at_their_scores() -> None:
    svg = draw(scatter_plot([ScorePair(-1, -1, "a"), ScorePair(1, 1, "b"), ScorePair(0, 1, "c")]))
    points = [path.attrib["transform"] for path in svg.iter("path") if path.find("title") is not None]
    assert points == ["translate(0,224)", "translate(224,0)", "translate(112,0)"]


def test_tooltips_name_the_cell_and_both_scores() -> None:
    svg = draw(scatter_plot([ScorePair(-0.5, 0.25, "Japan, divorce"), ScorePair(0, 0)]))
    assert tooltips_of(svg) == ["Japan, divorce: people −0.50, model 0.25"]


def test_axes_say_whose_scores_they_are() -> None:
    assert {"People’s score", "Model’s score", "−1", "0", "1"} <= set(texts_of(draw(scatter_plot(pairs(3)))))


def test_points_without_tooltips_take_few_bytes() -> None:
    spec = scatter_plot(pairs(1254))
    svg = draw(spec)
    assert len(list(svg.iter("marker"))) == 1
    [line] = [path for path in svg.iter("path") if "marker-mid" in path.attrib]
    assert len(re.findall(r"[\d.]+ [\d.]+", line.attrib["d"])) == 1254
    assert len(line.attrib["d"]) < 13 * 1254


def test_many_points_become_squares_that_hold_all_of_them() -> None:
    spec = scatter_plot(pairs(MAX_POINTS + 1, "a cell"))
    text = json.dumps(spec)
    assert sum(map(int, re.findall(r'"cells": (\d+)', text))) == MAX_POINTS + 1
    svg = draw(spec)
    assert tooltips_of(svg) == []
    assert "Cells, at least" in texts_of(svg)
    assert len(re.findall(r'"cells": 1\b', json.dumps(scatter_plot(pairs(MAX_POINTS))))) == 0


def test_squares_with_more_points_are_stronger() -> None:
    crowded = [ScorePair(0.5, 0.5)] * 3000 + [ScorePair(-0.5, -0.5)] * 3
    rows = re.findall(r'"cells": (\d+), "opacity": ([\d.]+)', json.dumps(scatter_plot(crowded)))
    assert [int(n) for n, _ in rows] == [3, 3000]
    assert float(rows[0][1]) < float(rows[1][1]) == 1.0


def test_scores_at_the_ends_are_in_the_outer_squares() -> None:
    ends = [ScorePair(-1, -1), ScorePair(1, 1)] * 1001
    values = re.findall(r'"people": (-?[\d.]+), "model": (-?[\d.]+), "cells"', json.dumps(scatter_plot(ends)))
    assert values == [("-0.9688", "-0.9688"), ("0.9688", "0.9688")]


POINTS = [ReliabilityPoint(0.5, 0.25, 0.3, 0.7, 10), ReliabilityPoint(1.0, 1.0, 0.9, 1.0, 40)]


def test_dots_are_drawn_at_confidence_and_share() -> None:
    svg = draw(reliability_diagram(POINTS))
    dots = [path.attrib["transform"] for path in svg.iter("path") if path.find("title") is not None]
    assert dots == ["translate(112,168)", "translate(224,0)"]
    assert tooltips_of(svg) == [
        "confidence 0.50: right on 25% of 10 labels",
        "confidence 1.00: right on 100% of 40 labels",
    ]


def test_axes_say_what_is_shown() -> None:
    assert {"Stated confidence", "Share right", "0", "0.5", "1"} <= set(texts_of(draw(reliability_diagram(POINTS))))


def test_without_bins_only_the_diagonal_is_drawn() -> None:
    assert tooltips_of(draw(reliability_diagram([]))) == []
