"""Worlds of lost samples: the lower a sample's score, the more often the model refuses to give it.

The scores are those of the bounded world. The truth is that of all planned samples, lost ones included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Design, Floats, Indices
from benchmarks.coverage.worlds.score_worlds import BOUNDED, SCORE_TRUTHS

N_PLANNED = 5


@dataclass(frozen=True, slots=True)
class LostSample:
    """One simulated audit, a value per cell.

    Attributes:
        scores: mean of the usable samples; nan where none is usable.
        usable, planned: numbers of samples.
    """

    country: Indices
    topic: Indices
    survey: Floats
    scores: Floats
    usable: Floats
    planned: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LostWorld:
    """A population of audits with refusals.

    Attributes:
        level, slope: of the log odds of a refusal, at a score of 0 and per unit of the score.
    """

    name: str
    level: float
    slope: float

    def draw(self, design: Design, rng: np.random.Generator) -> LostSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        survey, full_scores, _ = BOUNDED.draw_scores(rng, country, topic)
        samples = _split_mean(rng, full_scores)
        is_lost = rng.random(samples.shape) < 1 / (1 + np.exp(-(self.level + self.slope * samples)))
        usable = (~is_lost).sum(axis=0)
        total = np.where(is_lost, 0.0, samples).sum(axis=0)
        scores = np.where(usable > 0, total / np.maximum(usable, 1), np.nan)
        truths = {f"worst-case {name}": SCORE_TRUTHS["bounded"][name] for name in ("r", "mae", "bias")}
        planned = np.full(len(country), float(N_PLANNED))
        return LostSample(country, topic, survey, scores, usable.astype(np.float64), planned, truths)


def _split_mean(rng: np.random.Generator, means: Floats) -> Floats:
    """Five samples in [-1, 1] with these means, shape (5, cells): symmetric around the mean, as far as they can be."""
    room = np.minimum(1 - means, 1 + means)
    deviations = rng.uniform(-0.5, 0.5, (N_PLANNED, len(means)))
    centred = deviations - deviations.mean(axis=0)
    return np.asarray(means + room * centred)


LOST_WORLDS = (
    LostWorld("few refusals", -2.7, -1.0),
    LostWorld("many refusals", -1.0, -3.0),
    LostWorld("one-sided refusals", 0.0, -8.0),
)
