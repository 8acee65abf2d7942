"""Worlds of counts: hits among the cases of a cell, such as refusals among a cell's samples, in four rows of a figure.

The log odds of a hit have effects of country, topic and cell, which the rows (models or judges) share in part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from benchmarks.coverage.worlds.design import Design, Floats, Indices
from benchmarks.coverage.worlds.effects import EffectKind, draw_effects

N_ROWS = 4
SHARED = 0.5
"""Share of the variance of an effect that all rows have in common."""
MEAN_CASES = 5


@dataclass(frozen=True, slots=True, eq=False)
class ShareSample:
    """Counts of one simulated audit, for cells of shape (cells,).

    Attributes:
        hits: shape (rows, cells); totals: shape (cells,).
        means: a score in [0, 1] of each cell, with the same effects as the first row's hits.
        truths: `share` and `cell mean` over other countries and topics, and `share of these cells`, of the first row.
    """

    country: Indices
    topic: Indices
    hits: Floats
    totals: Floats
    means: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ShareWorld:
    """A population of audits with shares.

    Attributes:
        share: the true share of hits, over the population of countries and topics.
        sds: of the effects of country, topic and cell on the log odds.
    """

    name: str
    share: float
    sds: tuple[float, float, float] = (0.5, 0.8, 0.4)
    kind: EffectKind = "gaussian"

    def draw(self, design: Design, rng: np.random.Generator) -> ShareSample:
        """Simulate one audit."""
        country, topic = design.draw_cells(rng)
        common = self._draw_log_odds(design, rng, country, topic)
        by_row = np.stack([self._draw_log_odds(design, rng, country, topic) for _ in range(N_ROWS)])
        log_odds = SHARED**0.5 * common + (1 - SHARED) ** 0.5 * by_row
        p = 1 / (1 + np.exp(-(log_odds + self.level)))
        totals = design.draw_case_counts(rng, len(country), MEAN_CASES)
        hits = rng.binomial(totals, p).astype(np.float64)
        of_these_cells = float((p[0] * totals).sum() / totals.sum())
        truths = {"share": self.share, "share of these cells": of_these_cells, "cell mean": self.share}
        means = rng.beta(5 * p[0], 5 * (1 - p[0]))
        return ShareSample(country, topic, hits, totals.astype(np.float64), means, truths)

    def _draw_log_odds(self, design: Design, rng: np.random.Generator, country: Indices, topic: Indices) -> Floats:
        """Sums of the effects in each cell, shape (cells,)."""
        by_country = self.sds[0] * draw_effects(self.kind, rng, design.n_countries)
        by_topic = self.sds[1] * draw_effects(self.kind, rng, max(1, design.n_topics))
        return np.asarray(by_country[country] + by_topic[topic] + self.sds[2] * rng.normal(size=len(country)))

    @property
    def level(self) -> float:
        """The log odds at which the mean probability is `share`: all effects add up to a Gaussian one."""
        return solve_level(self.share, sum(sd**2 for sd in self.sds) ** 0.5)


def solve_level(share: float, sd: float) -> float:
    """The mean of Gaussian log odds whose mean probability is `share`, by quadrature over the Gaussian."""
    if (share, sd) not in _LEVELS:
        nodes, weights = np.polynomial.hermite_e.hermegauss(120)

        def excess(level: float) -> float:
            return float((weights / (1 + np.exp(-(level + sd * nodes)))).sum() / weights.sum()) - share

        _LEVELS[share, sd] = float(brentq(excess, -30, 30))
    return _LEVELS[share, sd]


_LEVELS: dict[tuple[float, float], float] = {}

MODERATE = ShareWorld("moderate", 0.3)
RARE = ShareWorld("rare", 0.011, (0.5, 2.0, 0.5))
INDEPENDENT = ShareWorld("independent cases", 0.2, (0.0, 0.0, 0.0))
SHARE_ZONES = ShareWorld("zones", 0.3, kind="zones")
SHARE_WORLDS = (MODERATE, RARE, INDEPENDENT, SHARE_ZONES)
