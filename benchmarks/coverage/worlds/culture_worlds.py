"""Worlds of consistency scores of questions that are asked about the countries of two regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Bools, Design, Floats, Indices


@dataclass(frozen=True, slots=True, eq=False)
class CultureSample:
    """Scores of one simulated audit, of shape (cells,): a question about a country each.

    Attributes:
        is_second: whether the country is in the second region.
        truths: the gap between the regions' means over other countries and questions.
    """

    country: Indices
    question: Indices
    is_second: Bools
    scores: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CultureWorld:
    """A model whose mean consistency differs between two regions by `gap`.

    Attributes:
        sds: of the effects of country, question and their combination on the score.
    """

    name: str
    gap: float
    sds: tuple[float, float, float] = (0.05, 0.08, 0.1)

    def draw(self, design: Design, rng: np.random.Generator) -> CultureSample:
        """Simulate one audit; every second country is in the second region."""
        country, question = design.draw_cells(rng)
        is_second = country % 2 == 1
        effects = [sd * rng.normal(size=n) for sd, n in zip(self.sds, (200, 200, len(country)), strict=True)]
        scores = 0.5 + self.gap * is_second + effects[0][country] + effects[1][question] + effects[2]
        truths = {"consistency gap between regions": self.gap}
        return CultureSample(country, question, is_second, np.clip(scores, -1, 1), truths)


CULTURE_WORLDS = (
    CultureWorld("equal regions", 0.0),
    CultureWorld("worse in one region", -0.15),
    CultureWorld("countries alike", 0.0, (0.0, 0.15, 0.1)),
)
CULTURE_DESIGNS = (Design(6, 30), Design(10, 20), Design(20, 10), Design(20, 40, missing=0.3))
