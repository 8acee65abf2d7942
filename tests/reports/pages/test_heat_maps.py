"""The shade of a heat map's cell follows from its value."""

from __future__ import annotations

import pytest

from auditor.reports.pages.heat_maps import shade_class


@pytest.mark.parametrize(
    ("difference", "name"),
    [(0.0, "h0"), (0.09, "h0"), (0.1, "h1"), (-0.1, "h-1"), (0.69, "h3"), (0.7, "h4"), (-2.0, "h-4"), (-0.05, "h0")],
)
def test_shade_classes_follow_the_difference(difference: float, name: str) -> None:
    assert shade_class(difference) == name
