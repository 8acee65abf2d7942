"""Pearson's r over observations that share units, such as the answers of several models to one question.

Each unit is left out in turn, with all its observations (`auditor.metrics.jackknife_interval`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics.cell_statistics import PEARSON
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife_interval import FISHER_Z, IDENTITY, Transform, jackknife_interval
from auditor.metrics.unit_replicates import replicate_over_units

MIN_OBSERVATIONS = 3
"""Fewest observations for a correlation."""
UNDEFINED_REASON = "too few values, or all values of a side are equal"
SIDES = ("one side", "the other side")


def correlate_over_units(
    x: ArrayLike,
    y: ArrayLike,
    units: Mapping[str, ArrayLike],
    sides: tuple[str, str] = SIDES,
    *,
    weights: ArrayLike | None = None,
) -> Tested:
    """Pearson's r, with its interval on Fisher's z and the p-value of r = 0; `n` counts observations.

    Args:
        x, y: shape (n,); observations with a nan on either side are left out.
        units: the kind of unit, and the unit of each observation, shape (n,).
        sides: what x and y are, for the reason why there is no value.
        weights: shape (n,), for how many observations each one stands; by default each for one.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), is_complete = complete_cases(x, y)
    [(unit, labels)] = units.items()
    r, replicates = _correlation_without_units(
        a, b, np.asarray(labels)[is_complete], _select_weights(weights, is_complete)
    )
    if not np.isfinite(r):
        return Tested(None, len(a), reason=_explain_undefined(a, b, sides))
    return _to_estimate(r, len(a), unit, replicates, FISHER_Z)


def _explain_undefined(x: Floats, y: Floats, sides: tuple[str, str]) -> str:
    """Why two sides have no correlation."""
    if len(x) < MIN_OBSERVATIONS:
        return f"a correlation needs at least {MIN_OBSERVATIONS} values on both sides, but there are {len(x)}"
    constant = [side for side, values in zip(sides, (x, y), strict=True) if np.ptp(values) == 0]
    return f"all {len(x)} values of {' and of '.join(constant or sides)} are equal"


def correlation_difference_over_units(
    outcome: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    units: Mapping[str, ArrayLike],
    *,
    weights: ArrayLike | None = None,
) -> Tested:
    """The correlation of `first` with the outcome minus that of `second`, over the same observations; `n` counts them.

    Args:
        outcome, first, second, units, weights: as for `correlate_over_units`.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (y, a, b), is_complete = complete_cases(outcome, first, second)
    [(unit, labels)] = units.items()
    names = np.asarray(labels)[is_complete]
    (r_first, without_first), (r_second, without_second) = (
        _correlation_without_units(values, y, names, _select_weights(weights, is_complete)) for values in (a, b)
    )
    return _to_estimate(r_first - r_second, len(y), unit, without_first - without_second, IDENTITY, (-2.0, 2.0))


def _select_weights(weights: ArrayLike | None, is_complete: NDArray[np.bool_]) -> Floats:
    """Weights of the complete cases, with a mean of 1."""
    selected = np.ones(int(is_complete.sum())) if weights is None else np.asarray(weights, dtype=float)[is_complete]
    return selected / selected.mean() if len(selected) else selected


def _correlation_without_units(x: Floats, y: Floats, labels: ArrayLike, weights: Floats) -> tuple[float, Floats]:
    """Pearson's r, and that without each unit; nan where undefined."""
    if len(x) < MIN_OBSERVATIONS:
        return float("nan"), np.empty(0)
    moments = PEARSON.moments(x, y) * weights[:, None]
    replicates = replicate_over_units(moments, PEARSON.value, {"unit": labels})
    return float(PEARSON.value(moments.sum(axis=0)[None])[0]), replicates.units["unit"]


def _to_estimate(
    value: float,
    n: int,
    unit: str,
    replicates: Floats,
    transform: Transform,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> Tested:
    """A statistic with its interval; without a value, and a reason, where it is undefined."""
    if not np.isfinite(value):
        return Tested(None, n, reason=UNDEFINED_REASON)
    interval = jackknife_interval(value, {unit: replicates}, transform, bounds)
    if interval.low is None or interval.high is None:
        return Tested(value, n, reason=interval.reason)
    return Tested(value, n, interval.low, interval.high, resampled=(unit,), p_value=interval.p_value)
