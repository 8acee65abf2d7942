"""The tile map: one square per country in geographic order, and a list of unplaced names."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

from auditor.reports.pages.world_map import draw_error_map, layout_tiles, shade_level
from auditor.surveys.countries import known_codes
from auditor.surveys.loader import load_survey
from tests.support.synthetic_audit import COUNTRIES


def test_tiles_are_unique_and_keep_geographic_order() -> None:
    tiles, unplaced = layout_tiles(COUNTRIES)
    assert unplaced == []
    assert len({(t.row, t.column) for t in tiles}) == len(tiles) == len(COUNTRIES)
    tile_by_country = {t.country: t for t in tiles}
    for west, east in itertools.pairwise(["Mexico", "Nigeria", "Iran", "Japan"]):
        assert tile_by_country[west].column < tile_by_country[east].column
    for north, south in itertools.pairwise(["Canada", "Mexico", "Peru", "Argentina"]):
        assert tile_by_country[north].row < tile_by_country[south].row


def test_the_layout_does_not_depend_on_order_and_lists_unplaced_names() -> None:
    tiles, _ = layout_tiles(["Germany", "Japan", "Kenya"])
    reordered_tiles, unplaced = layout_tiles(["Kenya", "Middle-earth", "Japan", "Germany"])
    assert tiles == reordered_tiles
    assert unplaced == ["Middle-earth"]
    assert layout_tiles(["Middle-earth"]) == ([], ["Middle-earth"])


def test_every_country_of_the_built_in_surveys_has_a_place() -> None:
    for name in ("wvs7-sample", "pew2013-sample"):
        assert layout_tiles(list(load_survey(name).countries))[1] == []
    assert len(known_codes()) >= 150


def test_the_map_labels_each_country_with_its_error() -> None:
    svg = draw_error_map({"Germany": 0.12, "Japan": 0.5}, "a <title>", "and more")
    root = ElementTree.fromstring(str(svg))
    assert [e.text for e in root.iter("title")] == ["a <title>", "Germany: 0.12", "Japan: 0.50"]
    assert [shade_level(v) for v in (0.0, 0.1, 0.25, 0.39, 0.4, 2.0)] == [0, 1, 2, 3, 4, 4]
    assert draw_error_map({}, "", "") == ""
