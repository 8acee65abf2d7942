"""How much a statistic changes when one group of cells, such as the countries of a cultural zone, is left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import complete_cases
from auditor.metrics.cell_statistics import Statistic
from auditor.metrics.unit_replicates import leave_one_out_sums


class LeaveOutValue(NamedTuple):
    """A statistic without the cells of one group."""

    value: float
    group: str


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
