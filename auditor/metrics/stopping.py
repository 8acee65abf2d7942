"""Stopping rules: samples of a cell by the standard error of their mean, cells by the width of r's interval.

Stopping depends on the data, so the estimates at the end are biased: samples that happen to agree end a cell, and an r
that happens to be high has a narrow interval. `benchmarks/bench_savings.py` measures the bias and the loss of
coverage; few interim looks, each at a fifth more cells than the last, keep them small.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.correlation import pearson

FIRST_INTERIM_LOOK = 64
"""Number of cells at the first interim look."""


def is_settled(scores: ArrayLike, tolerance: float) -> bool:
    """Whether the standard error of a mean, s / sqrt(n), is at most `tolerance`; never for fewer than two scores.

    Args:
        scores: shape (n,), scores of the samples; nan is left out.
        tolerance: at least 0, on the scale of the scores.
    """
    values = np.asarray(scores, dtype=np.float64)
    present = values[~np.isnan(values)]
    return len(present) > 1 and bool(present.std(ddof=1) <= tolerance * np.sqrt(len(present)) + 1e-12)


def is_narrow(scores: Sequence[ArrayLike], truth: ArrayLike, width: float) -> bool:
    """Whether the 95% Fisher interval of every model's r with people has at most this width; False if one has none.

    Fisher's interval takes cells as independent. It is not the interval that a report prints, which is over countries
    and topics, and usually wider.

    Args:
        scores: for each model, shape (n,); nan where a cell has no score.
        truth: shape (n,).
        width: upper minus lower end.
    """
    correlations = [pearson(column, truth) for column in scores]
    return all(
        r.ci_low is not None and r.ci_high is not None and r.ci_high - r.ci_low <= width + 1e-12 for r in correlations
    ) and bool(correlations)


def next_interim_look(n_asked: int, n_cells: int) -> int:
    """Number of cells at the next interim look: a fifth more than now."""
    return min(n_cells, max(FIRST_INTERIM_LOOK, n_asked + -(-n_asked // 5)))


def stratified_order(strata: Sequence[Hashable], seed: int) -> NDArray[np.intp]:
    """An order in which every leading part contains each stratum in proportion, within one item.

    Items of a stratum are shuffled and placed at equal distances from a random start: systematic sampling (Cochran,
    Sampling Techniques, 3rd ed. 1977, ch. 8).

    Args:
        strata: of each item.
        seed: of the shuffles and starts. Equal items and seed give the same order.

    Returns:
        Shape (items,): positions in the input sequence.
    """
    rng = np.random.default_rng(seed)
    position: Floats = np.empty(len(strata))
    members: dict[Hashable, list[int]] = {}
    for i, stratum in enumerate(strata):
        members.setdefault(stratum, []).append(i)
    for items in members.values():
        position[rng.permutation(items)] = (np.arange(len(items)) + rng.random()) / len(items)
    return np.argsort(position, kind="stable")
