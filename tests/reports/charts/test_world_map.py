"""A map colours each country by its number, and names those that it cannot place."""

from __future__ import annotations

import csv
import json
from collections import Counter
from xml.etree.ElementTree import Element

import pytest

from auditor.reports.charts.theme import DIFFERENCE_COLORS, ERROR_COLORS
from auditor.reports.charts.world_map import CountryEstimate, difference_map, error_bounds, error_map
from auditor.surveys.countries import DATA_FOLDER, country_name
from tests.support.drawn_figures import COUNTRIES, country_estimates, draw, texts_of, tooltips_of


def draw_map(estimates: list[CountryEstimate], *, is_error: bool = False) -> Element:
    world_map = error_map(estimates) if is_error else difference_map(estimates)
    assert world_map.spec is not None
    return draw(world_map.spec)


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
    assert world_map.spec is not None
    assert Counter(tooltips_of(draw(world_map.spec))) == Counter(f"{name}: +0.20" for name in names)


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
    assert world_map.spec is not None
    assert tooltips_of(draw(world_map.spec)) == ["Japan: +0.10"]


def test_without_any_country_on_the_map_there_is_no_specification() -> None:
    assert difference_map([CountryEstimate("Middle-earth", 0.1)]).spec is None
    assert difference_map([]) == error_map([])


def test_the_legend_has_every_bound_and_says_what_colors_mean() -> None:
    texts = texts_of(draw_map(country_estimates()))
    assert {"−0.7", "−0.1", "+0.1", "+0.7", "← Stricter than people", "More permissive →", "No data"} <= set(texts)
    texts = texts_of(draw_map(country_estimates(), is_error=True))
    assert texts == ["0.1", "0.2", "0.3", "0.4", "No data", "Mean absolute error (lower is better)"]
