"""Colours are those of the page, and texts are cleaned, measured and cut off."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from auditor.reports.charts import theme
from auditor.reports.charts.theme import LIGHT_COLORS, clean_text, estimate_text_width, truncate_to_width

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
