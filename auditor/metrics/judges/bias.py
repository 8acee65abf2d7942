"""What judges' verdicts and errors go with: leniency, exposures at equal traces, and properties of traces."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import Estimate, Floats, Tested
from auditor.metrics.intervals.jackknife_interval import (
    UnitReplicates,
    cell_index,
    combine_variances,
    index_units,
    jackknife_covariance,
    jackknife_interval,
    jackknife_variance,
    replicate_over_units,
)
from auditor.metrics.judges.accuracy import (
    JudgeDifference,
    Labels,
    as_verdict_table,
    difference_from_replicates,
    missing_difference,
)

Indices = NDArray[np.intp]
ESTIMABLE_TOLERANCE = 1e-7
NO_COMPARISON_REASON = "no trace has a verdict of this judge and of another"


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveFit:
    """The additive model fitted to all traces, and without each unit.

    Attributes:
        solution: shape (k,): leniencies of the judges, then effects of the exposure; what is not determined is 0.
        undetermined: shape (k, k), projection on what the verdicts do not determine, such as a common leniency.
        without_units: for each kind of unit, solution and projection without each unit, shapes (units, k) and
            (units, k, k).
        without_cells: solution without each cell, shape (cells, k), to first order.
        n_compared: shape (judges,), traces with a verdict of this judge and of another.
    """

    solution: Floats
    undetermined: Floats
    without_units: dict[str, tuple[Floats, Floats]]
    without_cells: Floats
    n_compared: Floats

    @property
    def n_judges(self) -> int:
        """Number of judges."""
        return len(self.n_compared)

    def is_estimable(self, weights: Floats) -> bool:
        """Whether the verdicts determine a weighted sum of the solution."""
        return bool(np.abs(self.undetermined @ weights).max() < ESTIMABLE_TOLERANCE)

    def difference(self, weights: Floats, further_variance: float = 0.0) -> JudgeDifference:
        """A weighted sum of the solution, with an interval; missing where the verdicts do not determine it.

        Args:
            weights: shape (k,); the largest is that of the judge that it is about.
            further_variance: is added to the jackknife variance.
        """
        n = int(self.n_compared[int(np.argmax(weights)) % self.n_judges])
        if not n or not self.is_estimable(weights):
            return missing_difference(NO_COMPARISON_REASON, "panel", n)
        by_unit = {}
        for unit, (solutions, undetermined) in self.without_units.items():
            is_estimable = np.abs(undetermined @ weights).max(axis=1) < ESTIMABLE_TOLERANCE
            by_unit[unit] = np.where(is_estimable, solutions @ weights, np.nan)
        by_cell = self.without_cells @ weights if len(by_unit) > 1 else None
        replicates = _add_variance(UnitReplicates(by_unit, by_cell), further_variance)
        return difference_from_replicates(float(self.solution @ weights), n, replicates, "panel")


def _add_variance(replicates: UnitReplicates, further_variance: float) -> UnitReplicates:
    """Spread replicates around their means, so that their jackknife variance increases by a further one."""
    by_cell = [] if replicates.cells is None else [replicates.cells]
    variance = float(
        combine_variances([jackknife_variance([r]) for r in replicates.units.values()], jackknife_variance(by_cell))
    )
    if not variance > 0:
        return replicates
    factor = sqrt(1 + further_variance / variance)

    def spread(values: Floats) -> Floats:
        widened: Floats = values.mean() + factor * (values - values.mean())
        return widened

    return UnitReplicates(
        {unit: spread(values) for unit, values in replicates.units.items()},
        None if replicates.cells is None else spread(replicates.cells),
    )


def fit_additive_model(table: Floats, exposures: Floats | None, units: Labels) -> AdditiveFit:
    """Fit the additive model by least squares, to all traces and without each unit.

    Args:
        table: shape (judges, traces).
        exposures: shape (judges, traces), 1 or 0; None fits leniencies only.
    """
    n_by_trace = (~np.isnan(table)).sum(axis=0)
    is_compared = n_by_trace >= 2  # a single verdict only determines the trace's own quality
    values, n_verdicts = table[:, is_compared], n_by_trace[is_compared]
    has_verdict = (~np.isnan(values)).astype(np.float64)
    values = np.nan_to_num(values, copy=False)
    design = has_verdict if exposures is None else np.vstack([has_verdict, has_verdict * exposures[:, is_compared]])
    matrix, vector = _normal_equations(design, values, n_verdicts)
    (solution,), (undetermined,) = _solve(matrix[None], vector[None])
    unit_index = index_units(units, is_compared)
    without_units = {}
    for unit, labels in unit_index.items():
        parts = [
            _normal_equations(design[:, members], values[:, members], n_verdicts[members])
            for members in _group_positions(labels)
        ]
        matrices, vectors = (np.stack([part[i] for part in parts]) if parts else np.empty(0) for i in (0, 1))
        without_units[unit] = _solve(matrix - matrices, vector - vectors) if parts else (vector[:0], matrix[:0])
    without_cells = _solve_without_cells(design, values, matrix, solution, cell_index(unit_index))
    return AdditiveFit(solution, undetermined, without_units, without_cells, has_verdict.sum(axis=1))


def _solve_without_cells(design: Floats, values: Floats, matrix: Floats, solution: Floats, cells: Indices) -> Floats:
    """Solution without each cell, shape (cells, k), to first order: by the cell's contributions to the equations.

    Args:
        design, values: as for `_normal_equations`.
        cells: shape (traces,), the number of each trace's cell.
    """
    n_judges = len(values)
    has_verdict = design[:n_judges]
    blocks = design.reshape(len(design) // n_judges, n_judges, design.shape[1])
    residuals = values - np.einsum("bjt,bj->jt", blocks, solution.reshape(-1, n_judges))
    residuals -= has_verdict * residuals.sum(axis=0) / has_verdict.sum(axis=0)
    contributions = (blocks * residuals).reshape(design.shape)
    by_cell = np.stack([np.bincount(cells, row) for row in contributions], axis=1) if design.shape[1] else design.T
    without: Floats = solution - by_cell @ np.linalg.pinv(matrix, rcond=1e-10, hermitian=True)
    return without


def _group_positions(unit_index: Indices) -> list[Indices]:
    """Positions of the traces of each unit."""
    order = np.argsort(unit_index, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(unit_index[order])) + 1) if len(order) else []


def _normal_equations(design: Floats, values: Floats, n_verdicts: Floats) -> tuple[Floats, Floats]:
    """Matrix and right-hand side of the normal equations, with the qualities of the traces eliminated.

    Args:
        design: shape (k, traces): whether each judge has a verdict, then whether it has one and is exposed.
        values: shape (judges, traces), 0 where there is no verdict.
        n_verdicts: shape (traces,).
    """
    n_judges = len(values)
    matrix = -(design / n_verdicts) @ design.T
    blocks = design.reshape(
        len(design) // n_judges, n_judges, design.shape[1]
    )  # leniency and, where there is one, the exposure
    judges, counts = np.arange(n_judges), blocks.sum(axis=2)
    for i in range(len(blocks)):
        for j in range(len(blocks)):  # who is exposed has a verdict, so a product of two blocks is the later of them
            matrix[i * n_judges + judges, j * n_judges + judges] += counts[max(i, j)]
    residuals = values - values.sum(axis=0) / n_verdicts
    vector = (blocks * residuals).sum(axis=2).reshape(-1)
    return matrix, vector


def _solve(matrices: Floats, vectors: Floats) -> tuple[Floats, Floats]:
    """Solutions of smallest norm of systems of equations, and projections on what the equations do not determine."""
    inverses = np.linalg.pinv(matrices, rcond=1e-10, hermitian=True)
    solutions = np.einsum("uij,uj->ui", inverses, vectors)
    return solutions, np.eye(matrices.shape[1]) - inverses @ matrices


MIN_JUDGES = 3
"""Fewest judges for a median judge: of two, either may be the biased one."""
N_DRAWS = 2000
"""Draws for the probability of being the median judge; each is used with both signs."""
UNLINKED_REASON = "no trace links it with the judges that define the median"
REFERENCE_REASON = "it is the median judge: 0 by definition"


def leniency(verdicts: ArrayLike, units: Labels) -> list[JudgeDifference]:
    """How much more often each judge says VALID than the median judge on the same traces.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan no verdict.
        units: the units that are resampled.

    Returns:
        One per judge, each compared with the mean of all judges weighted by how likely each is the median judge. A
        judge that certainly is has the value 0 and no interval.
    """
    table = as_verdict_table(verdicts)
    if not len(table):
        return []
    fit = fit_additive_model(table, None, units)
    return _compare_with_median(fit, np.arange(fit.n_judges))


def exposure_effects(
    verdicts: ArrayLike, exposures: ArrayLike, units: Labels, *, relative_to_median: bool = False
) -> list[JudgeDifference]:
    """How much more lenient each judge is where it is exposed, such as with authors of its own family.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan no verdict.
        exposures: shape (judges, traces): 1, 0, or nan for verdicts to leave out.
        units: the units that are resampled.
        relative_to_median: compare each effect with that of the median judge: where all judges are exposed on the same
            traces, as to their order, an effect that they share cannot be told from the quality of these traces.

    Returns:
        One per judge, as associations: what a judge is exposed to was not drawn at random.
    """
    table, exposed = as_verdict_table(verdicts), np.asarray(exposures, dtype=np.float64)
    if not len(table):
        return []
    fit = fit_additive_model(np.where(np.isnan(exposed), np.nan, table), np.nan_to_num(exposed), units)
    effects = np.arange(fit.n_judges) + fit.n_judges
    if relative_to_median:
        differences = _compare_with_median(fit, effects)
    else:
        differences = [fit.difference(np.eye(len(fit.solution))[effect]) for effect in effects]
    return [replace(difference, evidence="association") for difference in differences]


def later_half(times: ArrayLike, verdicts: ArrayLike) -> Floats:
    """Whether each verdict is in the later half of its judge's verdicts: 1, 0, or nan where there is none or no time.

    Args:
        times: shape (judges, traces), when each verdict was given, in any unit; nan where unknown.
        verdicts: shape (judges, traces); nan where there is none.
    """
    table = np.where(np.isnan(as_verdict_table(verdicts)), np.nan, np.asarray(times, dtype=np.float64))
    is_late = np.full(table.shape, np.nan)
    for row, judge_times in zip(is_late, table, strict=True):
        has_time = ~np.isnan(judge_times)
        rank = np.argsort(np.argsort(judge_times[has_time], kind="stable"), kind="stable")
        row[has_time] = rank >= has_time.sum() / 2
    return is_late


def _compare_with_median(fit: AdditiveFit, positions: Indices) -> list[JudgeDifference]:
    """Compare an effect of each judge with that of the median judge.

    Args:
        positions: shape (judges,), positions of the effects in the solution.
    """
    known = _largest_comparable_group(fit, positions)
    if len(known) < MIN_JUDGES:
        reason = f"a comparison with the median judge needs {MIN_JUDGES} judges on the same traces"
        return [missing_difference(reason, "panel", int(n)) for n in fit.n_compared]
    weights = np.zeros(len(fit.solution))
    weights[positions[known]] = _median_weights(fit, positions[known])
    # Variance that comes from not knowing which judge is the median one (Buckland, Burnham & Augustin, Biometrics 53,
    # 1997, on averages over models).
    between_variance = float(weights @ (fit.solution - weights @ fit.solution) ** 2)
    differences = []
    for i, position in enumerate(positions):
        n = int(fit.n_compared[i])
        if i not in known:
            reason = UNLINKED_REASON if n else NO_COMPARISON_REASON
            differences.append(missing_difference(reason, "panel", n))
        elif weights[position] == 1:
            differences.append(JudgeDifference(0.0, n, reason=REFERENCE_REASON, evidence="panel"))
        else:
            differences.append(fit.difference(np.eye(len(weights))[position] - weights, between_variance))
    return differences


def _median_weights(fit: AdditiveFit, positions: Indices) -> Floats:
    """How likely each judge is the median one, given the jackknife covariance of the judges' effects; the sum is 1.

    Effects that differ by less than their errors do not show which judge is the median. The weighted mean of the
    candidates has a smaller error than the one that happens to be in the middle, and its error can be estimated by the
    jackknife, unlike that of a median (Efron, J. of the American Statistical Association 109, 2014, on smoothing by
    bagging).

    Args:
        positions: shape (judges,), positions of the effects in the solution.
    """
    effects = fit.solution[positions]
    draws = effects[None]
    replicates = [solutions[:, positions].T for solutions, _ in fit.without_units.values()]
    if all(r.shape[1] > 1 for r in replicates):
        eigenvalues, eigenvectors = np.linalg.eigh(sum(jackknife_covariance(r) for r in replicates))
        root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)) @ eigenvectors.T  # the same on every platform
        noise = np.random.default_rng(0).normal(size=(N_DRAWS, len(effects))) @ root
        draws = effects + np.concatenate([noise, -noise])
    ranked = np.argsort(draws, axis=1, kind="stable")
    middle = np.stack([ranked[:, (len(effects) - 1) // 2], ranked[:, len(effects) // 2]])
    weights: Floats = np.bincount(middle.ravel(), minlength=len(effects)) / middle.size
    return weights


def _largest_comparable_group(fit: AdditiveFit, positions: Indices) -> list[int]:
    """The largest group of judges whose effects the verdicts compare with each other."""
    groups: list[list[int]] = []
    for i in np.flatnonzero(fit.n_compared).tolist():
        column = fit.undetermined[:, positions[i]]  # equal for two effects whose difference is determined
        for group in groups:
            if np.abs(column - fit.undetermined[:, positions[group[0]]]).max() < ESTIMABLE_TOLERANCE:
                group.append(i)
                break
        else:
            groups.append([i])
    return max(groups, key=len, default=[])


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
    coefficients = _solve_weighted(moments.sum(axis=0, keepdims=True), p)[0]
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


def _solve_weighted(sums: Floats, p: int) -> Floats:
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
    replicates = replicate_over_units(moments, lambda sums: _solve_weighted(sums, p)[:, position], units)
    interval = jackknife_interval(value, replicates.units, cells=replicates.cells)
    if interval.low is None or interval.high is None:
        return Tested(value, len(moments), reason=interval.reason)
    estimate = Estimate(value, len(moments), interval.low, interval.high, resampled=tuple(units))
    return Tested(**asdict(estimate), p_value=interval.p_value)
