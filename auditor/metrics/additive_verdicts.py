"""The additive model of verdicts: a trace's quality, plus a judge's leniency, plus the effect of an exposure on it.

It is fitted by least squares to the traces that two or more judges have a verdict on, so a judge is compared only on
traces that others judged too, and panels may be incomplete. The fit depends on sums over traces, so that it is
recomputed without each country and each topic (`auditor.metrics.jackknife_interval`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._unit_counts import cell_index, index_units
from auditor.metrics.jackknife_interval import combine_variances, jackknife_variance
from auditor.metrics.judge_difference import JudgeDifference, Labels, difference_from_replicates, missing_difference
from auditor.metrics.unit_replicates import UnitReplicates

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
    design = has_verdict if exposures is None else np.vstack([has_verdict, has_verdict * exposures[:, is_compared]])
    matrix, vector = _normal_equations(design, np.nan_to_num(values), n_verdicts)
    (solution,), (undetermined,) = _solve(matrix[None], vector[None])
    unit_index = index_units(units, is_compared)
    without_units = {}
    for unit, labels in unit_index.items():
        parts = [
            _normal_equations(design[:, members], np.nan_to_num(values[:, members]), n_verdicts[members])
            for members in _group_positions(labels)
        ]
        matrices, vectors = (np.stack([part[i] for part in parts]) if parts else np.empty(0) for i in (0, 1))
        without_units[unit] = _solve(matrix - matrices, vector - vectors) if parts else (vector[:0], matrix[:0])
    without_cells = _solve_without_cells(design, np.nan_to_num(values), matrix, solution, cell_index(unit_index))
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
    judges = np.arange(n_judges)
    for i, first in enumerate(blocks):
        for j, second in enumerate(blocks):
            matrix[i * n_judges + judges, j * n_judges + judges] += (first * second).sum(axis=1)
    residuals = values - values.sum(axis=0) / n_verdicts
    vector = (blocks * residuals).sum(axis=2).reshape(-1)
    return matrix, vector


def _solve(matrices: Floats, vectors: Floats) -> tuple[Floats, Floats]:
    """Solutions of smallest norm of systems of equations, and projections on what the equations do not determine."""
    inverses = np.linalg.pinv(matrices, rcond=1e-10, hermitian=True)
    solutions = np.einsum("uij,uj->ui", inverses, vectors)
    return solutions, np.eye(matrices.shape[1]) - inverses @ matrices
