"""When enough has been asked: samples of a cell by the error of their mean, cells by the width of r's interval.

Whether to go on depends on what was seen, so that what is seen at the end leans: samples that happen to agree end a
cell, and an r that happens to be high has a narrow interval. How much that is worth, in bias and in intervals that
miss, is in `benchmarks/bench_savings.py`; few looks, each at a fifth more cells than the last, keep it small.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.correlation import pearson

FIRST_INTERIM_LOOK = 64
"""Cells before which no interval is looked at."""


def is_settled(scores: ArrayLike, tolerance: float) -> bool:
    """Whether the standard error of a mean, s / sqrt(n), is at most `tolerance`; never for fewer than two scores.

    Args:
        scores: shape (n,), those that could be read; nan is left out.
        tolerance: at least 0, on the scale of the scores.
    """
    values = np.asarray(scores, dtype=np.float64)
    known = values[~np.isnan(values)]
    return len(known) > 1 and bool(known.std(ddof=1) <= tolerance * np.sqrt(len(known)) + 1e-12)


def is_narrow(scores: Sequence[ArrayLike], truth: ArrayLike, width: float) -> bool:
    """Whether the 95% interval of every model's r with people, Fisher's, is at most so wide; never where one has none.

    Args:
        scores: for each model, shape (n,); nan where a cell has no score.
        truth: shape (n,).
        width: upper less lower end.
    """
    found = [pearson(column, truth) for column in scores]
    return all(
        r.ci_low is not None and r.ci_high is not None and r.ci_high - r.ci_low <= width + 1e-12 for r in found
    ) and bool(found)


def next_interim_look(n_asked: int, n_cells: int) -> int:
    """Cells after which the interval is looked at next: a fifth more than now."""
    return min(n_cells, max(FIRST_INTERIM_LOOK, n_asked + -(-n_asked // 5)))


def stratified_order(strata: Sequence[Hashable], seed: int) -> NDArray[np.intp]:
    """An order in which any first part has its share of every stratum, but for one item each.

    Items of a stratum are shuffled and set at even distances from a random start; systematic sampling (Cochran,
    Sampling Techniques, 3rd ed. 1977, ch. 8).

    Args:
        strata: of each item.
        seed: of the shuffles and starts. Equal items and seed give the same order.

    Returns:
        Shape (items,): positions in the given sequence.
    """
    rng = np.random.default_rng(seed)
    place: Floats = np.empty(len(strata))
    members: dict[Hashable, list[int]] = {}
    for i, stratum in enumerate(strata):
        members.setdefault(stratum, []).append(i)
    for items in members.values():
        place[rng.permutation(items)] = (np.arange(len(items)) + rng.random()) / len(items)
    return np.argsort(place, kind="stable")
