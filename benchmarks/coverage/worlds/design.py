"""Designs of a simulated audit: how many countries and topics it has, and which cells are measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Design:
    """The size of a simulated audit.

    Attributes:
        missing: share of cells that are missing at random.
        is_uneven: topics are measured in 40 to 100% of the countries, and cells have from 1 to about 20 cases.
    """

    n_countries: int
    n_topics: int
    missing: float = 0.0
    is_uneven: bool = False

    @property
    def label(self) -> str:
        """The design in words, as in docs/coverage.md."""
        size = f"{self.n_countries} × {self.n_topics}"
        missing = f", {self.missing:.0%} missing" if self.missing else ""
        return f"{size}{missing}{', unequal cells' if self.is_uneven else ''}"

    @property
    def smaller_side(self) -> int:
        """The smaller of the numbers of countries and topics."""
        return min(self.n_countries, self.n_topics)

    def draw_cells(self, rng: np.random.Generator) -> tuple[Indices, Indices]:
        """Country and topic of each measured cell, shape (cells,) each."""
        country, topic = (index.ravel() for index in np.indices((self.n_countries, self.n_topics)))
        measured_share = rng.uniform(0.4, 1.0, self.n_topics)[topic] if self.is_uneven else 1.0 - self.missing
        is_measured = rng.random(len(country)) < measured_share
        return country[is_measured], topic[is_measured]

    def draw_case_counts(self, rng: np.random.Generator, n_cells: int, mean: int) -> Indices:
        """Number of cases, such as traces, in each cell, shape (cells,): all `mean`, or geometric with that mean."""
        if not self.is_uneven:
            return np.full(n_cells, mean, dtype=np.intp)
        return rng.geometric(1 / mean, n_cells).astype(np.intp)


SIZES = (Design(5, 5), Design(10, 8), Design(20, 10), Design(55, 19))
"""The four sizes of issue 23."""
DESIGNS = (
    *SIZES,
    Design(20, 10, is_uneven=True),
    Design(20, 10, missing=0.1),
    Design(20, 10, missing=0.3),
)
"""All designs: the sizes, unequal cells, and 10 and 30% of the cells missing at random."""
