"""Tables of countries by topics with known truth, in which both add something of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COUNTRY, TOPIC, CELL = 0.2, 0.3, 0.2
ERROR = float(np.sqrt(COUNTRY**2 + TOPIC**2 + CELL**2))
MEAN_ERROR = ERROR * float(np.sqrt(2 / np.pi))
"""Mean size of a normal error of that standard deviation."""


class World:
    """One draw: what people say, two models with errors of one size, and a third with half of it in the first group."""

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


TRUE = {"r": float(np.sqrt(0.5)), "MAE": MEAN_ERROR, "MAE gap": -MEAN_ERROR / 2, "MAE paired": 0.0}
