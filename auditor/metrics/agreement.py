"""Agreement of raters beyond chance: Fleiss' kappa, Krippendorff's alpha and Gwet's AC1, with bootstrap intervals.

Choosing a coefficient: when nearly all verdicts are the same, kappa and alpha fall although the raters hardly differ
(the prevalence paradox), but AC1 does not: read them together, next to the prevalence. For scores use alpha at the
"interval" level, for ranked categories "ordinal", else "nominal". The bootstrap resamples items: intervals hold for
other items rated by the same raters.
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
"""From item weights, shape (replicates, items), to coefficients, shape (replicates,), nan if undefined.

A weight says how often the item counts.
"""

_MAX_CHUNK_CELLS = 4_000_000
"""Numbers held in memory at once while resampling: 32 MB."""

_MAX_UNDEFINED_SHARE = 0.05
"""No interval when a larger share of resamples has no value, since the others say too little about the spread."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient of agreement, at most 1, with a 95% interval; `reason` says why something is None.

    Attributes:
        n_items: items with at least two ratings.
        n_ratings: ratings of these items.
        n_dropped: the other items, which carry no information on agreement.
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
    """Count how many raters put each item into each category.

    Args:
        ratings: shape (raters, items), numbers; nan where a rater gave none.

    Returns:
        Shape (items, categories), the categories being the values that occur, sorted.
    """
    return _count_by_category(_as_ratings(ratings))[0]


def fleiss_kappa(counts: ArrayLike, *, replicates: int = 2000, seed: int = 0) -> Agreement:
    """Fleiss' kappa (Psychological Bulletin 76, 1971, 378-382), for panels of any size.

    When panel sizes differ, every item has the same weight, in the agreement and in the prevalence (Gwet, Handbook of
    Inter-Rater Reliability, 2014, ch. 2); with equal sizes this is Fleiss' own definition.

    Args:
        counts: shape (items, categories): ratings of the item in the category, as from `count_ratings`.
        replicates, seed: of the bootstrap over items.

    Raises:
        ValueError: not a table of counts.
    """
    count_table = np.asarray(counts, dtype=np.float64)
    if count_table.ndim != 2 or not np.all(
        np.isfinite(count_table) & (count_table >= 0) & (count_table == np.round(count_table))
    ):
        raise ValueError("counts must be a table (items, categories) of whole numbers, none negative")

    def make_coefficient(item_counts: Floats) -> CoefficientFunction:
        pair_agreement, category_shares = (
            _agreeing_pair_share(item_counts),
            item_counts / item_counts.sum(axis=1, keepdims=True),
        )

        def kappa(weights: Floats) -> Floats:
            """Kappa for item weights, shape (replicates, items)."""
            n_items = weights.sum(axis=1)
            chance = (((weights @ category_shares) / n_items[:, None]) ** 2).sum(axis=1)
            return _safe_divide((weights @ pair_agreement) / n_items - chance, 1 - chance)

        return kappa

    return _estimate_agreement(count_table, make_coefficient, replicates, seed)


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

    def make_coefficient(item_counts: Floats) -> CoefficientFunction:
        return (
            _make_nominal_alpha(item_counts)
            if level == "nominal"
            else _make_distance_alpha(item_counts, values, ordinal=level == "ordinal")
        )

    return _estimate_agreement(counts, make_coefficient, replicates, seed)


