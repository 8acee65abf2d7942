"""Worlds of questions in several wordings: a wording shifts a model's answers, everywhere and on single topics.

The figures are those of the mean over as many wordings as were asked; truths are over wordings, countries and topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from benchmarks.coverage.worlds.design import Design, Floats, Indices

N_WORDINGS = 5
SURVEY_SDS = (0.25, 0.45, 0.15)
"""Of the effects of country, topic and cell on people's scores."""
ERROR_SDS = (0.15, 0.2, 0.15)
MEAN_ERROR = 0.1
WORDING_SDS = (0.15, 0.1, 0.1)
"""Of the effects of a wording: on all cells, on a topic, and on a cell, sampling noise included."""


@dataclass(frozen=True, eq=False)
class WordingSample:
    """One simulated audit; `scores` has shape (wordings, cells)."""

    country: Indices
    topic: Indices
    survey: Floats
    scores: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class WordingWorld:
    """A population of audits.

    Attributes:
        scale: multiplies the effects of wordings on all cells and on topics.
    """

    name: str
    scale: float

    def draw(self, design: Design, rng: np.random.Generator) -> WordingSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)

        def draw_sum(sds: tuple[float, float, float]) -> Floats:
            by_country = sds[0] * rng.normal(size=design.n_countries)
            by_topic = sds[1] * rng.normal(size=design.n_topics)
            return np.asarray(by_country[country] + by_topic[topic] + sds[2] * rng.normal(size=len(country)))

        survey = draw_sum(SURVEY_SDS)
        model = survey + MEAN_ERROR + draw_sum(ERROR_SDS)
        shift = self.scale * WORDING_SDS[0] * rng.normal(size=(N_WORDINGS, 1))
        by_topic = self.scale * WORDING_SDS[1] * rng.normal(size=(N_WORDINGS, design.n_topics))[:, topic]
        scores = model + shift + by_topic + WORDING_SDS[2] * rng.normal(size=(N_WORDINGS, len(country)))
        return WordingSample(country, topic, survey, scores, self._make_truths())

    def _make_truths(self) -> dict[str, float]:
        """By formulas: all effects are Gaussian."""
        error = sum(sd**2 for sd in ERROR_SDS)
        people = sum(sd**2 for sd in SURVEY_SDS)
        shift = (self.scale * WORDING_SDS[0]) ** 2
        within = (self.scale * WORDING_SDS[1]) ** 2 + WORDING_SDS[2] ** 2
        return {
            "bias over wordings": MEAN_ERROR,
            "mae over wordings": fold(MEAN_ERROR, (error + (shift + within) / N_WORDINGS) ** 0.5),
            "mae of one wording": fold(MEAN_ERROR, (error + shift + within) ** 0.5),
            "r over wordings": (people / (people + error + within / N_WORDINGS)) ** 0.5,
        }


def fold(mean: float, sd: float) -> float:
    """The mean of the absolute value of a normal variable."""
    z = mean / sd
    return float(2 * sd * norm.pdf(z) + mean * (1 - 2 * norm.cdf(-z)))


WORDING_WORLDS = (WordingWorld("wordings that shift answers", 1.0), WordingWorld("wordings that change nothing", 0.0))
WORDING_DESIGNS = (Design(12, 10), Design(17, 19), Design(55, 19))
