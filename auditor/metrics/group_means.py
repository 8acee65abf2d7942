"""The difference of the means of two groups of units, such as questions about the countries of two regions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife_interval import jackknife_interval
from auditor.metrics.unit_means import Labels
from auditor.metrics.unit_replicates import replicate_over_units

MIN_COUNTRIES = 5
"""Fewest countries of both groups together, two in each, that are resampled; with fewer, only questions are."""


def group_mean_difference(
    values: ArrayLike, is_second: ArrayLike, units: Labels, *, bounds: tuple[float, float]
) -> Tested:
    """The mean of the second group minus that of the first, with an interval over other countries and questions.

    Args:
        values: shape (n,), one for each question about a country; those with a nan are left out.
        is_second: shape (n,), whether the country is in the second group.
        units: `country` and `question` of each value. A question may be asked about several countries.
        bounds: smallest and largest possible difference.

    Returns:
        With fewer than five countries, or one in a group, the interval is for these countries: only questions are
        resampled, as `resampled` says. `n` counts values.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (present,), is_present = complete_cases(values)
    second = np.asarray(is_second, dtype=np.float64)[is_present]
    labels = {unit: np.asarray(names)[is_present] for unit, names in units.items()}
    moments = np.stack([present * (1 - second), 1 - second, present * second, second], axis=1)
    value = float(_difference(moments.sum(axis=0)[None])[0])
    if not np.isfinite(value):
        return Tested(None, len(present), reason="a group has no value")
    n_countries = [len(set(labels["country"][second == group])) for group in (0, 1)]
    if min(n_countries) < 2 or sum(n_countries) < MIN_COUNTRIES:
        labels = {"question": labels["question"]}
    replicates = replicate_over_units(moments, _difference, labels)
    interval = jackknife_interval(value, replicates.units, bounds=bounds, cells=replicates.cells)
    if interval.low is None or interval.high is None:
        return Tested(value, len(present), reason=interval.reason)
    return Tested(value, len(present), interval.low, interval.high, resampled=tuple(labels), p_value=interval.p_value)


def _difference(sums: Floats) -> Floats:
    """The difference of the means from sums of the moments; nan where a group has no value."""
    with np.errstate(divide="ignore", invalid="ignore"):
        difference: Floats = sums[:, 2] / sums[:, 3] - sums[:, 0] / sums[:, 1]
    return difference
