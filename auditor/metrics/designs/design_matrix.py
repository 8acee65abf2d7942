"""Designs of experiments: which levels of which factors are combined in a run, and which cells are asked in it.

Levels are numbered from 0, and the first run has level 0 of every factor: the settings that other runs are compared
with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auditor.lazy_imports import import_when_used

if not TYPE_CHECKING:
    pydoe = import_when_used("pydoe")
else:
    import pydoe

Levels = NDArray[np.int_]
"""Number of the level of each factor (columns) in each run (rows)."""

BASE_RUNS = 16
"""Runs of the two-level array; with other factors it is repeated once, for their further coefficients."""
RUNS_PER_CELL = 8
MAX_TWO_LEVEL_FACTORS = 8
"""More have no array of 16 runs in which single factors are separate from interactions of two (resolution IV)."""
_SEPARATE_COLUMNS = {5: (0, 1, 3, 7, 14), 8: (0, 1, 3, 7, 6, 10, 12, 13)}
"""Columns of the array of 16 runs by the number of factors: interactions of two of up to five are separate from each
other (resolution V), those of up to eight from single factors (resolution IV)."""
_N_PARTITIONS, _N_SWAPS, _N_ORDERS, _N_STARTS = 16, 700, 400, 6
_REPEATED_RUN_COST = 1e6
MIN_SHARE = 0.05
"""Smallest squared correlation between effects that counts as confounding."""


@dataclass(frozen=True, slots=True)
class Confounding:
    """Two effects that a design does not separate completely.

    Attributes:
        effect: of a factor, by its name.
        other: the other factor, or the two factors of an interaction, in order.
        share: the largest squared correlation between a contrast of the one and one of the other, from 0 to 1; at 1,
            the design cannot tell them apart.
    """

    effect: str
    other: tuple[str, ...]
    share: float


def plan_levels(n_levels: Sequence[int], seed: int) -> Levels:
    """Combine factors: an orthogonal array for those of two levels, and D-optimal choices for those of more.

    Args:
        n_levels: number of levels of each factor, at least two.
        seed: determines the design together with the numbers of levels.

    Returns:
        Distinct runs: all combinations if there are at most 32 (16 if all factors have two levels), else 32 or 16 of
        them. Two-level factors are orthogonal to each other and to the interactions of any two of them.

    Raises:
        ValueError: no factors, one with fewer than two levels, or more than eight with two.
    """
    if not n_levels or min(n_levels) < 2:
        raise ValueError("every factor of a design needs at least two levels")
    pairs = [i for i, count in enumerate(n_levels) if count == 2]
    others = [i for i, count in enumerate(n_levels) if count > 2]
    if len(pairs) > MAX_TWO_LEVEL_FACTORS:
        raise ValueError(f"a design has at most {MAX_TWO_LEVEL_FACTORS} factors of two levels")
    n_runs = BASE_RUNS * (2 if others else 1)
    if math.prod(n_levels) <= n_runs:
        return np.array(list(itertools.product(*map(range, n_levels))))

    array = np.asarray(pydoe.get_orthogonal_array("L16(2^15)"), int)
    columns = next(columns for size, columns in sorted(_SEPARATE_COLUMNS.items()) if len(pairs) <= size)
    levels = np.zeros((n_runs, len(n_levels)), int)
    levels[:, pairs] = np.tile(array[:, columns[: len(pairs)]], (n_runs // BASE_RUNS, 1))
    if others:
        chosen = _choose_combinations([n_levels[i] for i in others], n_runs)
        levels[:, others] = _match_rows(levels[:, pairs], chosen, np.random.default_rng(seed))
    return _put_first_levels_first(levels, n_levels)


def _choose_combinations(n_levels: Sequence[int], n_runs: int) -> Levels:
    """Combinations of factors of more than two levels, as many as runs: each as often as the others, the rest
    D-optimal for the effects of single factors."""
    candidates = np.array(list(itertools.product(*map(range, n_levels))))
    n_repeats, n_left = divmod(n_runs, len(candidates))
    chosen = [candidates] * n_repeats
    if n_left:
        coded = np.hstack([_code_levels(column, count) for column, count in zip(candidates.T, n_levels, strict=True)])
        if n_left > coded.shape[1]:
            points = pydoe.fedorov(coded, n_left, 1)
            rows = [int(np.argmin(np.abs(coded - point).sum(axis=1))) for point in points]
        else:  # fewer than coefficients: spread over the candidates, which are all there already
            rows = np.linspace(0, len(candidates) - 1, n_left).round().astype(int).tolist()
        chosen.append(candidates[rows])
    return np.vstack(chosen)


def _match_rows(two_level: Levels, chosen: Levels, rng: np.random.Generator) -> Levels:
    """Order combinations so that runs are distinct, and least correlated with two-level factors and interactions."""
    signs = 1.0 - 2.0 * two_level
    pairs = [signs[:, i] * signs[:, j] for i, j in itertools.combinations(range(signs.shape[1]), 2)]
    effects = np.column_stack([2 * signs, *pairs]) if pairs else 2 * signs
    coded = np.hstack([_code_levels(column, int(column.max()) + 1) for column in chosen.T])
    base = np.unique(two_level, axis=0, return_inverse=True)[1].ravel()
    combination = np.unique(chosen, axis=0, return_inverse=True)[1].ravel()

    def cost(order: NDArray[np.int_]) -> float:
        n_repeated = len(order) - len(np.unique(base * len(order) + combination[order]))
        correlation = ((effects.T @ coded[order]) ** 2).sum() if effects.size else 0.0
        return float(correlation + _REPEATED_RUN_COST * n_repeated)

    best, lowest = np.arange(len(chosen)), np.inf
    for _ in range(_N_STARTS):
        order = rng.permutation(len(chosen))
        value = cost(order)
        for _ in range(_N_ORDERS):
            i, j = rng.choice(len(chosen), 2, replace=False)
            order[[i, j]] = order[[j, i]]
            if (changed := cost(order)) <= value:
                value = changed
            else:
                order[[i, j]] = order[[j, i]]
        if value < lowest:
            best, lowest = order.copy(), value
    return chosen[best]


def _put_first_levels_first(levels: Levels, n_levels: Sequence[int]) -> Levels:
    """Exchange the names of two levels of each factor so that the first run has level 0 throughout."""
    renamed = levels.copy()
    for i in range(len(n_levels)):
        first = levels[0, i]
        renamed[levels[:, i] == first, i] = 0
        renamed[levels[:, i] == 0, i] = first
    return renamed


def _code_levels(column: Levels, n_levels: int) -> NDArray[np.float64]:
    """Orthonormal contrasts of a factor's levels, one column fewer than levels."""
    basis = np.linalg.qr(np.column_stack([np.ones(n_levels), np.eye(n_levels)[:, : n_levels - 1]]))[0][:, 1:]
    return np.asarray(basis[column] * np.sqrt(n_levels))


