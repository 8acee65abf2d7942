"""How far raters agree beyond chance: Fleiss' kappa, Krippendorff's alpha, Gwet's AC1, with item-bootstrap intervals.

Which one? With verdicts that are nearly all the same, kappa and alpha fall although raters hardly differ (the
prevalence paradox); AC1 does not: read them together, beside the prevalence. For scores choose alpha at the "interval"
level, for ranked categories "ordinal", else "nominal". The intervals speak of other items and the same raters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats

MeasurementLevel = Literal["nominal", "ordinal", "interval"]

CoefficientFunction = Callable[[Floats], Floats]
"""From how often each item counts, shape (replicates, items), to the values, shape (replicates,), nan if undefined."""

_MAX_CHUNK_CELLS = 4_000_000
"""Numbers held at once while resampling: 32 MB."""

_MAX_UNDEFINED_SHARE = 0.05
"""Above this share of resamples without a value, the rest say too little about the spread."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient of agreement, at most 1, with a 95% interval; `reason` says why something is None.

    Attributes:
        n_items: items with at least two ratings; the others, `n_dropped`, say nothing on agreement.
        n_ratings: ratings of these items.
        prevalence: share of each category in the ratings, in the order of the columns or of the sorted values.
    """

    value: float | None
    ci_low: float | None
    ci_high: float | None
    n_items: int
    n_ratings: int
    n_dropped: int
    prevalence: tuple[float, ...]
    reason: str | None = None


def count_ratings(ratings: ArrayLike) -> Floats:
    """How many raters put each item into each category.

    Args:
        ratings: shape (raters, items), numbers; nan where a rater gave none.

    Returns:
        Shape (items, categories), the categories being the values that occur, sorted.
    """
    return _count_by_category(_as_ratings(ratings))[0]


def fleiss_kappa(counts: ArrayLike, *, replicates: int = 2000, seed: int = 0) -> Agreement:
    """Fleiss' kappa (Psychological Bulletin 76, 1971, 378-382), for panels of any size.

    With panels of different sizes every item weighs the same, in the agreement and in the prevalence (Gwet, Handbook
    of Inter-Rater Reliability, 2014, ch. 2); with equal ones this is Fleiss' own.

    Args:
        counts: shape (items, categories): ratings of the item in the category, as from `count_ratings`.
        replicates, seed: of the bootstrap over items.

    Raises:
        ValueError: not a table of counts.
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not np.all(np.isfinite(table) & (table >= 0) & (table == np.round(table))):
        raise ValueError("counts must be a table (items, categories) of whole numbers, none negative")

    def statistic(kept: Floats) -> CoefficientFunction:
        agree, shares = _agreeing_pair_share(kept), kept / kept.sum(axis=1, keepdims=True)

        def kappa(weights: Floats) -> Floats:
            items = weights.sum(axis=1)
            chance = (((weights @ shares) / items[:, None]) ** 2).sum(axis=1)
            return _safe_divide((weights @ agree) / items - chance, 1 - chance)

        return kappa

    return _estimate_agreement(table, statistic, replicates, seed)


