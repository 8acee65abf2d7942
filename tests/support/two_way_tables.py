"""Tables of countries by topics with random country and topic effects and known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.cell_statistics import MAE, PEARSON, TwoWayEstimate
from auditor.metrics.jackknife import crossed_jackknife, gap_jackknife, paired_jackknife
from auditor.metrics.max_gap import MaxGapEstimate, widest_gap

Floats = NDArray[np.float64]

COUNTRY, TOPIC, CELL = 0.2, 0.3, 0.2
ERROR = float(np.sqrt(COUNTRY**2 + TOPIC**2 + CELL**2))
MEAN_ERROR = ERROR * float(np.sqrt(2 / np.pi))
"""Mean absolute value of a normal error with standard deviation ERROR."""


class World:
    """One simulated table: survey scores, two models with equal error, and a third with half the error in one group."""

    def __init__(self, seed: int, countries: int, topics: int) -> None:
        self._rng, self._shape = np.random.default_rng(seed), (countries, topics)
        self.countries, self.topics = (i.ravel() for i in np.indices(self._shape))
        self.truth, first, second = (self._effects() for _ in range(3))
        self.group = self.countries < countries // 2
        regions = 2 * max(1, min(4, countries // 10))
        self.regions = np.char.add("region ", (self.countries * regions // countries).astype(np.str_))
        """Regions of five or more countries; the first half of the countries is the group."""
        self.first, self.second = self.truth + first, self.truth + second
        self.uneven = self.truth + np.where(self.group, first / 2, first)

    def _effects(self) -> Floats:
        n, m = self._shape
        parts = zip((COUNTRY, TOPIC, CELL), ((n, 1), (1, m), (n, m)), strict=True)
        total: Floats = np.sum([np.broadcast_to(s * self._rng.normal(size=z), (n, m)) for s, z in parts], axis=0)
        return total.ravel()

    def jackknife(self) -> dict[str, TwoWayEstimate]:
        """The estimates that reports give, by the keys of TRUE."""
        at = (self.countries, self.topics)
        return {
            "r": crossed_jackknife(PEARSON, self.first, self.truth, *at),
            "MAE": crossed_jackknife(MAE, self.first, self.truth, *at),
            "MAE gap": gap_jackknife(MAE, self.uneven, self.truth, *at, self.group),
            "r paired": paired_jackknife(PEARSON, self.first, self.second, self.truth, *at),
            "MAE paired": paired_jackknife(MAE, self.first, self.second, self.truth, *at),
            "widest of none": widest_gap(MAE, self.first, self.truth, *at, self.regions).interval,
            "widest": self._subtract_true_gap(widest_gap(MAE, self.uneven, self.truth, *at, self.regions)),
        }

    def _subtract_true_gap(self, estimate: MaxGapEstimate) -> TwoWayEstimate:
        """The gap's interval minus the true gap of the two selected regions."""
        in_group = [bool(self.group[self.regions == name].all()) for name in (estimate.low_group, estimate.high_group)]
        true_gap, gap = (in_group[0] - in_group[1]) * MEAN_ERROR / 2, estimate.interval
        return replace(gap, low=None if gap.low is None else gap.low - true_gap, high=(gap.high or 0.0) - true_gap)


TRUE = {
    "r": float(np.sqrt(0.5)),
    "MAE": MEAN_ERROR,
    "MAE gap": -MEAN_ERROR / 2,
    "r paired": 0.0,
    "MAE paired": 0.0,
    "widest of none": 0.0,
    "widest": 0.0,
}
"""True values that the intervals should cover; for `widest` the true gap of the selected pair is subtracted."""
