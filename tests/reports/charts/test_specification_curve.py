"""Specification curves show each design of each model with its interval and levels, at both widths."""

from __future__ import annotations

import pytest

from auditor.reports.charts.specification_curve import Curve, CurvePoint, specification_curves
from auditor.reports.charts.theme import RULE, SERIES_COLORS
from tests.support.drawn_figures import draw, texts_of, tooltips_of

FACTORS = [("direction", ["low end first", "high end first"]), ("wording", ["1", "2", "3"])]
CURVES = [
    Curve(
        model,
        [
            CurvePoint("the audit’s design", 0.2, 0.1, 0.3, (0, 0), is_audit=True),
            CurvePoint("run 3", 0.25, None, None, (1, 2)),
            CurvePoint("run 1", 0.4, 0.3, 0.6, (1, 1)),
        ],
    )
    for model in ("oak", "ash")
]


@pytest.mark.parametrize("is_narrow", [False, True])
def test_every_design_is_drawn_with_its_levels(is_narrow: bool) -> None:
    svg = draw(specification_curves(CURVES, FACTORS, is_narrow=is_narrow))
    assert tooltips_of(svg)[:3] == [
        "oak, the audit’s design: 0.20 (0.10 to 0.30)",
        "oak, run 3: 0.25",
        "oak, run 1: 0.40 (0.30 to 0.60)",
    ]
    texts = texts_of(svg)
    assert {"oak", "ash", "direction", "wording", "3"} <= set(texts)
    assert texts.count("low end first") == (1 if is_narrow else 2)
    fills = [path.get("fill") for path in svg.iter("path") if path.get("fill") in (RULE, *SERIES_COLORS[:2])]
    # Six squares a model and two dots; the key has five levels, once or for each model.
    n_keys = 1 if is_narrow else 2
    assert fills.count(RULE) == 2 * 2 + 2 * n_keys
    assert fills.count(SERIES_COLORS[1]) == 2 + n_keys


def test_a_single_design_and_equal_errors_are_drawn() -> None:
    points = [CurvePoint("run 0", 0.3, None, None, (0, 0))]
    assert len(tooltips_of(draw(specification_curves([Curve("oak", points)], FACTORS)))) == 1


def test_a_plot_for_a_phone_is_narrower_and_has_the_key_below() -> None:
    wide, narrow = (specification_curves(CURVES, FACTORS, is_narrow=is_narrow) for is_narrow in (False, True))
    assert narrow["width"] < wide["width"]  # type: ignore[operator]
    assert narrow["height"] > wide["height"]  # type: ignore[operator]
