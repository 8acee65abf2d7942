"""Scatter plot of a model's scores against people's scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.reports.charts.theme import VegaLiteSpec

MAX_POINTS = 2000
"""With more points than this, squares are coloured by their number of points instead."""
MAX_TOOLTIPS_PER_PAGE = 4000
"""With more points in all scatter plots of a page, they are drawn without tooltips, to keep the page small."""


@dataclass(frozen=True, slots=True)
class ScorePair:
    """People's and the model's score of one cell, both in [-1, 1].

    Attributes:
        tooltip: names the cell, such as "Japan, divorce"; the scores are appended. Empty for no tooltip.
    """

    people: float
    model: float
    tooltip: str = ""


def scatter_plot(pairs: Sequence[ScorePair]) -> VegaLiteSpec:
    """Specify a plot of the model's scores (up) against people's (right), with the diagonal of equal scores."""
    raise NotImplementedError
