"""Shorten numbers and paths of SVG: coordinates to one decimal, and lines relative to the point before."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_DECIMAL_PATTERN = re.compile(r"(?<!scale\()(?<!\d)-?\d*\.\d+(?:e-?\d+)?")
_LINES_PATTERN = re.compile(r"(?:M[-\d.e]+,[-\d.e]+(?:L[-\d.e]+,[-\d.e]+)*Z?)+")
_SUBPATH_PATTERN = re.compile(r"M[^M]+")
_POINT_PATTERN = re.compile(r"([-\d.e]+),([-\d.e]+)")


def format_coordinate(value: float) -> str:
    """Format a coordinate in pixels with at most one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def round_coordinates(text: str) -> str:
    """Round all numbers of an attribute to one decimal, but for a scale."""
    return _DECIMAL_PATTERN.sub(lambda match: format_coordinate(float(match[0])), text)


@lru_cache(maxsize=1000)
def shorten_path(path: str) -> str:
    """Round a path to one decimal, and write its lines relative to the point before, without points that coincide.

    Results are cached, since figures repeat long paths. A path with curves is only rounded.
    """
    if not _LINES_PATTERN.fullmatch(path):
        return round_coordinates(path)
    return "".join(map(_shorten_line, _SUBPATH_PATTERN.findall(path)))


def _shorten_line(subpath: str) -> str:
    """Shorten a path that starts with its only M; empty if all of its points coincide."""
    # In tenths of a pixel, so that rounding errors do not add up.
    points = [(round(float(x) * 10), round(float(y) * 10)) for x, y in _POINT_PATTERN.findall(subpath)]
    steps = [
        _join_numbers(x - previous_x, y - previous_y)
        for (previous_x, previous_y), (x, y) in pairwise(points)
        if (x, y) != (previous_x, previous_y)
    ]
    if not steps:
        return ""
    lines = "".join(step if step.startswith("-") else f" {step}" for step in steps).lstrip(" ")
    return f"M{_join_numbers(*points[0])}l{lines}{'Z' if subpath.endswith('Z') else ''}"


def _join_numbers(x_tenths: int, y_tenths: int) -> str:
    """Write two numbers as SVG allows: without a leading zero, and without a space before a minus sign."""
    x_text, y_text = _format_tenths(x_tenths), _format_tenths(y_tenths)
    return x_text + ("" if y_text.startswith("-") else " ") + y_text


@lru_cache(maxsize=10_000)
def _format_tenths(tenths: int) -> str:
    """Format a number of tenths without zeros that are not needed."""
    text = f"{tenths / 10:.1f}".removesuffix(".0")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
