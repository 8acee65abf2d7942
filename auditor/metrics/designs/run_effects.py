"""Effects in experiments on an audit's design: means of runs, components of variance, and several wordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import UPPER_QUANTILE, Floats
from auditor.metrics.intervals.jackknife_interval import IDENTITY, LOG, Transform, jackknife_variance
from auditor.metrics.intervals.special_functions import stdtr, stdtrit
from auditor.metrics.intervals.two_way import (
    STATISTIC_TRANSFORMS,
    UnitLabels,
    clip_to_bounds,
    jackknife_sums,
    select_labels,
)
from auditor.metrics.intervals.variance_components import estimate_components
from auditor.metrics.people.alignment import MAE, Statistic, TwoWayEstimate

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


RUN_SOURCE = "factor × factor"
"""Runs beyond the effects of their levels."""


def estimate_sources(errors: Floats, level_contrasts: LevelContrasts) -> dict[str, float] | None:
    """Variance of the errors from each source; negative estimates are set to 0.

    Args:
        errors: shape (models, cells, runs), nan where there is none.

    Returns:
        By source: `model`, each factor, `factor × factor`, `model × FACTOR`, `cell`, `model × cell` and `residual`, of
        those that the design has; None where no residual is left.
    """
    sources = _within_sources(len(errors), level_contrasts)
    is_value = ~np.isnan(errors)
    weights, table = is_value.astype(np.float64), np.where(is_value, errors, 0.0)
    counts = weights.sum(axis=2, keepdims=True)
    cell_means = table.sum(axis=2, keepdims=True) / np.maximum(counts, 1)
    centred = weights * (table - cell_means)
    information = _block_diagonal(
        [np.diag(w.sum(axis=0)) - (w / np.maximum(c, 1)).T @ w for w, c in zip(weights, counts, strict=True)]
    )
    totals = centred.sum(axis=1).ravel()
    fitted = _fit_within(
        sources, information, totals, float((centred**2).sum()), int(is_value.sum() - (counts > 0).sum())
    )
    if fitted is None:
        return None
    components, effects = fitted
    levels = (table - weights * effects.reshape(len(errors), 1, -1)).sum(axis=2) / np.maximum(counts[:, :, 0], 1)
    between = _between_components(levels, counts[:, :, 0], components["residual"])
    ordered = [*(["model"] if "model" in between else []), *sources, "cell", "model × cell", "residual"]
    return {source: max(0.0, (components | between)[source]) for source in ordered if source in components | between}


def _within_sources(n_models: int, level_contrasts: LevelContrasts) -> dict[str, Floats]:
    """Indicators of each source that varies within the cells of a model, shape (models x runs, levels)."""
    levels = {
        factor: np.array([[float(level == other) for other in names] for level in level_contrasts.levels[factor]])
        for factor, names in level_contrasts.factors.items()
    }
    n_runs = len(level_contrasts.matrix)
    each_model = np.ones((n_models, 1))
    sources = {factor: np.kron(each_model, matrix) for factor, matrix in levels.items()}
    sources[RUN_SOURCE] = np.kron(each_model, np.eye(n_runs))
    if n_models > 1:
        sources |= {f"model × {factor}": np.kron(np.eye(n_models), matrix) for factor, matrix in levels.items()}
    return sources


def _block_diagonal(blocks: Sequence[Floats]) -> Floats:
    """One matrix with the square blocks, of equal size, on its diagonal."""
    size = len(blocks[0])
    matrix = np.zeros((size * len(blocks), size * len(blocks)))
    for i, block in enumerate(blocks):
        matrix[i * size : (i + 1) * size, i * size : (i + 1) * size] = block
    return matrix


def _fit_within(
    sources: Mapping[str, Floats], information: Floats, totals: Floats, total_squares: float, df: int
) -> tuple[dict[str, float], Floats] | None:
    """Components of the sources within cells and of the residual, and the fitted effects, shape (models x runs,).

    Args:
        information: of effects of runs in each model within cells.
        totals: sums of centred errors in each run of each model.
        total_squares, df: sum of squares of all centred errors, and their degrees of freedom.
    """
    names, observed, expected = [], [], []
    before = np.zeros((len(totals), 0))
    for name, indicators in sources.items():
        earlier = np.linalg.pinv(before.T @ information @ before, rcond=TOLERANCE, hermitian=True)
        adjusted = indicators - before @ (earlier @ (before.T @ information @ indicators))
        gram = adjusted.T @ information @ adjusted
        rank = int(np.linalg.matrix_rank(gram, tol=TOLERANCE * max(1.0, float(information.max())), hermitian=True))
        if rank > 0:
            inverse = _invert(gram, rank)
            score = adjusted.T @ totals
            cross = {other: adjusted.T @ information @ matrix for other, matrix in sources.items()}
            names.append(name)
            observed.append(float(score @ inverse @ score))
            expected.append(
                {other: float(np.sum((inverse @ matrix) * matrix)) for other, matrix in cross.items()}
                | {"residual": rank}
            )
        before = np.hstack([before, indicators])
    all_inverse = np.linalg.pinv(before.T @ information @ before, rcond=TOLERANCE, hermitian=True)
    score = before.T @ totals
    residual_df = df - sum(int(row["residual"]) for row in expected)
    if residual_df < 1:
        return None
    names.append("residual")
    observed.append(total_squares - float(score @ all_inverse @ score))
    expected.append({"residual": residual_df})
    matrix = np.array([[row.get(name, 0.0) for name in names] for row in expected])
    solved = np.linalg.lstsq(matrix, np.array(observed), rcond=None)[0]
    return dict(zip(names, map(float, solved), strict=True)), before @ all_inverse @ score


def _invert(gram: Floats, rank: int) -> Floats:
    """Pseudoinverse of a symmetric matrix of known rank."""
    values, vectors = np.linalg.eigh(gram)
    inverse: Floats = (vectors[:, -rank:] / values[-rank:]) @ vectors[:, -rank:].T
    return inverse


def _between_components(levels: Floats, counts: Floats, residual: float) -> dict[str, float]:
    """Components of models and cells, from cells' means at the average design, shape (models, cells)."""
    model, cell = np.nonzero(counts > 0)
    values, sampling = levels[model, cell], residual / counts[model, cell]
    if len(levels) == 1:
        return {"cell": float(values.var(ddof=1) - sampling.mean())} if len(values) > 1 else {}
    components = estimate_components(values, model, cell, sampling)
    if components is None:
        return {}
    return {"model": components.country, "cell": components.topic, "model × cell": components.cell}