def gwet_ac1(ratings: ArrayLike, categories: int | None = None, *, replicates: int = 2000, seed: int = 0) -> Agreement:
    """Gwet's AC1 (British J. of Mathematical and Statistical Psychology 61, 2008, 29-48, eq. 7).

    Args:
        ratings: shape (raters, items), numbers that name categories; nan where a rater gave none.
        categories: number of categories that raters can choose from; by default those that occur.
        replicates, seed: of the bootstrap over items.

    Raises:
        ValueError: not a table, an infinite rating, or fewer categories than occur.
    """
    counts, values = _count_by_category(_as_ratings(ratings))
    n_categories = len(values) if categories is None else categories
    if n_categories < len(values):
        raise ValueError(f"{len(values)} categories occur, but there are said to be {n_categories}")

    def make_coefficient(item_counts: Floats) -> CoefficientFunction:
        pair_agreement, category_shares = (
            _agreeing_pair_share(item_counts),
            item_counts / item_counts.sum(axis=1, keepdims=True),
        )

        def ac1(weights: Floats) -> Floats:
            """AC1 for item weights, shape (replicates, items)."""
            n_items = weights.sum(axis=1)
            prevalence = (weights @ category_shares) / n_items[:, None]
            chance = (prevalence * (1 - prevalence)).sum(axis=1) / (n_categories - 1)
            return _safe_divide((weights @ pair_agreement) / n_items - chance, 1 - chance)

        return ac1

    return _estimate_agreement(counts, make_coefficient, replicates, seed)


def leave_one_rater_out(
    ratings: ArrayLike, statistic: Callable[[Floats], Agreement] = krippendorff_alpha
) -> tuple[Agreement, ...]:
    """Compute the agreement of the other raters with each rater left out in turn.

    If agreement rises without a rater, that rater disagrees with the others.

    Args:
        ratings: shape (raters, items); nan where a rater gave none.
        statistic: from such a table to an agreement.
    """
    table = _as_ratings(ratings)
    return tuple(statistic(np.delete(table, i, axis=0)) for i in range(len(table)))


def _as_ratings(ratings: ArrayLike) -> Floats:
    """Ratings as a float array, shape (raters, items); ValueError for another shape or an infinite rating."""
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("ratings must be a table (raters, items) of numbers, nan where there is none")
    return table


def _count_by_category(ratings: Floats) -> tuple[Floats, Floats]:
    """Counts, shape (items, categories), and the sorted values of the categories."""
    rater, item = np.nonzero(~np.isnan(ratings))
    values, category = np.unique(ratings[rater, item], return_inverse=True)
    n_items, n_categories = ratings.shape[1], len(values)
    counts = np.bincount(item * n_categories + category, minlength=n_items * n_categories).reshape(
        n_items, n_categories
    )
    return counts.astype(np.float64), values


