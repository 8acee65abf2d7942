"""Tables of countries and topics, both drawn anew: what every interval over the two rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats


@dataclass(frozen=True, slots=True)
class TwoWayTable:
    """Where the cells lie: the row and column of each, and which rows stand for one another."""

    row_index: NDArray[np.intp]
    column_index: NDArray[np.intp]
    strata: tuple[NDArray[np.intp], ...]
    """Rows, the countries, that are drawn among themselves."""
    n_topics: int

    @property
    def n_countries(self) -> int:
        return sum(map(len, self.strata))

    def to_grid(self, moments: Floats) -> Floats:
        """Moments, shape (n, k), laid out as (countries, topics, k)."""
        cells = np.zeros((self.n_countries, self.n_topics, moments.shape[1]))
        np.add.at(cells, (self.row_index, self.column_index), moments)
        return cells

    def draw_weights(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """How often each country and each topic counts, shapes (size, countries) and (size, topics)."""
        rows = np.empty((size, self.n_countries))
        for members in self.strata:
            rows[:, members] = _draw_multinomial_weights(rng, len(members), size)
        return rows, _draw_multinomial_weights(rng, self.n_topics, size)


def build_two_way_table(
    countries: ArrayLike, topics: ArrayLike, included: NDArray[np.bool_], strata_masks: Sequence[NDArray[np.bool_]] = ()
) -> TwoWayTable:
    """The table of the cells that are kept.

    Args:
        countries, topics: shape (n,), labels of any kind.
        keep: shape (n,).
        groups: shape (n,) each, the cells of one group of countries; together all that are kept. None is one group.

    Raises:
        ValueError: shapes differ, or a country is in two groups.
    """
    labels = [np.asarray(c) for c in (countries, topics)]
    if any(c.shape != included.shape for c in labels):
        raise ValueError(f"countries and topics must have the shape {included.shape}, as the scores have")
    (names, row), (subjects, column) = (np.unique(c[included], return_inverse=True) for c in labels)
    if not strata_masks:
        return TwoWayTable(row, column, (np.arange(len(names)),), len(subjects))
    strata = tuple(np.unique(row[group[included]]) for group in strata_masks)
    members, times = np.unique(np.concatenate(strata), return_counts=True)
    if (times > 1).any():
        raise ValueError(f"a country must be in one group only, but {names[members[times > 1][0]]} is in both")
    return TwoWayTable(row, column, strata, len(subjects))


def weighted_sums(grid: Floats, row_weights: Floats, column_weights: Floats) -> Floats:
    """Sums over a grid, shape (countries, topics, k), in which a cell weighs its row's times its column's weight."""
    n, topics, k = grid.shape
    by_topic = (row_weights @ grid.reshape(n, topics * k)).reshape(len(row_weights), topics, k)
    sums: Floats = np.einsum("btk,bt->bk", by_topic, column_weights)
    return sums


def _draw_multinomial_weights(rng: np.random.Generator, n: int, size: int) -> Floats:
    return rng.multinomial(n, np.full(n, 1 / n), size).astype(np.float64)
