"""The reliability diagram puts the share of right verdicts over the stated confidence."""

from __future__ import annotations

from auditor.reports.charts.scatter_plots import ReliabilityPoint, reliability_diagram
from tests.support.drawn_figures import draw, texts_of, tooltips_of

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