def _estimate_agreement(
    counts: Floats, make_coefficient: Callable[[Floats], CoefficientFunction], replicates: int, seed: int
) -> Agreement:
    """The coefficient over items with at least two ratings, with its bootstrap interval over items.

    Args:
        counts: shape (items, categories).
        make_coefficient: from counts of items to the coefficient as a function of the items' weights.
    """
    pairable_counts = counts[counts.sum(axis=1) >= 2]
    n_items, n_ratings, n_dropped = len(pairable_counts), int(pairable_counts.sum()), len(counts) - len(pairable_counts)
    if n_items == 0:
        return Agreement(None, None, None, 0, 0, n_dropped, (), "no item has 2 ratings")
    prevalence = tuple(float(share) for share in pairable_counts.sum(axis=0) / n_ratings)
    if max(prevalence) == 1:
        return Agreement(None, None, None, n_items, n_ratings, n_dropped, prevalence, "all ratings are the same")
    # Items with the same counts are computed once: thousands of items have only a few patterns.
    patterns, frequencies = _unique_rows(pairable_counts)
    coefficient = make_coefficient(patterns)
    value = float(coefficient(frequencies[None, :].astype(np.float64))[0])
    low, high, reason = _bootstrap_interval(
        coefficient, frequencies / n_items, n_items, replicates, max(1, _MAX_CHUNK_CELLS // max(patterns.shape)), seed
    )
    return Agreement(value, low, high, n_items, n_ratings, n_dropped, prevalence, reason)


def _unique_rows(counts: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The distinct rows of a table of counts, sorted, and how often each occurs.

    Rows are encoded as single integers where they fit into 62 bits, which is faster to sort.
    """
    base, n_columns = int(counts.max()) + 1, counts.shape[1]
    if base**n_columns >= 2**62:
        patterns, frequencies = np.unique(counts, axis=0, return_counts=True)
        return patterns, frequencies
    codes = counts.astype(np.int64) @ np.array([base**i for i in reversed(range(n_columns))], dtype=np.int64)
    _, first_index, frequencies = np.unique(codes, return_index=True, return_counts=True)
    return counts[first_index], frequencies


def _bootstrap_interval(
    coefficient: CoefficientFunction, shares: Floats, n: int, replicates: int, chunk_size: int, seed: int
) -> tuple[float | None, float | None, str | None]:
    """The 95% percentile interval over resampled items, or None, None and a reason.

    Args:
        coefficient: of item weights.
        shares: shape (patterns,), share of each pattern of counts among the items.
        n: number of items to draw in each resample.
        chunk_size: resamples computed at once.
    """
    rng = np.random.default_rng(seed)
    chunk_sizes = [min(chunk_size, replicates - start) for start in range(0, replicates, chunk_size)]
    values = np.concatenate([coefficient(rng.multinomial(n, shares, size).astype(np.float64)) for size in chunk_sizes])
    defined = values[~np.isnan(values)]
    if len(defined) < (1 - _MAX_UNDEFINED_SHARE) * replicates:
        return None, None, "too few items differ for an interval: many resamples hold one category only"
    low, high = np.quantile(defined, (0.025, 0.975))
    if high - low < 1e-12:
        return None, None, "every resample gives the same value: no interval"
    return float(low), float(high), None


def _agreeing_pair_share(counts: Floats) -> Floats:
    """Share of each item's pairs of ratings that agree, shape (items,)."""
    n_ratings = counts.sum(axis=1)
    share: Floats = ((counts**2).sum(axis=1) - n_ratings) / (n_ratings * (n_ratings - 1))
    return share


def _make_nominal_alpha(counts: Floats) -> CoefficientFunction:
    """Krippendorff's alpha for categories as a function of item weights; two ratings either agree or disagree."""
    n_ratings = counts.sum(axis=1)
    disagreement = (n_ratings * n_ratings - (counts**2).sum(axis=1)) / (n_ratings - 1)

    def alpha(weights: Floats) -> Floats:
        """1 - observed / expected disagreement, for item weights of shape (replicates, items)."""
        category_totals = weights @ counts
        total = category_totals.sum(axis=1)
        return 1 - _safe_divide((total - 1) * (weights @ disagreement), total**2 - (category_totals**2).sum(axis=1))

    return alpha


def _make_distance_alpha(counts: Floats, category_values: Floats, *, ordinal: bool) -> CoefficientFunction:
    """Krippendorff's alpha of squared distances between values, or midranks if `ordinal`, by item weights."""
    n_ratings = counts.sum(axis=1)
    weighted_counts = counts * (n_ratings / (n_ratings - 1))[:, None]

    def alpha(weights: Floats) -> Floats:
        """1 - observed / expected disagreement, for item weights of shape (replicates, items)."""
        category_totals = weights @ counts
        total = category_totals.sum(axis=1)
        position = (
            np.cumsum(category_totals, axis=1) - category_totals / 2
            if ordinal
            else np.broadcast_to(category_values, category_totals.shape)
        )
        position = position - (category_totals * position).sum(axis=1, keepdims=True) / total[:, None]
        observed = (position**2 * (weights @ weighted_counts)).sum(axis=1) - (weights * (position @ counts.T) ** 2) @ (
            1 / (n_ratings - 1)
        )
        return 1 - _safe_divide((total - 1) * observed, total * (category_totals * position**2).sum(axis=1))

    return alpha


def _safe_divide(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient; nan where the denominator is 0 up to rounding."""
    defined = denominator > 1e-12
    return np.where(defined, numerator / np.where(defined, denominator, 1.0), np.nan)
