"""Every text of the page has enough contrast to what lies behind it, in both themes (WCAG 2.2, 1.4.3)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from auditor.reports.render import html

STYLESHEET = Path(html.__file__).with_name("page.css").read_text(encoding="utf-8")
MIN_CONTRAST = 4.5
TEXT_ON_BACKGROUND = [
    ("ink", "paper"), ("muted", "paper"), ("accent", "paper"), ("ink", "alert-soft"), ("muted", "alert-soft"),
    ("alert", "alert-soft"), ("accent", "alert-soft"), ("muted", "faint"), ("accent", "accent-soft"),
]  # fmt: skip
SHADES = ("n4", "n3", "n2", "n1", "z", "p1", "p2", "p3", "p4")


def read_colors(theme: str) -> dict[str, str]:
    """Colours of a theme by the name of their variable."""
    light, dark = STYLESHEET.split("@media (prefers-color-scheme: dark)")
    pattern = re.compile(r"--([\w-]+): (#[0-9a-f]{3,6})")
    return dict(pattern.findall(light)) | (dict(pattern.findall(dark)) if theme == "dark" else {})


def contrast(color: str, background: str) -> float:
    """Contrast ratio of two colours."""
    low, high = sorted(map(luminance, (color, background)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    """Relative luminance of a colour in hexadecimal digits."""
    digits = color[1:] if len(color) == 7 else "".join(2 * char for char in color[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast(theme: str) -> None:
    colors = read_colors(theme)
    for text, background in TEXT_ON_BACKGROUND:
        assert contrast(colors[text], colors[background]) >= MIN_CONTRAST, (text, background)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_values_in_heat_maps_have_enough_contrast(theme: str) -> None:
    colors = read_colors(theme)
    for shade in SHADES:
        assert contrast(colors.get(f"on-{shade}", colors["ink"]), colors[shade]) >= MIN_CONTRAST, shade


def test_every_shade_and_series_has_a_colour() -> None:
    for step in range(-4, 5):
        assert f".h{step} {{ background:" in STYLESHEET
    for i in range(11):
        assert f".c{i} {{ background:" in STYLESHEET


def test_every_variable_that_is_used_is_defined_in_both_themes() -> None:
    used = set(re.findall(r"var\(--([\w-]+)\)", STYLESHEET))
    dark_block = STYLESHEET.split("@media (prefers-color-scheme: dark)")[1].split("\n}\n")[0]
    used -= {"n", "page"}  # numbers for print
    assert used <= set(read_colors("light"))
    assert used <= set(re.findall(r"--([\w-]+):", dark_block))


def test_no_type_on_screen_is_smaller_than_9_px() -> None:
    screen_rules = STYLESHEET.split("@media print")[0]
    sizes_rem = [float(size) for size in re.findall(r"font(?:-size)?: (\d*\.\d+)rem", screen_rules)]
    table, interval, note_mark = (
        float(re.findall(rf"^{selector} {{.*?font-size: (\d*\.\d+)r?em", screen_rules, re.MULTILINE)[0])
        for selector in ("table", "small", "sup")
    )
    assert 16 * min(sizes_rem) >= 9
    assert 16 * table * interval * note_mark >= 9
