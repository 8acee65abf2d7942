"""Colours, texts and labels of all charts."""

from __future__ import annotations

import re
from importlib import resources
from itertools import combinations

import pytest

from auditor.reports.charts import theme
from auditor.reports.charts.theme import (
    LEGEND_FONT_SIZE_PX,
    LIGHT_COLORS,
    Dot,
    clean_text,
    estimate_text_width,
    place_labels,
    truncate_to_width,
)

CSS = (resources.files("auditor.reports.render") / "page.css").read_text(encoding="utf-8")


def test_light_colors_are_those_of_the_page() -> None:
    page_colors = dict(re.findall(r"--([\w-]+):\s*([^;]+);", CSS.split("@media", 1)[0]))
    assert {name: page_colors[name] for name in LIGHT_COLORS} == LIGHT_COLORS


def test_every_color_of_the_theme_is_defined_for_light_and_dark_pages() -> None:
    constants = [getattr(theme, name) for name in ("INK", "MUTED", "RULE", "FAINT", "PAPER", "ACCENT")]
    used = {*constants, *theme.DIFFERENCE_COLORS, *theme.ERROR_COLORS, *theme.SERIES_COLORS}
    assert used == {f"var(--{name})" for name in LIGHT_COLORS}
    dark_css = CSS.split("prefers-color-scheme: dark", 1)[1].split("@media", 1)[0]
    assert set(LIGHT_COLORS) <= set(re.findall(r"--([\w-]+):", dark_css))


def test_text_is_put_on_one_line_and_invisible_characters_are_shown() -> None:
    assert clean_text("a\n b\t\u202ec\x00") == "a b \\u202ec␀"


def test_wide_characters_take_more_space_than_narrow_ones() -> None:
    assert estimate_text_width("iiii") < estimate_text_width("aaaa") < estimate_text_width("MMMM")
    assert estimate_text_width("日本") == 2 * 12
    assert estimate_text_width("e\u0301") == estimate_text_width("e")
    assert estimate_text_width("a", is_bold=True) > estimate_text_width("a")


@pytest.mark.parametrize("text", ["", "short", "日" * 40, "M" * 40, "i" * 400])
def test_a_truncated_text_fits_and_ends_with_an_ellipsis(text: str) -> None:
    truncated = truncate_to_width(text, 120)
    assert estimate_text_width(truncated) <= 120
    assert truncated == text or (truncated.endswith("…") and text.startswith(truncated[:-1]))


def test_a_label_stands_to_the_right_of_its_dot_where_there_is_room() -> None:
    [label] = place_labels([Dot(100, 50, 5, "one")], 400, 200)
    assert label.x > 105
    assert label.y == 50


def test_at_the_right_edge_a_label_stands_to_the_left() -> None:
    [label] = place_labels([Dot(395, 50, 5, "merge sort")], 400, 200)
    assert label.x + estimate_text_width("merge sort", LEGEND_FONT_SIZE_PX) < 391


def test_labels_of_dots_close_together_do_not_cover_each_other() -> None:
    dots = [Dot(100 + 12 * i, 100 + 7 * (i % 2), 4, f"label {i}") for i in range(4)]
    labels = place_labels(dots, 400, 200)
    width = estimate_text_width("label 0", LEGEND_FONT_SIZE_PX)
    for first, second in combinations(labels, 2):
        assert abs(first.x - second.x) >= width - 1 or abs(first.y - second.y) >= LEGEND_FONT_SIZE_PX - 1


def test_the_place_of_labels_depends_on_nothing_else() -> None:
    dots = [Dot(10.0 * i, 20, 4, "x" * i) for i in range(9)]
    assert place_labels(dots, 100, 50) == place_labels(dots, 100, 50)
