"""Means of the runs of a design whose cells are each asked in some runs only, and contrasts of levels.

A value of a cell in a run is the sum of an effect of the cell and one of the run, fitted by least squares. The mean of
each run over all cells is then that of cell values (`RunMeans.by_cell`): the run's estimate plus the cell's influence
on it. Every figure of a design is a mean of weighted cell values, and the jackknife over countries and topics applies
(`auditor.metrics.jackknife`). The runs' means contain whatever interactions of factors there are, so which cells were
asked in which runs biases no contrast; what is confounded with a contrast follows from the design of the runs alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.metrics._complete_cases import Floats

TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class RunMeans:
    """Means of the runs over the cells that were asked in any.

    Attributes:
        is_used: whether a cell has a value, shape (cells,).
        is_run: whether a run has a value, shape (runs,).
        by_cell: shape (used cells, runs): values whose mean over cells is the run's mean; 0 for a run without a value.
    """

    is_used: NDArray[np.bool_]
    is_run: NDArray[np.bool_]
    by_cell: Floats

    @cached_property
    def means(self) -> Floats:
        """Mean of each run over all cells, shape (runs,)."""
        means: Floats = self.by_cell.mean(axis=0)
        return means


def fit_run_means(values: Floats) -> RunMeans | None:
    """Fit effects of cells and runs; None where runs cannot be compared within cells.

    Args:
        values: shape (cells, runs), nan where a cell was not asked in a run, or has no value.
    """
    is_value = ~np.isnan(values)
    is_used: NDArray[np.bool_] = np.logical_or.reduce(is_value, axis=1)
    is_run: NDArray[np.bool_] = np.logical_or.reduce(is_value, axis=0)
    if is_run.sum() < 1:
        return None
    weights = is_value[np.ix_(is_used, is_run)].astype(np.float64)
    table = np.where(weights > 0, values[np.ix_(is_used, is_run)], 0.0)
    information, inverse = _invert_information(weights)
    if np.linalg.matrix_rank(information, tol=TOLERANCE * max(1.0, float(information.max()))) < len(information) - 1:
        return None
    counts = weights.sum(axis=1, keepdims=True)
    cell_means = table.sum(axis=1, keepdims=True) / counts
    effects = inverse @ (weights * (table - cell_means)).sum(axis=0)
    residuals = table - weights * effects
    levels = residuals.sum(axis=1, keepdims=True) / counts
    n_cells = len(table)
    influence = n_cells * (weights * residuals - weights * levels) @ inverse
    share = (weights / counts).mean(axis=0)
    by_cell = np.zeros((n_cells, len(is_run)))
    by_cell[:, is_run] = effects + influence + levels - (influence @ share)[:, None]
    return RunMeans(is_used, is_run, by_cell)


def _invert_information(weights: Floats) -> tuple[Floats, Floats]:
    """The information on runs' effects within cells, shape (runs, runs), and its inverse for effects that sum to 0."""
    counts = weights.sum(axis=1, keepdims=True)
    information: Floats = np.diag(weights.sum(axis=0)) - (weights / counts).T @ weights
    return information, np.asarray(np.linalg.pinv(information, rcond=TOLERANCE, hermitian=True), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class LevelContrasts:
    """Weights of the runs in contrasts of levels, by least squares on the levels of all factors.

    Attributes:
        factors: the levels of each factor, in order of first appearance.
        levels: the level of each run, by factor.
    """

    factors: Mapping[str, tuple[str, ...]]
    levels: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_levels(cls, runs: Sequence[Mapping[str, str]]) -> LevelContrasts:
        """Read the levels of each run; factors with one level are left out."""
        names = list(runs[0])
        by_factor = {name: tuple(run[name] for run in runs) for name in names}
        factors = {name: tuple(dict.fromkeys(levels)) for name, levels in by_factor.items() if len(set(levels)) > 1}
        return cls(factors, {name: by_factor[name] for name in factors})

    @cached_property
    def columns(self) -> list[tuple[str, str]]:
        """Factor and level of each column of `matrix` but the first."""
        return [(factor, level) for factor, levels in self.factors.items() for level in levels]

    @cached_property
    def matrix(self) -> Floats:
        """Shape (runs, 1 + columns): ones, and an indicator of each level."""
        n_runs = len(next(iter(self.levels.values()), ()))
        indicators = [[float(level == other) for other in self.levels[factor]] for factor, level in self.columns]
        return np.array([[1.0] * n_runs, *indicators]).T

    def difference(self, factor: str, first: str, second: str, is_run: NDArray[np.bool_]) -> Floats | None:
        """Weights, shape (runs,), of the second level minus the first; None where the runs do not separate them.

        Args:
            is_run: the runs to use, shape (runs,).
        """
        signs = [(level == second) - (level == first) if name == factor else 0 for name, level in self.columns]
        return self._estimable(np.array([0.0, *signs]), is_run)

    def average(self, is_run: NDArray[np.bool_], without: tuple[str, str] | None = None) -> Floats | None:
        """Weights of the mean over designs in which every level of a factor counts alike.

        Args:
            without: a factor and one of its levels to leave out, with its runs.
        """
        is_in = is_run.copy()
        if without is not None:
            is_in &= np.array([level != without[1] for level in self.levels[without[0]]])
        target = [1.0]
        for factor, levels in self.factors.items():
            used = {level for level, is_included in zip(self.levels[factor], is_in, strict=True) if is_included}
            target += [float(level in used) / max(1, len(used)) for level in levels]
        return self._estimable(np.array(target), is_in)

    @cached_property
    def pair_kernel(self) -> Floats:
        """Covariance of the runs' means, shape (runs, runs), if every two factors together add a variance of 1."""
        by_factor = []
        for factor, levels in self.factors.items():
            names = np.array(self.levels[factor])
            by_factor.append((len(levels) * (names[:, None] == names) - 1.0) / (len(levels) - 1))
        total, squares = sum(by_factor, np.zeros_like(self.matrix @ self.matrix.T)), 0.0
        for kernel in by_factor:
            squares = squares + kernel**2
        return np.asarray((total**2 - squares) / 2)

    def confounded_variance(self, weights: Floats, fits: Sequence[RunMeans]) -> tuple[float, int]:
        """Variance that effects of two factors together may add to a contrast of levels, and its degrees of freedom.

        It is 0 where the design separates the contrast from all of them. Else their size is estimated from what the
        levels alone do not explain of the runs' means, beyond sampling noise; every two factors are taken to add as
        much.

        Args:
            weights: of the runs in the contrast.
            fits: the runs' means; of two, the second is subtracted from the first.
        """
        shared = float(weights @ self.pair_kernel @ weights)
        is_run: NDArray[np.bool_] = np.logical_and.reduce([fit.is_run for fit in fits])
        matrix = self.matrix[is_run]
        residual = np.eye(len(matrix)) - matrix @ np.linalg.pinv(matrix, rcond=TOLERANCE)
        df = round(float(np.trace(residual)))
        expected = float(np.trace(residual @ self.pair_kernel[np.ix_(is_run, is_run)]))
        if shared < TOLERANCE or df < 1 or expected < TOLERANCE:
            return 0.0, 0
        means = fits[0].means - sum(fit.means for fit in fits[1:])
        noise = sum(float(np.var(fit.by_cell[:, is_run] @ residual, axis=0).sum()) / len(fit.by_cell) for fit in fits)
        squares = float(((residual @ means[is_run]) ** 2).sum())
        return shared * max(0.0, squares - noise) / expected, df

    def _estimable(self, target: Floats, is_run: NDArray[np.bool_]) -> Floats | None:
        """Weights of the runs whose sum has the target's coefficients; None where there are none."""
        matrix = self.matrix[is_run]
        inverse = np.linalg.pinv(matrix, rcond=TOLERANCE)
        weights = np.zeros(len(is_run))
        weights[is_run] = target @ inverse
        return weights if np.allclose(weights[is_run] @ matrix, target, atol=1e-6) else None
