"""Statistics without each unit: what is resampled for an interval, and how.

A unit, such as a country, is left out with all its rows; of two kinds of units, so is each combination, a cell. These
replicates are what `auditor.metrics.jackknife_interval` makes an interval of. Three schemes compute them:

- `replicate_over_units`, for a statistic of sums over rows, which costs a few subtractions a unit;
- `recompute_without_units`, for any other statistic;
- `auditor.metrics.jackknife.statistic_replicates`, for a statistic of the cells of a table of countries and topics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._unit_counts import cell_index, index_units


class UnitReplicates(NamedTuple):
    """A statistic with units left out in turn, as `estimate_from_replicates` takes it.

    Attributes:
        units: for each kind of unit, the statistic without each of its units.
        cells: of two kinds of units, the statistic without each combination; None for one kind.
    """

    units: dict[str, Floats]
    cells: Floats | None

    def minus(self, other: UnitReplicates) -> UnitReplicates:
        """The replicates of the difference of two statistics of the same rows."""
        cells = None if self.cells is None or other.cells is None else self.cells - other.cells
        return UnitReplicates({unit: values - other.units[unit] for unit, values in self.units.items()}, cells)


def replicate_over_units(
    moments: Floats, value: Callable[[Floats], Floats], units: Mapping[str, ArrayLike]
) -> UnitReplicates:
    """Compute a statistic without each unit and each cell.

    Args:
        moments: shape (n, k), what is summed over rows.
        value: from sums, shape (replicates, k), to the statistic, shape (replicates,), nan where undefined.
        units: for each of one or two kinds of units, such as `country`, the unit of each row, shape (n,).

    Raises:
        ValueError: labels of another shape.
    """
    unit_index = index_units(units, np.ones(len(moments), dtype=np.bool_))
    replicates = {unit: value(leave_one_out_sums(moments, labels)) for unit, labels in unit_index.items()}
    cells = value(leave_one_out_sums(moments, cell_index(unit_index))) if len(unit_index) > 1 else None
    return UnitReplicates(replicates, cells)


def leave_one_out_sums(moments: Floats, labels: ArrayLike) -> Floats:
    """Sums of the observations' moments without each unit, in the sorted order of the labels.

    Args:
        moments: shape (n, k), numbers per observation whose sums determine a statistic.
        labels: shape (n,), the unit of each observation, of any kind.

    Returns:
        Shape (units, k).
    """
    unit_index = np.unique(np.asarray(labels), return_inverse=True)[1]
    n_units = int(unit_index.max(initial=-1)) + 1
    by_unit = np.stack([np.bincount(unit_index, column, minlength=n_units) for column in moments.T], axis=1)
    left_out: Floats = moments.sum(axis=0) - by_unit
    return left_out


def recompute_without_units(statistic: Callable[[NDArray[np.bool_]], ArrayLike], labels: ArrayLike) -> Floats:
    """Compute a statistic anew without each unit, in the sorted order of the labels.

    Args:
        statistic: from the mask of the included rows, shape (n,), to one or several figures.
        labels: shape (n,), the unit of each row.

    Returns:
        Shape (units,), or (units, figures).
    """
    unit_index = np.unique(np.asarray(labels), return_inverse=True)[1]
    return np.array([statistic(unit_index != unit) for unit in range(int(unit_index.max(initial=-1)) + 1)])
