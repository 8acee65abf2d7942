"""Tables of country-topic cells whose countries and topics are resampled: the base of all two-way intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from auditor.metrics._complete_cases import Floats


@dataclass(frozen=True, slots=True, eq=False)
class UnitLabels:
    """Labels of the units that the cells belong to, with the name of that kind of unit.

    Functions of `auditor.metrics` take them in the place of countries. Plain labels are those of countries.

    Attributes:
        labels: shape (n,), of any kind.
        unit: a key of `auditor.metrics.estimate.PLURAL_BY_UNIT`: `country`, or `zone` for cultural zones of countries.
    """

    labels: NDArray[np.generic]
    unit: str = "country"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[np.generic]:
        """The labels alone."""
        return np.asarray(self.labels, dtype=dtype)

    def __getitem__(self, selection: NDArray[np.bool_]) -> UnitLabels:
        """The labels of some of the cells."""
        return UnitLabels(self.labels[selection], self.unit)


def select_labels(labels: ArrayLike | UnitLabels, included: NDArray[np.bool_]) -> NDArray[np.generic] | UnitLabels:
    """The labels of the included cells.

    Raises:
        ValueError: there is not one label a cell.
    """
    values = labels if isinstance(labels, UnitLabels) else np.asarray(labels)
    if np.shape(values) != included.shape:
        raise ValueError(f"countries and topics must have the shape {included.shape}, as the scores have")
    return values[included]


@dataclass(frozen=True, slots=True)
class TwoWayTable:
    """Positions of the cells in a table of countries (rows) and topics (columns).

    Attributes:
        row_index, column_index: shape (n,), the country and the topic of each cell.
        row_unit: what the rows are: `country`, or `zone` where countries are clustered by cultural zone.
    """

    row_index: NDArray[np.intp]
    column_index: NDArray[np.intp]
    strata: tuple[NDArray[np.intp], ...]
    """Row numbers of the countries in each stratum (group of countries that are resampled among themselves).

    There is one array per stratum; every country is in one.
    """
    n_topics: int
    row_unit: str = "country"

    @property
    def n_countries(self) -> int:
        """Number of countries in all strata."""
        return sum(map(len, self.strata))

    def to_grid(self, moments: Floats) -> Floats:
        """Lay out the cells' moments, shape (n, k), as (countries, topics, k); cells that do not exist are 0.

        Moments are the k numbers per cell whose sums over cells determine a statistic (see `Statistic.moments`).
        """
        grid = np.zeros((self.n_countries, self.n_topics, moments.shape[1]))
        np.add.at(grid, (self.row_index, self.column_index), moments)
        return grid


def build_two_way_table(
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
    included: NDArray[np.bool_],
    strata_masks: Sequence[NDArray[np.bool_]] = (),
) -> TwoWayTable:
    """Build the table of the included cells, with countries and topics numbered in sorted order.

    Args:
        countries, topics: shape (n,), labels of any kind; `UnitLabels` say what the rows are.
        included: shape (n,), the cells to use.
        strata_masks: one mask per group of countries, shape (n,), of its cells; together all included cells are in
            one. Without masks all countries are one stratum.

    Raises:
        ValueError: shapes differ, or a country is in two groups.
    """
    (country_names, country_index), (topic_names, topic_index) = (
        np.unique(np.asarray(select_labels(labels, included)), return_inverse=True) for labels in (countries, topics)
    )
    unit = countries.unit if isinstance(countries, UnitLabels) else "country"
    if not strata_masks:
        return TwoWayTable(country_index, topic_index, (np.arange(len(country_names)),), len(topic_names), unit)
    strata = tuple(np.unique(country_index[mask[included]]) for mask in strata_masks)
    members, n_strata = np.unique(np.concatenate(strata), return_counts=True)
    if (n_strata > 1).any():
        raise ValueError(
            f"a country must be in one group only, but {country_names[members[n_strata > 1][0]]} is in both"
        )
    return TwoWayTable(country_index, topic_index, strata, len(topic_names), unit)
