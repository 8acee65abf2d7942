"""Plots as inline SVG: pure functions from numbers to markup. Colours and fonts are the page's own, by class.

Every plot has a title and a description for those who do not see it; the page gives the same figures as a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from auditor.reports.pages.number_format import number
from auditor.text_safety import visible

WIDTH = 760
LABEL = 190
"""Width of the names to the left of an interval plot."""
NOTE = 170
"""Width of the figures to its right."""
ROW = 26
TOP = 10
AXIS = 30
MAX_LABEL = 24
"""Letters of a name that fit to the left of an interval plot."""
MAX_TEXT = 26
SQUARE = 260
MARGIN = 30


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis.

    Attributes:
        reference: where a line marks what values are compared with, such as zero.
    """

    low: float
    high: float
    ticks: Sequence[float]
    label: str
    reference: float | None = None

    def place(self, value: float, start: float, width: float) -> float:
        """Position of a value; what lies outside is put on the edge."""
        clipped = min(max(value, self.low), self.high)
        return start + width * (clipped - self.low) / (self.high - self.low)


CORRELATION = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Pearson r", 0.0)
DIFFERENCE = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Δr", 0.0)
SHARE = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1), "")


@dataclass(frozen=True, slots=True)
class Mark:
    """One row of an interval plot; without a value only its name and note are drawn.

    Attributes:
        inner: ends of a narrower interval, drawn thicker.
    """

    label: str
    value: float | None
    low: float | None
    high: float | None
    note: str
    inner: tuple[float | None, float | None] = (None, None)


def error_axis(values: Iterable[float | None], label: str) -> Axis:
    """An axis from 0 to a round number above all values."""
    top = max((v for v in values if v is not None), default=0.0)
    high = next((h for h in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6) if h >= top), 2.0)
    return Axis(0, high, [high * i / 4 for i in range(5)], label)


def difference_axis(values: Iterable[float | None], label: str) -> Axis:
    """An axis around 0, to a round number beyond all values."""
    most = max((abs(v) for v in values if v is not None), default=0.0)
    high = next((h for h in (0.1, 0.2, 0.4, 0.6, 1.0) if h >= most), 2.0)
    return Axis(-high, high, [-high, -high / 2, 0.0, high / 2, high], label, 0.0)


def interval_plot(marks: Sequence[Mark], axis: Axis, title: str, description: str) -> Markup:
    """A dot and its interval for each row, on one axis."""
    height = TOP + ROW * len(marks) + AXIS
    plot = WIDTH - LABEL - NOTE
    parts = [_grid(axis, plot, height)]
    parts += [_mark(mark, axis, plot, TOP + ROW * (i + 0.5)) for i, mark in enumerate(marks)]
    return _svg(WIDTH, height, "interval", title, description, parts)


def _grid(axis: Axis, plot: float, height: float) -> Markup:
    bottom = height - AXIS
    parts = []
    for tick in axis.ticks:
        x = axis.place(tick, LABEL, plot)
        parts.append(_line(x, TOP, x, bottom, "grid"))
        parts.append(_text(x, bottom + 15, _tick(tick), "tick middle"))
    if axis.reference is not None:
        x = axis.place(axis.reference, LABEL, plot)
        parts.append(_line(x, TOP - 4, x, bottom, "reference"))
    if axis.label:
        parts.append(_text(LABEL + plot + 26, bottom + 15, axis.label, "tick"))
    return Markup("").join(parts)


def _mark(mark: Mark, axis: Axis, plot: float, y: float) -> Markup:
    parts = [
        _text(LABEL - 14, y + 4, mark.label, "label end", MAX_LABEL),
        _text(LABEL + plot + 14, y + 4, mark.note, "note"),
    ]
    for name, (low, high) in (("range", (mark.low, mark.high)), ("range inner", mark.inner)):
        if low is not None and high is not None:
            parts.append(_line(axis.place(low, LABEL, plot), y, axis.place(high, LABEL, plot), y, name))
    if mark.value is not None:
        x = axis.place(mark.value, LABEL, plot)
        parts.append(Markup('<circle class="dot" cx="{}" cy="{}" r="4.5"/>').format(_at(x), _at(y)))
    return Markup("").join(parts)


