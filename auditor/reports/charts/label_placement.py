"""Place labels beside dots, so that they do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.reports.charts.legend import LEGEND_FONT_SIZE_PX, LegendText
from auditor.reports.charts.theme import estimate_text_width

GAP_PX = 4
"""Space between a dot and its label."""


class Dot(NamedTuple):
    """A dot with its label; in pixels."""

    x: float
    y: float
    radius: float
    label: str


class _Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: _Box) -> float:
        """Area that two rectangles have in common."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0.0) * max(height, 0.0)


def place_labels(dots: Sequence[Dot], width: float, height: float) -> list[LegendText]:
    """Choose for each label the place around its dot that covers least of the dots, other labels and the margin.

    Args:
        dots: in the order in which their labels are placed.
        width, height: of the plot, in pixels.

    Returns:
        The labels, left-aligned.
    """
    dot_boxes = [_Box(dot.x - dot.radius, dot.y - dot.radius, dot.x + dot.radius, dot.y + dot.radius) for dot in dots]
    obstacles = [*dot_boxes, *_margins(width, height)]
    labels = []
    for dot in dots:
        box = min(_candidates(dot), key=lambda candidate: sum(map(candidate.overlap, obstacles)))
        obstacles.append(box)
        labels.append(LegendText(dot.label, round(box.left, 1), round((box.top + box.bottom) / 2, 1)))
    return labels


def _candidates(dot: Dot) -> list[_Box]:
    """Places for a label around its dot, the best first: right, left, above, below, and the corners."""
    width = estimate_text_width(dot.label, LEGEND_FONT_SIZE_PX)
    distance, half_height = dot.radius + GAP_PX, LEGEND_FONT_SIZE_PX * 0.6
    starts = {"right": dot.x + distance, "left": dot.x - distance - width, "center": dot.x - width / 2}
    middles = {
        "beside": dot.y,
        "above": dot.y - distance - half_height / 2,
        "below": dot.y + distance + half_height / 2,
    }
    places = [("right", "beside"), ("left", "beside"), ("center", "above"), ("center", "below")]
    places += [(start, middle) for start in ("right", "left") for middle in ("above", "below")]
    return [
        _Box(starts[start], middles[middle] - half_height, starts[start] + width, middles[middle] + half_height)
        for start, middle in places
    ]


def _margins(width: float, height: float) -> list[_Box]:
    """The area outside of the plot at its left, right, upper and lower edge."""
    far = 1000.0
    return [
        _Box(-far, -far, 0, height + far),
        _Box(width, -far, width + far, height + far),
        _Box(-far, -far, width + far, 0),
        _Box(-far, height, width + far, height + far),
    ]