def krippendorff_alpha(
    ratings: ArrayLike, level: MeasurementLevel = "nominal", *, replicates: int = 2000, seed: int = 0
) -> Agreement:
    """Krippendorff's alpha, 1 - observed / expected disagreement (Content Analysis, 4th ed. 2019, ch. 12).

    Args:
        ratings: shape (raters, items), numbers; nan where a rater gave none.
        level: "nominal" for categories, "ordinal" for ranks, "interval" for scores.
        replicates, seed: of the bootstrap over items.

    Raises:
        ValueError: not a table, an infinite rating, or an unknown level.
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise ValueError(f"level must be nominal, ordinal or interval, but got {level!r}")
    counts, values = _count_by_category(_as_ratings(ratings))

    def statistic(kept: Floats) -> CoefficientFunction:
        return (
            _make_nominal_alpha(kept)
            if level == "nominal"
            else _make_distance_alpha(kept, values, ordinal=level == "ordinal")
        )

    return _estimate_agreement(counts, statistic, replicates, seed)


def gwet_ac1(ratings: ArrayLike, categories: int | None = None, *, replicates: int = 2000, seed: int = 0) -> Agreement:
    """Gwet's AC1 (British J. of Mathematical and Statistical Psychology 61, 2008, 29-48, eq. 7).

    Args:
        ratings: shape (raters, items), numbers that name categories; nan where a rater gave none.
        categories: how many there are to choose from; those that occur, if not given.
        replicates, seed: of the bootstrap over items.

    Raises:
        ValueError: not a table, an infinite rating, or fewer categories than occur.
    """
    counts, values = _count_by_category(_as_ratings(ratings))
    q = len(values) if categories is None else categories
    if q < len(values):
        raise ValueError(f"{len(values)} categories occur, but there are said to be {q}")

    def statistic(kept: Floats) -> CoefficientFunction:
        agree, shares = _agreeing_pair_share(kept), kept / kept.sum(axis=1, keepdims=True)

        def ac1(weights: Floats) -> Floats:
            items = weights.sum(axis=1)
            share = (weights @ shares) / items[:, None]
            chance = (share * (1 - share)).sum(axis=1) / (q - 1)
            return _safe_divide((weights @ agree) / items - chance, 1 - chance)

        return ac1

    return _estimate_agreement(counts, statistic, replicates, seed)


def leave_one_rater_out(
    ratings: ArrayLike, statistic: Callable[[Floats], Agreement] = krippendorff_alpha
) -> tuple[Agreement, ...]:
    """The agreement of the others, once for each rater left out: a rise names a rater who stands apart.

    Args:
        ratings: shape (raters, items); nan where a rater gave none.
        statistic: from such a table to an agreement.
    """
    table = _as_ratings(ratings)
    return tuple(statistic(np.delete(table, i, axis=0)) for i in range(len(table)))


def _as_ratings(ratings: ArrayLike) -> Floats:
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("ratings must be a table (raters, items) of numbers, nan where there is none")
    return table


def _count_by_category(ratings: Floats) -> tuple[Floats, Floats]:
    """Counts, shape (items, categories), and the sorted values that the categories stand for."""
    rater, item = np.nonzero(~np.isnan(ratings))
    values, category = np.unique(ratings[rater, item], return_inverse=True)
    items, k = ratings.shape[1], len(values)
    counts = np.bincount(item * k + category, minlength=items * k).reshape(items, k)
    return counts.astype(np.float64), values


def _estimate_agreement(
    counts: Floats, make_coefficient: Callable[[Floats], CoefficientFunction], replicates: int, seed: int
) -> Agreement:
    kept = counts[counts.sum(axis=1) >= 2]
    n, ratings, dropped = len(kept), int(kept.sum()), len(counts) - len(kept)
    if n == 0:
        return Agreement(None, None, None, 0, 0, dropped, (), "no item has 2 ratings")
    prevalence = tuple(float(s) for s in kept.sum(axis=0) / ratings)
    if max(prevalence) == 1:
        return Agreement(None, None, None, n, ratings, dropped, prevalence, "all ratings are the same")
    # Items with the same counts are one: a few patterns stand for thousands of items.
    patterns, times = _unique_rows(kept)
    value_of = make_coefficient(patterns)
    value = float(value_of(times[None, :].astype(np.float64))[0])
    low, high, reason = _bootstrap_interval(
        value_of, times / n, n, replicates, max(1, _MAX_CHUNK_CELLS // max(patterns.shape)), seed
    )
    return Agreement(value, low, high, n, ratings, dropped, prevalence, reason)


def _unique_rows(counts: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The different rows in their order, and how often each is there; rows are numbers of a base where that fits."""
    base, width = int(counts.max()) + 1, counts.shape[1]
    if base**width >= 2**62:
        patterns, times = np.unique(counts, axis=0, return_counts=True)
        return patterns, times
    codes = counts.astype(np.int64) @ np.array([base**i for i in reversed(range(width))], dtype=np.int64)
    _, first, times = np.unique(codes, return_index=True, return_counts=True)
    return counts[first], times


def _bootstrap_interval(
    coefficient: CoefficientFunction, shares: Floats, n: int, replicates: int, chunk_size: int, seed: int
) -> tuple[float | None, float | None, str | None]:
    """The 95% percentile interval over resampled items."""
    rng = np.random.default_rng(seed)
    sizes = [min(chunk_size, replicates - start) for start in range(0, replicates, chunk_size)]
    values = np.concatenate([coefficient(rng.multinomial(n, shares, size).astype(np.float64)) for size in sizes])
    defined = values[~np.isnan(values)]
    if len(defined) < (1 - _MAX_UNDEFINED_SHARE) * replicates:
        return None, None, "too few items differ for an interval: many resamples hold one category only"
    low, high = np.quantile(defined, (0.025, 0.975))
    if high - low < 1e-12:
        return None, None, "every resample gives the same value: no interval"
    return float(low), float(high), None


def _agreeing_pair_share(counts: Floats) -> Floats:
    m = counts.sum(axis=1)
    share: Floats = ((counts**2).sum(axis=1) - m) / (m * (m - 1))
    return share


def _make_nominal_alpha(counts: Floats) -> CoefficientFunction:
    m = counts.sum(axis=1)
    disagree = (m * m - (counts**2).sum(axis=1)) / (m - 1)

    def alpha(weights: Floats) -> Floats:
        n = weights @ counts
        total = n.sum(axis=1)
        return 1 - _safe_divide((total - 1) * (weights @ disagree), total**2 - (n**2).sum(axis=1))

    return alpha


def _make_distance_alpha(counts: Floats, category_values: Floats, *, ordinal: bool) -> CoefficientFunction:
    """Both levels measure squared distances: "interval" between values, "ordinal" between their midranks."""
    m = counts.sum(axis=1)
    weighted = counts * (m / (m - 1))[:, None]

    def alpha(weights: Floats) -> Floats:
        n = weights @ counts
        total = n.sum(axis=1)
        place = np.cumsum(n, axis=1) - n / 2 if ordinal else np.broadcast_to(category_values, n.shape)
        place = place - (n * place).sum(axis=1, keepdims=True) / total[:, None]
        within = (place**2 * (weights @ weighted)).sum(axis=1) - (weights * (place @ counts.T) ** 2) @ (1 / (m - 1))
        return 1 - _safe_divide((total - 1) * within, total * (n * place**2).sum(axis=1))

    return alpha


def _safe_divide(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient; nan where there is nothing to divide by, up to rounding."""
    defined = denominator > 1e-12
    return np.where(defined, numerator / np.where(defined, denominator, 1.0), np.nan)