def scatter(points: Sequence[tuple[float, float, str]], title: str, description: str) -> Markup:
    """Model against people, both in [-1, 1]; on the diagonal they are the same.

    Args:
        points: people's score, the model's score, and what a tooltip says; empty for none.
    """
    size = SQUARE - 2 * MARGIN

    def place(x: float, y: float) -> tuple[str, str]:
        return _at(MARGIN + size * (x + 1) / 2), _at(MARGIN + size * (1 - y) / 2)

    parts = []
    for tick in (-1.0, -0.5, 0.0, 0.5, 1.0):
        at, name = MARGIN + size * (tick + 1) / 2, "axis" if tick == 0 else "grid"
        parts += [
            _line(at, MARGIN, at, MARGIN + size, name),
            _line(MARGIN, SQUARE - at, MARGIN + size, SQUARE - at, name),
        ]
        if tick != 0.5 and tick != -0.5:
            parts.append(_text(at, MARGIN + size + 16, _tick(tick), "tick middle"))
            parts.append(_text(MARGIN - 6, SQUARE - at + 4, _tick(tick), "tick end"))
    parts.append(_line(MARGIN, MARGIN + size, MARGIN + size, MARGIN, "diagonal"))
    for x, y, tip in points:
        cx, cy = place(x, y)
        inner = Markup("><title>{}</title></circle>").format(visible(tip)) if tip else Markup("/>")
        parts.append(Markup('<circle cx="{}" cy="{}" r="3"').format(cx, cy) + inner)
    return _svg(SQUARE, SQUARE, "scatter", title, description, parts)


class Dot(NamedTuple):
    """A point of a plot of calls against accuracy; rho is in [-1, 1]."""

    calls: float
    rho: float
    label: str


def calls_plot(dots: Sequence[Dot], label: str, title: str) -> Markup:
    """Calls across, on a logarithmic axis, and accuracy up; every point bears its number in the list beside it."""
    left, plot, height = 2 * MARGIN, WIDTH / 2 - 2 * MARGIN, SQUARE
    most = max((dot.calls for dot in dots), default=1.0)
    least = min((dot.calls for dot in dots), default=1.0)
    low = min(0.0, *(dot.rho for dot in dots)) if dots else 0.0
    span = math.log(most / least) or 1.0
    parts = []
    for tick in (low, (low + 1) / 2, 1.0):
        y = TOP + (height - TOP - AXIS) * (1 - (tick - low) / (1 - low))
        parts += [_line(left, y, left + plot, y, "grid"), _text(left - 6, y + 4, number(tick), "tick end")]
    for i, dot in enumerate(dots):
        x = left + 10 + (plot - 20) * math.log(dot.calls / least) / span
        y = TOP + (height - TOP - AXIS) * (1 - (dot.rho - low) / (1 - low))
        parts.append(Markup('<circle class="dot" cx="{}" cy="{}" r="4.5"/>').format(_at(x), _at(y)))
        parts.append(_text(x, y - 8, str(i + 1), "tick middle"))
        told = f"{i + 1}  {dot.label}: {dot.calls:.0f} calls, {number(dot.rho)}"
        parts.append(_whole_text(left + plot + 24, TOP + 12 + 18 * i, told))
    parts.append(_whole_text(left, height - 8, f"{least:.0f} calls to {most:.0f}, logarithmic; up: {label}"))
    said = "; ".join(f"{dot.label}: {dot.calls:.0f} calls, {number(dot.rho)}" for dot in dots)
    return _svg(WIDTH, height, "interval calls", title, said, parts)


def _whole_text(x: float, y: float, text: str) -> Markup:
    return Markup('<text class="note" x="{}" y="{}">{}</text>').format(_at(x), _at(y), visible(text))


def stacked_bar(parts: Sequence[tuple[str, int]], title: str) -> Markup:
    """One bar, split by counts.

    Args:
        parts: class of the colour, and count.
    """
    total = sum(n for _, n in parts)
    drawn, x = [], 0.0
    for name, n in parts:
        width = WIDTH * n / total if total else 0.0
        if width:
            drawn.append(
                Markup('<rect class="{}" x="{}" y="0" width="{}" height="14"/>').format(name, _at(x), _at(width))
            )
        x += width
    return _svg(WIDTH, 14, "bar", title, "", drawn)


def _svg(width: float, height: float, name: str, title: str, description: str, parts: Iterable[Markup]) -> Markup:
    return Markup('<svg class="{}" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>{}</svg>').format(
        name, _at(width), _at(height), visible(title), visible(description), Markup("").join(parts)
    )


def _line(x1: float, y1: float, x2: float, y2: float, name: str) -> Markup:
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(name, *map(_at, (x1, y1, x2, y2)))


def _text(x: float, y: float, text: str, name: str, most: int = MAX_TEXT) -> Markup:
    shown = visible(text)
    if len(shown) > most:
        whole, shown = shown, shown[: most - 1] + "…"
        tip = Markup("<title>{}</title>").format(whole)
    else:
        tip = Markup("")
    return Markup('<text class="{}" x="{}" y="{}">{}{}</text>').format(name, _at(x), _at(y), tip, shown)


def _at(value: float) -> str:
    """A coordinate: short, and the same in every run."""
    return f"{value:.1f}".removesuffix(".0")


def _tick(value: float) -> str:
    return number(value, 0 if value == int(value) else 2)
