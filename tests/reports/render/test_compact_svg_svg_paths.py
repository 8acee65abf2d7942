"""Numbers and paths are shortened without moving by more than half of a tenth."""

from __future__ import annotations

import random
import re

import pytest

from auditor.reports.render.compact_svg import format_coordinate, round_coordinates, shorten_path


def points_of(path: str) -> list[tuple[float, float]]:
    """The absolute points of a path of M, L, l and Z commands."""
    points: list[tuple[float, float]] = []
    for command, numbers in re.findall(r"([MLlZ])([^MLlZ]*)", path):
        values = [float(number) for number in re.findall(r"-?\d*\.?\d+", numbers)]
        for x, y in zip(values[::2], values[1::2], strict=True):
            points.append((points[-1][0] + x, points[-1][1] + y) if command == "l" else (x, y))
    return points


@pytest.mark.parametrize(
    ("value", "text"), [(0.04, "0"), (-0.04, "0"), (1.0, "1"), (-1.25, "-1.2"), (1234.56, "1234.6"), (1e-9, "0")]
)
def test_a_coordinate_has_at_most_one_decimal(value: float, text: str) -> None:
    assert format_coordinate(value) == text


def test_all_numbers_of_an_attribute_are_rounded() -> None:
    assert round_coordinates("translate(0.500001,-3.14159) rotate(90)") == "translate(0.5,-3.1) rotate(90)"
    assert round_coordinates("1.5e-7") == "0"


def test_a_line_is_relative_and_ends_where_it_ended() -> None:
    assert shorten_path("M10.04,20L10.54,19.5L10.54,19.51L12,20Z") == "M10 20l.5-.5 1.5 .5Z"


def test_rounding_errors_do_not_add_up() -> None:
    generator = random.Random(1)
    points = [(generator.uniform(-50, 50), generator.uniform(-50, 50)) for _ in range(2000)]
    path = "M" + "L".join(f"{x:.3f},{y:.3f}" for x, y in points)
    shortened = points_of(shorten_path(path))
    assert len(shortened) == len(points)
    for (x, y), (short_x, short_y) in zip(points, shortened, strict=True):
        assert (short_x, short_y) == pytest.approx((x, y), abs=0.0511)


def test_rings_that_shrink_to_a_point_are_left_out() -> None:
    assert shorten_path("M1,1L1.01,1.02L1,1ZM2,2L3,2L3,3Z") == "M2 2l1 0 0 1Z"
    assert shorten_path("M1,1L1.01,1.02Z") == ""


def test_a_path_with_curves_is_only_rounded() -> None:
    assert shorten_path("M2.26,0A2.26,2.26,0,1,1,-2.26,0") == "M2.3,0A2.3,2.3,0,1,1,-2.3,0"
    assert shorten_path("M0,0h5.55v5Z") == "M0,0h5.5v5Z"
