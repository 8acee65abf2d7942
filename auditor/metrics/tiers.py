"""Models in tiers: which can be told apart from the best, and how sure each one's rank is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._crossed import table_of, weigh
from auditor.metrics._pairs import Floats, complete
from auditor.metrics.bootstrap import MAX_UNDEFINED, MIN_CLUSTERS, Statistic, holm

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Tiers:
    """Models by a figure over the cells that all of them have, shape (models,) each; `reason` says why one is None.

    Attributes:
        values: the figure of each; nan where it is undefined.
        tiers: from 1, the best; None where nothing can be told apart for want of countries or topics.
        rank_low, rank_high: 95% interval of each one's rank, 1 being the best.
        first: share of resamples in which it is the best.
    """

    values: Floats
    tiers: NDArray[np.intp] | None
    rank_low: NDArray[np.intp] | None
    rank_high: NDArray[np.intp] | None
    first: Floats | None
    n_cells: int
    n_countries: int
    n_topics: int
    reason: str | None = None


def model_tiers(
    statistic: Statistic,
    scores: Sequence[ArrayLike],
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    *,
    larger_is_better: bool,
    replicates: int = 2000,
    seed: int = 0,
) -> Tiers:
    """Models in tiers, by paired resampling of countries and topics as `crossed_interval` does it.

    The first tier is the best model and those next to it that cannot be told apart from it: the paired difference from
    the best has a p-value, by the share of resamples on the other side of zero, of at least 0.05 after Holm's
    correction for the models that are compared with it. The best of the rest begins the next tier.

    Args:
        scores: one array of shape (n,) a model; cells in which any of them or the truth is nan are left out.
        truth, countries, topics, replicates, seed: as for `crossed_interval`.
        larger_is_better: True for a correlation, False for an error.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    *models, y = complete(*scores, truth)[0]
    keep = complete(*scores, truth)[1]
    table = table_of(countries, topics, keep)
    sizes = (len(y), table.n_countries, table.n_topics)
    grids = [table.grid(statistic.moments(x, y)) for x in models]

    def values(rows: Floats, columns: Floats) -> Floats:
        return np.stack([statistic.value(weigh(grid, rows, columns)) for grid in grids], axis=1)

    if not len(y):
        nothing = np.full(len(models), np.nan)
        return Tiers(nothing, None, None, None, None, *sizes, "no cell has a score of all models")
    found = values(np.ones((1, table.n_countries)), np.ones((1, table.n_topics)))[0]
    if min(table.n_countries, table.n_topics) < MIN_CLUSTERS:
        reason = f"tiers need {MIN_CLUSTERS} countries and topics that all models have"
        return Tiers(found, None, None, None, None, *sizes, reason)
    drawn = values(*table.draw(np.random.default_rng(seed), max(replicates, 40 * len(models))))
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    if np.isnan(found).any() or len(drawn) < (1 - MAX_UNDEFINED) * replicates:
        return Tiers(found, None, None, None, None, *sizes, "the figure of a model is undefined")
    sign = 1.0 if larger_is_better else -1.0
    return _tiers(found, sign * found, sign * drawn, sizes)


def _tiers(values: Floats, goodness: Floats, drawn: Floats, sizes: tuple[int, int, int]) -> Tiers:
    ranks = (-drawn).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable") + 1
    low, high = np.quantile(ranks, (0.025, 0.975), axis=0, method="nearest").astype(np.intp)
    tiers = np.zeros(len(values), dtype=np.intp)
    order, tier = list(np.argsort(-goodness, kind="stable")), 0
    while order:
        tier += 1
        head, rest = order[0], order[1:]
        p = holm([_p_value(drawn[:, head] - drawn[:, other]) for other in rest])
        end = next((i for i, value in enumerate(p) if value < LEVEL), len(rest))
        tiers[order[: end + 1]] = tier
        order = rest[end:]
    return Tiers(values, tiers, low, high, (ranks == 1).mean(axis=0), *sizes)


def _p_value(differences: Floats) -> float:
    rarer = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(differences) + 1))
