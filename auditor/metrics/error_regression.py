"""Which properties of traces a judge's errors go with: weighted least squares, with intervals over other units."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._unit_counts import Labels
from auditor.metrics.estimate import Estimate, Tested
from auditor.metrics.jackknife_interval import jackknife_interval
from auditor.metrics.unit_replicates import replicate_over_units

MAX_CONDITION = 1e10
"""Of the moments: beyond it a predictor is a combination of others, so their effects cannot be separated."""
COLLINEAR_REASON = "it cannot be separated from the other properties on the labelled traces"


def regress_errors(
    errors: ArrayLike, predictors: ArrayLike, units: Labels, *, weights: ArrayLike | None = None
) -> list[Tested]:
    """Regress errors on predictors, with an intercept; each coefficient has an interval over other units.

    Countries and topics are left out in turn (the cluster jackknife, which in few clusters covers better than the
    sandwich estimator: MacKinnon, Nielsen & Webb, J. of Applied Econometrics 38, 2023).

    Args:
        errors: shape (n,), such as the judge's verdict minus people's label.
        predictors: shape (n, p).
        units: for each of one or two kinds of units, such as `country`, the unit of each row, shape (n,).
        weights: shape (n,), above 0, such as 1 / inclusion probability; by default equal.

    Returns:
        One per predictor; `n` counts rows. No value, with a reason, for a predictor that is constant or a combination
        of those before it. No interval below 5 units of a kind, or where a coefficient is undefined without one.

    Raises:
        ValueError: shapes differ, or a value is not finite.
    """
    y, x = np.asarray(errors, dtype=np.float64), np.asarray(predictors, dtype=np.float64)
    w = np.ones_like(y) if weights is None else np.asarray(weights, dtype=np.float64)
    if y.ndim != 1 or x.ndim != 2 or len(x) != len(y) or w.shape != y.shape:
        raise ValueError(
            f"errors and weights must have the shape (n,) and predictors (n, p), but they have {y.shape}, {w.shape} "
            f"and {x.shape}"
        )
    if not (np.isfinite(y).all() and np.isfinite(x).all() and np.isfinite(w).all()):
        raise ValueError("errors, predictors and weights must be finite")
    included = _select_independent(x, w)
    design = np.column_stack([np.ones_like(y), x[:, included]])
    p = design.shape[1]
    products = (design[:, :, None] * design[:, None, :]).reshape(len(y), p * p)
    moments = w[:, None] * np.column_stack([products, design * y[:, None]])
    coefficients = _solve(moments.sum(axis=0, keepdims=True), p)[0]
    undefined = Tested(None, len(y), reason=COLLINEAR_REASON)
    effects = [undefined] * x.shape[1]
    for position, column in enumerate(included, start=1):
        effects[column] = _estimate(moments, p, position, float(coefficients[position]), units)
    return effects


def _select_independent(x: Floats, weights: Floats) -> list[int]:
    """The columns that are no combination of the intercept and those before them."""
    root = np.sqrt(weights)[:, None]
    basis = root.copy()
    included: list[int] = []
    for column in range(x.shape[1]):
        candidate = np.column_stack([basis, root[:, 0] * x[:, column]])
        scale = np.linalg.norm(candidate, axis=0)
        if (scale > 0).all() and np.linalg.cond(candidate / scale) ** 2 < MAX_CONDITION:
            basis, included = candidate, [*included, column]
    return included


def _solve(sums: Floats, p: int) -> Floats:
    """Coefficients, shape (replicates, p), from sums of moments; nan where they are undefined."""
    matrices, vectors = sums[:, : p * p].reshape(-1, p, p), sums[:, p * p :]
    scale = np.sqrt(np.maximum(np.einsum("rii->ri", matrices), 1e-300))
    correlations = matrices / scale[:, :, None] / scale[:, None, :]
    is_defined = np.linalg.cond(correlations) < MAX_CONDITION
    coefficients = np.full(vectors.shape, np.nan)
    if is_defined.any():
        scaled = (vectors / scale)[is_defined][:, :, None]
        coefficients[is_defined] = np.linalg.solve(correlations[is_defined], scaled)[:, :, 0] / scale[is_defined]
    return coefficients


def _estimate(moments: Floats, p: int, position: int, value: float, units: Labels) -> Tested:
    """One coefficient with its interval and p-value."""
    replicates = replicate_over_units(moments, lambda sums: _solve(sums, p)[:, position], units)
    interval = jackknife_interval(value, replicates.units, cells=replicates.cells)
    if interval.low is None or interval.high is None:
        return Tested(value, len(moments), reason=interval.reason)
    estimate = Estimate(value, len(moments), interval.low, interval.high, resampled=tuple(units))
    return Tested(**asdict(estimate), p_value=interval.p_value)