MIN_WORDINGS = 2


def add_wording_variance(
    estimate: TwoWayEstimate, without_each: ArrayLike, transform: Transform = IDENTITY
) -> TwoWayEstimate:
    """Widen an estimate of a mean over wordings by the variance over wordings.

    Args:
        estimate: with its interval over countries and topics.
        without_each: the figure without each wording, shape (wordings,), at least 2.
        transform: the scale on which the estimate's interval is symmetric.

    Returns:
        The estimate itself where it has no interval, or the figure is undefined without a wording.
    """
    values, interval = np.asarray(without_each, dtype=np.float64), estimate.interval
    if interval is None or interval.std_error is None or interval.centre is None or len(values) < MIN_WORDINGS:
        return estimate
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates: Floats = transform.forward(values)
    if not np.isfinite(replicates).all():
        return estimate
    of_places, of_wordings = interval.std_error**2, jackknife_variance([replicates])
    variance = of_places + of_wordings
    df = int(variance**2 / (of_places**2 / interval.df + of_wordings**2 / (len(values) - 1)))
    centre, std_error = interval.centre, variance**0.5

    def compute_ends(quantile: float) -> tuple[float, float]:
        low, high = transform.inverse(centre + np.array([-quantile, quantile]) * std_error)
        return float(low), float(high)

    low, high = compute_ends(float(stdtrit(df, UPPER_QUANTILE)))
    p_value = None if estimate.p_value is None else float(2 * stdtr(df, -abs(centre) / std_error))
    widened = replace(interval, low=low, high=high, std_error=std_error, df=df, p_value=p_value, ends_at=compute_ends)
    return replace(
        estimate,
        ci_low=low,
        ci_high=high,
        p_value=p_value,
        resampled=(*estimate.resampled, "wording"),
        generalizes_to=None,
        interval=widened,
    )


def widen_for_wordings(
    estimate: TwoWayEstimate, statistic: Statistic, scores: ArrayLike, truth: ArrayLike
) -> TwoWayEstimate:
    """`add_wording_variance` to a statistic of the mean over wordings.

    Args:
        estimate: of the mean over wordings, as `crossed_jackknife` gives it.
        scores: shape (wordings, n); nan where a wording has no score of a cell.
        truth: shape (n,).
    """
    table, y = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if len(table) < MIN_WORDINGS:
        return estimate
    is_scored = ~np.isnan(table)
    total, count = np.where(is_scored, table, 0.0).sum(axis=0), is_scored.sum(axis=0)
    without_each = []
    for wording, is_in in zip(table, is_scored, strict=True):
        n_others = count - is_in
        mean = (total - np.where(is_in, wording, 0.0)) / np.maximum(n_others, 1)
        is_complete = (n_others > 0) & ~np.isnan(y)
        sums = statistic.moments(mean[is_complete], y[is_complete]).sum(axis=0)
        without_each.append(float(statistic.value(sums[None])[0]))
    widened = add_wording_variance(estimate, without_each, STATISTIC_TRANSFORMS.get(statistic, IDENTITY))
    return clip_to_bounds(widened, statistic)


def error_of_one_wording(
    scores: ArrayLike, truth: ArrayLike, countries: ArrayLike | UnitLabels, topics: ArrayLike
) -> TwoWayEstimate:
    """Mean absolute error of a single wording: the mean over wordings, with its interval over places and wordings.

    The error of the mean over wordings is smaller wherever wordings differ.

    Args:
        scores: shape (wordings, n); cells with a nan in any wording or in `truth` are left out.
        truth, countries, topics: shape (n,).
    """
    table, y = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    errors = np.abs(table - y)
    is_complete: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(errors))
    if not is_complete.any():
        return TwoWayEstimate(None, 0, reason="no cell has a score in all wordings")
    by_wording = errors[:, is_complete].mean(axis=1)
    moments = np.stack([np.ones(int(is_complete.sum())), errors[:, is_complete].mean(axis=0)], axis=1)
    country, topic = (select_labels(labels, is_complete) for labels in (countries, topics))
    estimate = jackknife_sums(moments, MAE.value, country, topic, LOG)
    without_each = (by_wording.sum() - by_wording) / max(1, len(by_wording) - 1)
    return add_wording_variance(estimate, without_each, LOG)
