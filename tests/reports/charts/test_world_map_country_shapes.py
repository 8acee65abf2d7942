"""Every country has a shape or a place on the map."""

from __future__ import annotations

import json
import math
from itertools import combinations, pairwise
from typing import Any

import pytest

from auditor.reports.charts.world_map import (
    LAND_ID,
    MAX_DOT_AREA_KM2,
    SHAPES_FILE,
    SMALL_COUNTRIES,
    load_places,
    load_topology,
    place_dots,
    shape_codes,
)
from auditor.surveys import load_survey
from auditor.surveys.countries import country_code

EARTH_AREA_KM2 = 510_065_600


def shape_area(shape: dict[str, Any]) -> float:
    """Area of a shape in square kilometres."""
    topology = load_topology()
    (scale_x, scale_y), (shift_x, shift_y) = topology["transform"]["scale"], topology["transform"]["translate"]

    def points_of(arc: list[list[int]]) -> list[tuple[float, float]]:
        points, x, y = [], 0, 0
        for step_x, step_y in arc:
            x, y = x + step_x, y + step_y
            points.append((math.radians(x * scale_x + shift_x), math.sin(math.radians(y * scale_y + shift_y))))
        return points

    total = 0.0
    for polygon in [shape["arcs"]] if shape["type"] == "Polygon" else shape["arcs"]:
        ring = [
            points_of(topology["arcs"][index]) if index >= 0 else points_of(topology["arcs"][~index])[::-1]
            for index in polygon[0]
        ]
        points = [point for arc in ring for point in arc]
        total += abs(sum((x2 - x1) * (y1 + y2) / 2 for (x1, y1), (x2, y2) in pairwise([*points, points[0]])))
    return total / (4 * math.pi) * EARTH_AREA_KM2


@pytest.mark.parametrize("survey", ["wvs7-sample", "pew2013-sample"])
def test_every_country_of_the_survey_samples_is_on_the_map(survey: str) -> None:
    codes = {country_code(country) for country in load_survey(survey).countries}
    assert codes <= shape_codes() | load_places().keys()
    assert len(codes) >= 14


def test_every_place_is_a_dot_or_has_a_shape_large_enough_to_see() -> None:
    geometries = load_topology()["objects"]["countries"]["geometries"]
    areas = {shape["id"]: shape_area(shape) for shape in geometries if shape["id"] != LAND_ID}
    assert areas["DEU"] == pytest.approx(357_000, rel=0.05)
    small = {code for code in areas.keys() & load_places().keys() if areas[code] < MAX_DOT_AREA_KM2}
    assert small == SMALL_COUNTRIES


def test_land_has_every_shape_but_antarctica() -> None:
    land, *geometries = load_topology()["objects"]["countries"]["geometries"]
    original = json.loads(SHAPES_FILE.read_text(encoding="utf-8"))["objects"]["countries"]["geometries"]
    sizes = {s["properties"]["name"]: len(s["arcs"]) if s["type"] == "MultiPolygon" else 1 for s in original}
    assert (land["id"], len(land["arcs"])) == (LAND_ID, sum(sizes.values()) - sizes["Antarctica"])
    assert "ATA" not in shape_codes()
    assert len(geometries) == len(shape_codes()) == 174
    assert "XKX" in shape_codes()


def test_dots_that_would_cover_each_other_are_moved_apart() -> None:
    codes = ["HKG", "MAC", "ISR", "PSE", "LBN", "CYP", "SGP"]
    dots = place_dots(codes, 3)
    assert list(dots) == codes
    assert min(math.dist(dots[a], dots[b]) for a, b in combinations(codes, 2)) > 2.5
    assert max(math.dist(dots[code], load_places()[code]) for code in codes) < 5
    assert dots["SGP"] == load_places()["SGP"]


def test_places_that_are_equal_do_not_fail() -> None:
    assert place_dots([], 3) == {}
    assert len(place_dots(["HKG"], 3)) == 1
