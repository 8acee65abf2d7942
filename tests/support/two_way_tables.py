"""Small tables of countries by topics with random country and topic effects, for tests of single statistics.

How often intervals cover the truth is the subject of `benchmarks.coverage`, which has worlds of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COUNTRY, TOPIC, CELL = 0.2, 0.3, 0.2
"""Standard deviations of the effects, on people's scores and on a model's error."""


class World:
    """One simulated table: survey scores, two models with equal error, and a third with half the error in one group."""

    def __init__(self, seed: int, countries: int, topics: int) -> None:
        self._rng, self._shape = np.random.default_rng(seed), (countries, topics)
        self.countries, self.topics = (i.ravel() for i in np.indices(self._shape))
        self.truth, first, second = (self._effects() for _ in range(3))
        self.group = self.countries < countries // 2
        self.first, self.second = self.truth + first, self.truth + second
        self.uneven = self.truth + np.where(self.group, first / 2, first)

    def _effects(self) -> Floats:
        n, m = self._shape
        parts = zip((COUNTRY, TOPIC, CELL), ((n, 1), (1, m), (n, m)), strict=True)
        total: Floats = np.sum([np.broadcast_to(s * self._rng.normal(size=z), (n, m)) for s, z in parts], axis=0)
        return total.ravel()
