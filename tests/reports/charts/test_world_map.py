"""World maps: places, shapes, projection, colours and legend."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections import Counter
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from auditor.reports.charts.theme import DIFFERENCE_COLORS, ERROR_COLORS, build_spec
from auditor.reports.charts.world_map import (
    LAND_ID,
    MAX_DOT_AREA_KM2,
    PATHS_FILE,
    PATHS_WIDTH_PX,
    SHAPES_FILE,
    SMALL_COUNTRIES,
    WORLD_DATASET,
    CountryEstimate,
    build_projection,
    difference_map,
    error_bounds,
    error_map,
    load_paths,
    load_places,
    load_topology,
    place_dots,
    project,
    shape_codes,
)
from auditor.reports.render.compact_svg import shorten_path
from auditor.reports.render.figures import export_svg
from auditor.surveys import load_survey
from auditor.surveys.countries import DATA_FOLDER, country_code, country_name
from tests.support.drawn_figures import COUNTRIES, country_estimates, draw, texts_of, tooltips_of
from tests.support.known import known


def draw_map(estimates: list[CountryEstimate], *, is_error: bool = False) -> Element:
    world_map = error_map(estimates) if is_error else difference_map(estimates)
    return draw(known(world_map.spec))


def color_of(country: str, value: float, *, is_error: bool = False) -> str | None:
    marks = draw_map([CountryEstimate(country, value)], is_error=is_error).iter()
    [mark] = [mark for mark in marks if mark.tag in ("path", "circle") and len(mark)]
    return mark.get("fill")


def test_each_country_has_its_number_interval_and_n_as_a_tooltip() -> None:
    tooltips = tooltips_of(draw_map(country_estimates()))
    assert "Germany: −0.50 (95% CI −0.60 to −0.40, 19 cells)" in tooltips
    assert sorted(text.split(":")[0] for text in tooltips) == sorted(COUNTRIES)
    assert tooltips_of(draw_map([CountryEstimate("Japan", 0.25)], is_error=True)) == ["Japan: 0.25"]


def test_every_place_of_the_surveys_can_be_mapped() -> None:
    with (DATA_FOLDER / "places.csv").open(encoding="utf-8", newline="") as file:
        codes = [row["code"] for row in csv.DictReader(file)]
    names = [country_name(code) or code for code in codes]
    world_map = difference_map([CountryEstimate(name, 0.2) for name in names])
    assert world_map.unplaced == ()
    assert Counter(tooltips_of(draw(known(world_map.spec)))) == Counter(f"{name}: +0.20" for name in names)


def test_small_countries_and_those_without_a_shape_are_dots() -> None:
    svg = draw_map(country_estimates())
    dots = {circle[0].text for circle in svg.iter("circle")}
    assert {str(text).split(":")[0] for text in dots} == {"Kosovo", "Hong Kong", "Singapore"}


@pytest.mark.parametrize(
    ("value", "index"),
    [(-0.7, 0), (-0.69, 1), (-0.3, 2), (-0.1, 3), (-0.09, 4), (0, 4), (0.09, 4), (0.1, 5), (0.5, 7), (0.7, 8), (2, 8)],
)
@pytest.mark.parametrize("country", ["Japan", "Singapore"])
def test_differences_have_the_colors_of_the_heat_maps(country: str, value: float, index: int) -> None:
    assert color_of(country, value) == DIFFERENCE_COLORS[index]


@pytest.mark.parametrize(
    ("errors", "bounds"),
    [
        ([0.46, 0.68], [0.5, 0.55, 0.6, 0.65]),
        ([0.12, 0.33], [0.15, 0.2, 0.25, 0.3]),
        ([0.0, 0.5], [0.1, 0.2, 0.3, 0.4]),
        ([0.05, 0.9], [0.2, 0.4, 0.6, 0.8]),
        ([0.1, 2.0], [0.4, 0.8, 1.2, 1.6]),
    ],
)
def test_the_scale_of_errors_covers_the_data(errors: list[float], bounds: list[float]) -> None:
    assert error_bounds(errors) == bounds
    spec = error_map(
        [CountryEstimate(name, error) for name, error in zip(("Japan", "Chile"), errors, strict=True)]
    ).spec
    assert {f'"color": "{ERROR_COLORS[i]}"' in json.dumps(spec) for i in (0, len(ERROR_COLORS) - 1)} == {True}


def test_names_without_a_place_are_returned_and_not_drawn() -> None:
    estimates = [CountryEstimate(name, 0.1) for name in ("East Germany", "Japan", "<b>", "Nippon", "JPN")]
    world_map = difference_map(estimates)
    assert world_map.unplaced == ("East Germany", "<b>", "Nippon", "JPN")
    assert tooltips_of(draw(known(world_map.spec))) == ["Japan: +0.10"]


def test_without_any_country_on_the_map_there_is_no_specification() -> None:
    assert difference_map([CountryEstimate("Middle-earth", 0.1)]).spec is None
    assert difference_map([]) == error_map([])


def test_the_legend_has_every_bound_and_says_what_colors_mean() -> None:
    texts = texts_of(draw_map(country_estimates()))
    assert {"−0.7", "−0.1", "+0.1", "+0.7", "← Stricter than people", "More permissive →", "No data"} <= set(texts)
    texts = texts_of(draw_map(country_estimates(), is_error=True))
    assert texts == ["0.1", "0.2", "0.3", "0.4", "No data", "Mean absolute error (lower is better)"]


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


def draw_shapes() -> dict[str, str]:
    """The path that Vega draws for each shape, by its id."""
    encoding = {"description": {"field": "id", "type": "nominal"}}
    layer = {"mark": {"type": "geoshape", "clip": False}, "encoding": encoding}
    spec = build_spec(
        [layer], width=PATHS_WIDTH_PX, height=PATHS_WIDTH_PX / 2, padding=(0, 0, 0, 0),
        data={"name": WORLD_DATASET, "format": {"type": "topojson", "feature": "countries"}},
        projection=build_projection(PATHS_WIDTH_PX),
    )  # fmt: skip
    svg = ElementTree.fromstring(export_svg(spec))
    paths = svg.iter("{http://www.w3.org/2000/svg}path")
    return {path.attrib["aria-label"]: shorten_path(path.attrib["d"]) for path in paths if "aria-label" in path.attrib}


def test_stored_paths_are_those_that_vega_draws() -> None:
    """To store them again after a change of the shapes or the projection: `AUDITOR_GOLDEN=write pytest` this file."""
    paths = draw_shapes()
    if os.environ.get("AUDITOR_GOLDEN") == "write":
        lines = [f"{json.dumps(code)}:{json.dumps(paths[code])}" for code in sorted(paths)]
        PATHS_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        load_paths.cache_clear()
    assert load_paths() == paths
    assert len(paths) == 175
    assert len(paths[LAND_ID]) > 40_000


@pytest.mark.parametrize("country", ["Singapore", "Luxembourg", "Trinidad and Tobago", "Hong Kong"])
def test_projected_points_are_those_that_vega_draws(country: str) -> None:
    spec: Any = difference_map([CountryEstimate(country, 0.2)]).spec
    [row] = next(layer["data"]["values"] for layer in spec["layer"] if "longitude" in layer.get("encoding", {}))
    drawn = re.findall(rf'aria-label="{country}[^"]*"[^>]*translate\(([-\d.]+),([-\d.]+)\)', export_svg(spec).decode())
    projection = spec["projection"]
    point = [
        start + projection["scale"] * part
        for start, part in zip(projection["translate"], project(row["longitude"], row["latitude"]), strict=True)
    ]
    assert [float(part) for part in drawn[0]] == pytest.approx(point, abs=0.01)
