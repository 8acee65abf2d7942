"""How much a statistic changes when one group of cells, such as a country or a cultural zone, is left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import complete_cases
from auditor.metrics.cell_statistics import Statistic
from auditor.metrics.jackknife_interval import MIN_UNITS
from auditor.metrics.unit_replicates import leave_one_out_sums

MAX_INFLUENCE = 0.8
"""Share of the jackknife variance of its kind above which a unit is named."""


class LeaveOutValue(NamedTuple):
    """A statistic without the cells of one group."""

    value: float
    group: str


class Influence(NamedTuple):
    """A unit on which nearly all variance of a statistic rests: its share, and the statistic without it."""

    unit: str
    share: float
    value_without: float


def leave_out_range(
    statistic: Statistic, scores: ArrayLike, truth: ArrayLike, groups: ArrayLike
) -> tuple[LeaveOutValue, LeaveOutValue] | None:
    """Find the smallest and the largest value of a statistic without one of several groups of cells.

    Args:
        statistic: PEARSON, MAE, BIAS or a similar one.
        scores, truth: shape (n,); cells with a nan on either side are left out.
        groups: shape (n,), the label of the cell's group.

    Returns:
        The two values with their groups; None for fewer than two groups, or where no value is defined.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    labels = np.asarray(groups, dtype=np.str_)[is_complete]
    names = np.unique(labels)
    if len(names) < 2:
        return None
    without = statistic.value(leave_one_out_sums(statistic.moments(x, y), labels))
    values = [
        LeaveOutValue(float(value), str(name)) for value, name in zip(without, names, strict=True) if np.isfinite(value)
    ]
    return (min(values), max(values)) if values else None


def find_influential_unit(
    statistic: Statistic, scores: ArrayLike, truth: ArrayLike, units: ArrayLike
) -> Influence | None:
    """The unit on which nearly all of a statistic's jackknife variance over one kind of unit rests, if there is one.

    The variance over n units is a sum of squared deviations, one for each unit. A unit with a share of that sum above
    0.8 is very different from all others: the interval then says little about units like the others. Two such units
    share the sum, and are not found.

    Args:
        statistic, scores, truth: as for `leave_out_range`.
        units: shape (n,), such as the country of each cell.

    Returns:
        None if no share is above 0.8, or for fewer than 5 units.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    labels = np.asarray(units, dtype=np.str_)[is_complete]
    names = np.unique(labels)
    if len(names) < MIN_UNITS:
        return None
    without = statistic.value(leave_one_out_sums(statistic.moments(x, y), labels))
    squares = (without - without.mean()) ** 2
    if not np.isfinite(squares).all() or squares.sum() <= 1e-24:
        return None
    shares = squares / squares.sum()
    largest = int(shares.argmax())
    if shares[largest] <= MAX_INFLUENCE:
        return None
    return Influence(str(names[largest]), float(shares[largest]), float(without[largest]))
