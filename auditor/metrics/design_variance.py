"""Where the variance of errors comes from: models, factors of the design, cells, and what is left.

An error of a model in a cell and a run is the sum of independent effects of the model, of each factor's level, of each
level in that model, of the run beyond its levels (factors that act together), of the cell, of the cell in that model,
and a residual. Effects of runs are estimated within the cells of a model, those of models and cells from the cells'
means at the average design; sums of squares, each adjusted for the sources before it, are equated with their
expectations (Henderson's method 3, Biometrics 9, 1953). For a table without gaps this is analysis of variance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from auditor.metrics._complete_cases import Floats
from auditor.metrics.run_effects import TOLERANCE, LevelContrasts
from auditor.metrics.variance_components import estimate_components

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
