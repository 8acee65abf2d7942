"""Worlds of conversations in which users state views: a model moves a planted share of the way to each view.

A cell has a first score, a view for acceptance and one against it of strengths drawn by lot, and scores after both
views and in a neutral arm, with noise, rounded to two decimals and clipped to the scale. After the pressure ended half
of the move is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from benchmarks.coverage.worlds.design import Bools, Design, Floats, Indices

STRENGTHS = np.array([0.4, 0.6, 0.8])
NOISE = 0.1
"""Standard deviation of a score given again."""
SLOPE_SDS = (0.06, 0.06, 0.06)
"""Standard deviations of the effects of country, topic and cell on the slope."""
FIRST_SDS = (0.15, 0.4, 0.15)
"""The same on the first score."""
N_REGIONS = 2
N_POPULATION, N_REPEATS = 200, 5
"""Countries and topics of the population that the truth of flips is computed from, and how often it is drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class PressureSample:
    """One simulated audit of one model.

    Attributes:
        first: shape (cells,).
        views: shape (cells, 2), for and against.
        scores: shape (cells, 3, turns): arms for, against and neutral.
        released: shape (cells, 3).
        names_country: shape (cells,), by lot.
        region: shape (cells,), number of the country's region.
    """

    country: Indices
    topic: Indices
    first: Floats
    views: Floats
    scores: Floats
    released: Floats
    names_country: Bools
    region: Indices
    truths: Mapping[str, float] = field(repr=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class PressureWorld:
    """A population of audits of one model.

    Attributes:
        slope: planted share of the way to a view.
        in_one_region: whether countries outside the first region have a slope of 0, without any effects.
        slope_sds: standard deviations of the effects of country, topic and cell on the slope.
        turns: how often users state their views.
    """

    slope: float
    in_one_region: bool = False
    slope_sds: tuple[float, float, float] = SLOPE_SDS
    turns: int = 1

    @property
    def name(self) -> str:
        """The planted slope, and where it is."""
        place = " in one region" if self.in_one_region else ""
        return f"slope {self.slope:g}{place}" + (" everywhere alike" if not any(self.slope_sds) else "")

    def draw(self, design: Design, rng: np.random.Generator) -> PressureSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        return self.draw_cells(country, topic, design.n_countries, design.n_topics, rng, self.find_truths())

    def draw_cells(
        self,
        country: Indices,
        topic: Indices,
        n_countries: int,
        n_topics: int,
        rng: np.random.Generator,
        truths: Mapping[str, float],
    ) -> PressureSample:
        """Simulate the conversations of some cells."""
        n = len(country)
        region = country % N_REGIONS
        effects = [
            sds[0] * rng.normal(size=n_countries)[country]
            + sds[1] * rng.normal(size=n_topics)[topic]
            + sds[2] * rng.normal(size=n)
            for sds in (FIRST_SDS, self.slope_sds)
        ]
        first = _to_scores(effects[0])
        slopes = self.slope + effects[1]
        if self.in_one_region:
            slopes = np.where(region == 0, slopes, 0.0)
        views = np.stack([rng.choice(STRENGTHS, n), -rng.choice(STRENGTHS, n)], axis=1)
        moves = np.concatenate([slopes[:, None] * (views - first[:, None]), np.zeros((n, 1))], axis=1)
        noise = NOISE * rng.normal(size=(n, 3, self.turns + 1))
        scores = _to_scores(first[:, None, None] + moves[:, :, None] + noise[:, :, :-1])
        released = _to_scores(first[:, None] + moves / 2 + noise[:, :, -1])
        return PressureSample(country, topic, first, views, scores, released, rng.random(n) < 0.5, region, truths)

    def find_truths(self) -> Mapping[str, float]:
        """The true figures of the population."""
        if self.in_one_region:  # over all countries its slopes are no sample of one population
            return {"difference of slopes by region": self.slope}
        return {
            "slope on views": self.slope,
            "slope on views after the pressure": self.slope / 2,
            "slope that returns": self.slope / 2,
            "difference of slopes by region": 0.0,
            "difference of slopes by stated country": 0.0,
            "flips beyond the neutral arm": _measure_flips(self),
        }


@cache
def _measure_flips(world: PressureWorld) -> float:
    """Share of cells that flip under an opposing view minus that in the neutral arm, over a large population."""
    rng = np.random.default_rng(1)
    country, topic = (index.ravel() for index in np.indices((N_POPULATION, N_POPULATION)))
    shares = []
    for _ in range(N_REPEATS):
        sample = world.draw_cells(country, topic, N_POPULATION, N_POPULATION, rng, {})
        side = np.sign(sample.first)
        opposing = np.where(side > 0, 1, 0)
        opposed, neutral = sample.scores[np.arange(len(side)), opposing], sample.scores[:, 2]
        flips = [(np.sign(arm) == -side[:, None]).any(axis=1)[side != 0].mean() for arm in (opposed, neutral)]
        shares.append(flips[0] - flips[1])
    return float(np.mean(shares))


def _to_scores(values: Floats) -> Floats:
    """Scores with two decimals on the scale."""
    scores: Floats = np.clip(np.round(values, 2), -1.0, 1.0)
    return scores


PRESSURE_WORLDS = (
    PressureWorld(0.0),
    PressureWorld(0.0, slope_sds=(0.0, 0.0, 0.0)),
    PressureWorld(0.3),
    PressureWorld(1.0),
    PressureWorld(1.0, in_one_region=True),
)
