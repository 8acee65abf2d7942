"""A statistic of sums over rows without each unit and without each cell: the input of the jackknife interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._unit_counts import cell_index, index_units
from auditor.metrics.jackknife_interval import leave_one_out_sums


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
