"""Whether a model is further from people in one country than in its other countries, or on one topic than on others.

The mean absolute error of a place is divided by the geometric mean of those of the other places. The logarithm of this
ratio is tested against 0, two-sided, by a jackknife over the units that places have in common: the topics of countries,
or the countries of topics. Places themselves are no sample: a statement is about this country and these others.

A variance from a few units is rough, and the smallest of many variances far too small. So each place's variance is
averaged with the mean over all places, with twice the degrees of freedom (after Smyth, Statistical Applications in
Genetics and Molecular Biology 3, 2004, with equal weights): by simulation this names a false place in 1 to 4% of audits
instead of 3 to 8, and finds a true one more often (docs/method.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._special import stdtr, stdtrit
from auditor.metrics.confidence import UPPER_QUANTILE
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife_interval import CONSTANT_REASON, MIN_UNITS, jackknife_variance, too_few_reason

FEW_CELLS_REASON = f"an error is compared with those of others only where it is of at least {MIN_UNITS} cells"
FEW_PLACES_REASON = "there is no other with enough cells to compare with"
PERFECT_REASON = "an error of 0 has no ratio to others"


def compare_place_errors(
    scores: ArrayLike, truth: ArrayLike, places: ArrayLike, units: ArrayLike, unit: str
) -> dict[int, Tested]:
    """The mean absolute error of each place as a multiple of the geometric mean of those of the other places.

    Args:
        scores, truth: shape (n,), one value per cell; cells with a nan on either side are left out.
        places: shape (n,), the number of each cell's place, such as its country.
        units: shape (n,), the number of the unit on the other side, such as the cell's topic.
        unit: what these units are, `topic` or `country`.

    Returns:
        By place, of those with a cell: the ratio with its 95% interval over other units, and the p-value of a ratio of
        1; `n` counts the cells of the place. None for places of fewer than 5 cells, which are in no mean of others
        either, and where an error is 0, with the reason.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    names, rows = np.unique(np.asarray(places)[is_complete], return_inverse=True)
    columns = np.unique(np.asarray(units)[is_complete], return_inverse=True)[1]
    errors, counts = (np.zeros((len(names), int(columns.max(initial=-1)) + 1)) for _ in range(2))
    np.add.at(errors, (rows, columns), np.abs(x - y))
    np.add.at(counts, (rows, columns), 1.0)
    n_cells = counts.sum(axis=1)
    is_compared = n_cells >= MIN_UNITS
    reasons = np.where(is_compared, FEW_PLACES_REASON, FEW_CELLS_REASON)
    ratios = [Tested(None, int(n), reason=str(reason)) for n, reason in zip(n_cells, reasons, strict=True)]
    compared = np.nonzero(is_compared)[0]
    if len(compared) > 1:
        tested = _compare(errors[compared], counts[compared], unit)
        for place, ratio in zip(compared, tested, strict=True):
            ratios[place] = ratio
    return {int(name): ratio for name, ratio in zip(names, ratios, strict=True)}


def _compare(errors: Floats, counts: Floats, unit: str) -> list[Tested]:
    """The ratios of at least two places; arguments have shape (places, units), 0 without a cell."""
    total, n = errors.sum(axis=1), counts.sum(axis=1)
    maes = total / n
    without = (total[:, None] - errors) / (n[:, None] - counts)  # of each place without each unit
    if maes.min() <= 1e-12 or without.min() <= 1e-12:
        return [Tested(None, int(size), reason=PERFECT_REASON) for size in n]
    logs, replicates = _compare_with_others(np.log(maes)), _compare_with_others(np.log(without))
    ratios, n_units = np.exp(logs), replicates.shape[1]
    if (reason := too_few_reason({unit: [n_units]})) is not None:
        return [Tested(float(ratio), int(size), reason=reason) for ratio, size in zip(ratios, n, strict=True)]
    variances = np.array([jackknife_variance([row]) for row in replicates])
    if variances.mean() <= 1e-24:
        return [Tested(float(ratio), int(size), reason=CONSTANT_REASON) for ratio, size in zip(ratios, n, strict=True)]
    std_errors, df = ((variances + variances.mean()) / 2) ** 0.5, 2 * (n_units - 1)
    steps = float(stdtrit(df, UPPER_QUANTILE)) * std_errors
    p_values = [float(2 * stdtr(df, -abs(value) / error)) for value, error in zip(logs, std_errors, strict=True)]
    lows, highs = np.exp(logs - steps), np.exp(logs + steps)
    return [
        Tested(float(ratio), int(size), float(low), float(high), None, (unit,), p_value=p_value)
        for ratio, size, low, high, p_value in zip(ratios, n, lows, highs, p_values, strict=True)
    ]


def _compare_with_others(logs: Floats) -> Floats:
    """Each place minus the mean of the other places, along the first axis."""
    differences: Floats = logs - (logs.sum(axis=0) - logs) / (len(logs) - 1)
    return differences