def assign_cells(levels: Levels, n_cells: int, seed: int) -> NDArray[np.bool_]:
    """Choose the runs in which each cell is asked: eight, which have each level of a factor about equally often.

    Fewer runs are all asked. If eight divides their number, neighbouring cells share a division of all runs into groups
    of eight. So runs have equal numbers of cells, up to one, in any stretch of cells that is as long as the number of
    groups, such as a country's.

    Returns:
        Whether a run (row) asks a cell (column).
    """
    rng = np.random.default_rng(seed)
    n_runs = len(levels)
    is_asked = np.zeros((n_runs, n_cells), bool)
    if n_runs % RUNS_PER_CELL or n_runs <= RUNS_PER_CELL:
        for cell in range(n_cells):
            order = np.lexsort((rng.permutation(n_runs), is_asked.sum(axis=1)))
            is_asked[order[:RUNS_PER_CELL], cell] = True
        return is_asked
    n_groups = n_runs // RUNS_PER_CELL
    indicators = np.hstack([column[:, None] == np.unique(column) for column in levels.T]).astype(float)
    divisions = [_divide_runs(indicators, n_groups, rng) for _ in range(_N_PARTITIONS)]
    for start in range(0, n_cells, n_groups):
        division = divisions[rng.integers(len(divisions))]
        for cell, group in zip(range(start, min(start + n_groups, n_cells)), rng.permutation(n_groups), strict=False):
            is_asked[division[group], cell] = True
    return is_asked


def _divide_runs(indicators: NDArray[np.float64], n_groups: int, rng: np.random.Generator) -> NDArray[np.int_]:
    """Divide runs at random into equal groups in which levels are as frequent as in all runs."""
    divisions = [_exchange_runs(indicators, n_groups, rng) for _ in range(_N_STARTS)]
    return min(divisions, key=lambda division: division[0])[1]


def _exchange_runs(
    indicators: NDArray[np.float64], n_groups: int, rng: np.random.Generator
) -> tuple[float, NDArray[np.int_]]:
    """Exchange runs of random groups while these become more alike; return how much they differ, and the groups."""
    n_runs = len(indicators)
    expected = indicators.sum(axis=0) / n_groups
    order = rng.permutation(n_runs)
    sums = indicators[order].reshape(n_groups, RUNS_PER_CELL, -1).sum(axis=1)
    for i, j in rng.integers(n_runs, size=(_N_SWAPS, 2)):
        first, second = i // RUNS_PER_CELL, j // RUNS_PER_CELL
        if first == second:
            continue
        difference = indicators[order[j]] - indicators[order[i]]
        off_first, off_second = sums[first] - expected, sums[second] - expected
        change = ((off_first + difference) ** 2 - off_first**2 + (off_second - difference) ** 2 - off_second**2).sum()
        if change <= 0:
            order[[i, j]] = order[[j, i]]
            sums[first] += difference
            sums[second] -= difference
    return float(((sums - expected) ** 2).sum()), np.asarray(order.reshape(n_groups, RUNS_PER_CELL))


def list_confounding(levels: Mapping[str, Sequence[object]]) -> list[Confounding]:
    """Compare the effect of each factor with those of other factors and of all interactions of two others.

    Args:
        levels: the level of each factor in every run.

    Returns:
        Pairs of effects with at least `MIN_SHARE` in common, the most confounded first.
    """
    codes = {
        name: np.unique([str(value) for value in values], return_inverse=True)[1] for name, values in levels.items()
    }
    effects = {name: _code_levels(code, int(code.max()) + 1) for name, code in codes.items()}
    rows = []
    for name, effect in effects.items():
        others = [other for other in effects if other != name]
        terms: dict[tuple[str, ...], NDArray[np.float64]] = {
            (other,): effects[other] for other in others if list(effects).index(other) > list(effects).index(name)
        }
        for first, second in itertools.combinations(others, 2):
            products = [a * b for a in effects[first].T for b in effects[second].T]
            terms[first, second] = np.column_stack(products)
        rows += [Confounding(name, term, _largest_shared(effect, columns)) for term, columns in terms.items()]
    return sorted((row for row in rows if row.share >= MIN_SHARE), key=lambda row: -row.share)


def _largest_shared(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Largest squared canonical correlation of two sets of columns."""
    bases = [_orthonormal(columns - columns.mean(axis=0)) for columns in (first, second)]
    if not all(basis.size for basis in bases):
        return 0.0
    return float(min(1.0, np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)[0] ** 2))


def _orthonormal(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orthonormal basis of the space of some columns; without columns if they are all zero."""
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > 1e-9])
