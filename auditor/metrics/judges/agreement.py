"""Agreement of raters beyond chance: Fleiss' kappa, Krippendorff's alpha and Gwet's AC1, with intervals over units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import PLURAL_BY_UNIT, UPPER_QUANTILE, Estimate, Floats, Tested
from auditor.metrics.intervals.jackknife_interval import (
    FISHER_Z,
    IDENTITY,
    MIN_UNITS,
    UNDEFINED_REASON,
    Labels,
    Transform,
    UnitReplicates,
    clopper_pearson,
    combine_variances,
    estimate_from_replicates,
    few_units_factor,
    jackknife_interval,
    jackknife_variance,
    replicate_over_units,
    too_few_reason,
)
from auditor.metrics.intervals.special_functions import stdtr, stdtrit


def as_ratings(ratings: ArrayLike) -> Floats:
    """Ratings as a float array, shape (raters, items); ValueError for another shape or an infinite rating."""
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("ratings must be a table (raters, items) of numbers, nan where there is none")
    return table


def rating_indicators(ratings: Floats) -> tuple[Floats, Floats]:
    """1 where a rater put an item into a category, shape (raters, items, k), and the sorted categories."""
    categories = np.unique(ratings[~np.isnan(ratings)])
    return (ratings[:, :, None] == categories).astype(np.float64), categories


def share_votes(indicators: Floats, groups: Sequence[Sequence[int]] | None) -> Floats:
    """Indicators in which each group has one vote on an item, which its members with a rating share equally.

    Args:
        indicators: shape (raters, items, k).
        groups: positions of raters; together they have all raters. By default each rater is a group.

    Raises:
        ValueError: a rater is in no group or in two.
    """
    if groups is None:
        return indicators
    if sorted(rater for group in groups for rater in group) != list(range(len(indicators))):
        raise ValueError(f"each of the {len(indicators)} raters must be in one group, but got {groups!r}")
    shared = indicators.copy()
    for group in groups:
        members = list(group)
        n_ratings = indicators[members].sum(axis=(0, 2))
        shared[members] /= np.maximum(n_ratings, 1)[None, :, None]
    return shared


MeasurementLevel = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient as a function of sums over items.

    Attributes:
        moments: shape (items, k), what is summed.
        value: from sums, shape (replicates, k), to coefficients, shape (replicates,), nan where undefined.
        scale: on which it is nearly normal.
        is_share: whether its interval is that of a share of the rarer ratings; see `estimate_two_category_agreement`.
    """

    moments: Floats
    value: Callable[[Floats], Floats]
    scale: Transform = IDENTITY
    is_share: bool = False


def make_kappa(counts: Floats) -> Coefficient:
    """Fleiss' kappa of items with at least two ratings each; counts of shape (items, categories)."""

    def kappa(sums: Floats) -> Floats:
        """Kappa from sums over items."""
        agreement, prevalence = _mean_moments(sums)
        return _beyond_chance(agreement, (prevalence**2).sum(axis=1))

    return Coefficient(_pair_moments(counts), kappa, is_share=_has_two_categories(counts))


def make_ac1(counts: Floats, n_categories: int) -> Coefficient:
    """Gwet's AC1 of items with at least two ratings each, with `n_categories` to choose from."""

    def ac1(sums: Floats) -> Floats:
        """AC1 from sums over items."""
        agreement, prevalence = _mean_moments(sums)
        return _beyond_chance(agreement, (prevalence * (1 - prevalence)).sum(axis=1) / (n_categories - 1))

    return Coefficient(_pair_moments(counts), ac1, FISHER_Z)  # near 1 where nearly all ratings are the same


def make_alpha(counts: Floats, values: Floats, level: MeasurementLevel) -> Coefficient:
    """Krippendorff's alpha of items with at least two ratings each; `values` are those of the categories."""
    if level == "ordinal":
        return _make_ordinal_alpha(counts)
    n_ratings = counts.sum(axis=1)
    if level == "nominal":  # two ratings agree or disagree
        disagreement = (n_ratings**2 - (counts**2).sum(axis=1)) / (n_ratings - 1)

        def nominal_alpha(sums: Floats) -> Floats:
            """Alpha from the sums of disagreement and of the ratings in each category."""
            total = sums[:, 1:].sum(axis=1)
            return _alpha(sums[:, 0], total, total**2 - (sums[:, 1:] ** 2).sum(axis=1))

        return Coefficient(np.column_stack([disagreement, counts]), nominal_alpha, is_share=_has_two_categories(counts))
    if level != "interval":
        assert_never(level)
    centred = values - (counts.sum(axis=0) @ values) / counts.sum()
    scaled = centred / max(float(np.abs(centred).max()), 1e-300)
    first, second = counts @ scaled, counts @ scaled**2
    # Half the squared distances of all ordered pairs of an item's ratings.
    distances = (n_ratings * second - first**2) / (n_ratings - 1)

    def interval_alpha(sums: Floats) -> Floats:
        """Alpha from the sums of distances, ratings, values and squared values."""
        return _alpha(sums[:, 0], sums[:, 1], sums[:, 1] * sums[:, 3] - sums[:, 2] ** 2)

    return Coefficient(np.column_stack([distances, n_ratings, first, second]), interval_alpha)


def _has_two_categories(counts: Floats) -> bool:
    return int((counts.sum(axis=0) > 0).sum()) == 2


def _pair_moments(counts: Floats) -> Floats:
    """What kappa and AC1 sum over items, shape (items, 2 + categories): 1, the agreeing pairs' share, the shares."""
    n_ratings = counts.sum(axis=1, keepdims=True)
    agreeing_pairs = ((counts**2).sum(axis=1, keepdims=True) - n_ratings) / (n_ratings * (n_ratings - 1))
    return np.hstack([np.ones_like(n_ratings), agreeing_pairs, counts / n_ratings])


def _mean_moments(sums: Floats) -> tuple[Floats, Floats]:
    """Mean agreement, shape (replicates,), and prevalence, shape (replicates, categories), from `_pair_moments`."""
    n_items = np.where(sums[:, :1] > 0.5, sums[:, :1], np.nan)  # nan where no item is left
    return sums[:, 1] / n_items[:, 0], sums[:, 2:] / n_items


def _beyond_chance(agreement: Floats, chance: Floats) -> Floats:
    """Agreement beyond chance, 1 for complete agreement; nan where chance agreement is complete."""
    return _safe_divide(agreement - chance, 1 - chance)


def _make_ordinal_alpha(counts: Floats) -> Coefficient:
    """Krippendorff's alpha of squared distances between midranks; what is summed are the items' coincidences."""
    n_items, k = counts.shape
    coincidences = counts[:, :, None] * counts[:, None, :]
    coincidences[:, np.arange(k), np.arange(k)] -= counts  # a rating is not paired with itself
    coincidences /= counts.sum(axis=1)[:, None, None] - 1

    def ordinal_alpha(sums: Floats) -> Floats:
        """Alpha from the sums of the ratings in each category and of the coincidences of two categories."""
        totals = sums[:, :k]
        midranks = np.cumsum(totals, axis=1) - totals / 2
        distances = (midranks[:, :, None] - midranks[:, None, :]) ** 2
        observed = (sums[:, k:].reshape(-1, k, k) * distances).sum(axis=(1, 2))
        expected = np.einsum("rc,rd,rcd->r", totals, totals, distances)  # r: replicate; c, d: categories
        return _alpha(observed, totals.sum(axis=1), expected)

    return Coefficient(np.hstack([counts, coincidences.reshape(n_items, k * k)]), ordinal_alpha)


def _alpha(observed: Floats, n_ratings: Floats, expected: Floats) -> Floats:
    """Krippendorff's alpha, 1 - observed / expected disagreement.

    Args:
        observed: sum of the distances of the ordered pairs of an item's ratings, each over the ratings minus 1.
        n_ratings: number of ratings.
        expected: sum of the distances of all ordered pairs of ratings.
    """
    return 1 - _safe_divide((n_ratings - 1) * observed, expected)


def _safe_divide(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient; nan where the denominator is 0 up to rounding."""
    defined = denominator > 1e-12
    return np.where(defined, numerator / np.where(defined, denominator, 1.0), np.nan)


def estimate_two_category_agreement(
    value: float, n: int, replicates: UnitReplicates, rarer: Floats, n_ratings: float, units: Labels
) -> Estimate:
    """Kappa or alpha of two categories with its interval over units.

    Args:
        value: the coefficient over all rows; n: what the estimate counts, such as items.
        replicates: the coefficient without each unit and each cell.
        rarer: shape (rows,), ratings of each row in the category that is the rarer one over all rows.
        n_ratings: ratings of all rows.
        units: for each kind of unit, the unit of each row, shape (rows,).

    Returns:
        No interval, with a reason, below 5 units of a kind, where the rarer ratings are in fewer than 5 units of a
        kind, or where the coefficient is undefined with a unit left out.
    """
    n_units = {unit: len(values) for unit, values in replicates.units.items()}
    n_with_rarer = {unit: len(np.unique(np.asarray(labels)[rarer > 0])) for unit, labels in units.items()}
    reason = too_few_reason({unit: [k] for unit, k in n_units.items()}) or _few_rarer_reason(n_with_rarer)
    by_cell = [] if replicates.cells is None else [replicates.cells]
    if reason is None and not all(np.isfinite(values).all() for values in [*replicates.units.values(), *by_cell]):
        reason = UNDEFINED_REASON
    if reason is not None:
        return Estimate(value, n, reason=reason)
    variances = [jackknife_variance([values]) for values in replicates.units.values()]
    variance = float(combine_variances(variances, jackknife_variance(by_cell)))
    n_rarer = float(rarer.sum())
    common_share = 1 - n_rarer / n_ratings
    specific = float(np.clip(1 - (1 - value) * common_share, 0.0, 1.0))
    specific_variance, binomial_variance = variance * common_share**2, specific * (1 - specific) / n_rarer
    if min(binomial_variance, specific_variance) > 1e-12:
        n_effective = n_rarer / max(1.0, specific_variance / binomial_variance)
    else:  # nothing shows how the rarer ratings cluster, so each unit that has one counts as one case
        n_effective = float(min(n_with_rarer.values()))
    ends = clopper_pearson(specific, n_effective * few_units_factor(min(n_units.values())))
    low, high = (1 - (1 - end) / common_share for end in ends)
    return Estimate(value, n, max(-1.0, min(low, value)), max(high, value), resampled=tuple(units))


def _few_rarer_reason(n_with_rarer: dict[str, int]) -> str | None:
    """Why there is no interval for ratings of which the rarer ones are in these numbers of units; None if enough."""
    few = [PLURAL_BY_UNIT[unit] for unit, n_units in n_with_rarer.items() if n_units < MIN_UNITS]
    if not few:
        return None
    units = " and ".join(f"fewer than {MIN_UNITS} {plural}" for plural in few)
    others = " and ".join(PLURAL_BY_UNIT[unit] for unit in n_with_rarer)
    return f"the rarer of the two ratings occurs in {units}, too few for an interval for other {others}"


RatingUnits = Mapping[str, ArrayLike]
"""For each kind of unit, such as `country`, the unit of each item, shape (items,).

The names are keys of `auditor.metrics.intervals.estimate.PLURAL_BY_UNIT`.
"""

BOUNDS = (-1.0, 1.0)
"""Smallest and largest possible coefficient."""


@dataclass(frozen=True, slots=True)
class Agreement(Estimate):
    """A coefficient of agreement, at most 1, with a 95% interval over units; `n` counts items with two ratings."""

    n_ratings: int = 0
    """Ratings of these items."""
    n_dropped: int = 0
    """The other items, which carry no information on agreement."""
    prevalence: tuple[float, ...] = ()
    """Share of each category in the ratings, in the order of the columns or of the sorted values."""


@dataclass(frozen=True, slots=True)
class LeftOutRater:
    """Agreement without one rater.

    Attributes:
        agreement: of the other raters.
        difference: that agreement minus the agreement of all raters; above 0 the others agree better without it.
    """

    agreement: Agreement
    difference: Tested


def count_ratings(ratings: ArrayLike) -> Floats:
    """Count how many raters put each item into each category.

    Args:
        ratings: shape (raters, items), numbers; nan where a rater gave none.

    Returns:
        Shape (items, categories), the categories being the values that occur, sorted.
    """
    return _count_by_category(as_ratings(ratings))[0]


def fleiss_kappa(counts: ArrayLike, *, units: RatingUnits | None = None) -> Agreement:
    """Fleiss' kappa (Psychological Bulletin 76, 1971, 378-382), for panels of any size.

    When panel sizes differ, every item has the same weight, in the agreement and in the prevalence (Gwet, Handbook of
    Inter-Rater Reliability, 2014, ch. 2); with equal sizes this is Fleiss' own definition.

    Args:
        counts: shape (items, categories): ratings of the item in the category, as from `count_ratings`.
        units: what the interval is over; by default each item is a unit.

    Raises:
        ValueError: not a table of counts, or another number of labels than of items.
    """
    count_table = np.asarray(counts, dtype=np.float64)
    if count_table.ndim != 2 or not np.all(
        np.isfinite(count_table) & (count_table >= 0) & (count_table == np.round(count_table))
    ):
        raise ValueError("counts must be a table (items, categories) of whole numbers, none negative")
    return _estimate_agreement(count_table, make_kappa, units)


def krippendorff_alpha(
    ratings: ArrayLike, level: MeasurementLevel = "nominal", *, units: RatingUnits | None = None
) -> Agreement:
    """Krippendorff's alpha, 1 - observed / expected disagreement (Content Analysis, 4th ed. 2019, ch. 12).

    Args:
        ratings: shape (raters, items), numbers; nan where a rater gave none.
        level: "nominal" for categories, "ordinal" for ranks, "interval" for scores. The memory for "ordinal" grows
            with the square of the number of categories.
        units: what the interval is over; by default each item is a unit.

    Raises:
        ValueError: not a table, an infinite rating, an unknown level, or another number of labels than of items.
    """
    return _estimate_alpha(*_count_by_category(as_ratings(ratings)), level, units)


def _estimate_alpha(counts: Floats, values: Floats, level: MeasurementLevel, units: RatingUnits | None) -> Agreement:
    """Krippendorff's alpha of the counts and values of `_count_by_category`. ValueError for an unknown level."""
    if level not in get_args(MeasurementLevel):
        raise ValueError(f"level must be one of {', '.join(get_args(MeasurementLevel))}, but got {level!r}")
    return _estimate_agreement(counts, lambda c: make_alpha(c, values, level), units)


def gwet_ac1(ratings: ArrayLike, categories: int | None = None, *, units: RatingUnits | None = None) -> Agreement:
    """Gwet's AC1 (British J. of Mathematical and Statistical Psychology 61, 2008, 29-48, eq. 7).

    If all ratings are in one of several categories, it is 1, without an interval.

    Args:
        ratings: shape (raters, items), numbers that name categories; nan where a rater gave none.
        categories: number of categories that raters can choose from; by default those that occur.
        units: what the interval is over; by default each item is a unit.

    Raises:
        ValueError: not a table, an infinite rating, fewer categories than occur, or another number of labels than of
            items.
    """
    counts, values = _count_by_category(as_ratings(ratings))
    n_categories = len(values) if categories is None else categories
    if n_categories < len(values):
        raise ValueError(f"{len(values)} categories occur, but there are said to be {n_categories}")
    agreement = _estimate_agreement(counts, lambda c: make_ac1(c, n_categories), units)
    is_unanimous = agreement.n > 0 and agreement.value is None
    return replace(agreement, value=1.0) if is_unanimous and n_categories > 1 else agreement


def leave_one_rater_out(
    ratings: ArrayLike, level: MeasurementLevel = "nominal", *, units: RatingUnits | None = None
) -> tuple[LeftOutRater, ...]:
    """Krippendorff's alpha of the other raters with each rater left out in turn, and its difference from that of all.

    Both alphas rest on the same items, so the interval of their difference comes from leaving the same units out of
    both. If agreement rises without a rater, that rater disagrees with the others.

    Args, Raises: as for `krippendorff_alpha`.
    """
    table = as_ratings(ratings)
    unit_labels = _select_units(units, np.ones(table.shape[1], dtype=np.bool_))
    counts, values = _count_by_category(table)
    panel = _estimate_alpha(counts, values, level, units)
    results = []
    panel_replicates = None if panel.value is None else _alpha_replicates(counts, values, level, unit_labels)
    for rater_ratings in table:
        others, other_values = _subtract_rater(counts, values, rater_ratings)
        without = _estimate_alpha(others, other_values, level, units)
        if panel.value is None or without.value is None or panel_replicates is None:
            reason = panel.reason if panel.value is None else without.reason
            results.append(LeftOutRater(without, Tested(None, 0, reason=reason)))
            continue
        value, reason = without.value - panel.value, panel.reason or without.reason
        if reason is not None:
            results.append(LeftOutRater(without, Tested(value, without.n, reason=reason)))
            continue
        replicates = _alpha_replicates(others, other_values, level, unit_labels).minus(panel_replicates)
        df = max(1, _count_units_with_rarer(others, unit_labels) - 1)
        results.append(LeftOutRater(without, _estimate_difference(value, without.n, replicates, df)))
    return tuple(results)


def _subtract_rater(counts: Floats, values: Floats, rater_ratings: Floats) -> tuple[Floats, Floats]:
    """Counts and values of `_count_by_category` without one rater, who is counted in them.

    Args:
        rater_ratings: shape (items,), nan where the rater gave none.
    """
    items = np.flatnonzero(~np.isnan(rater_ratings))
    others = counts.copy()
    others[items, np.searchsorted(values, rater_ratings[items])] -= 1
    occurs = others.any(axis=0)
    return (others, values) if occurs.all() else (np.compress(occurs, others, axis=1), values[occurs])


def _estimate_difference(value: float, n: int, replicates: UnitReplicates, df: int) -> Tested:
    """The difference of two alphas with its interval and p-value, by Student's distribution with `df`."""
    interval = jackknife_interval(value, replicates.units, cells=replicates.cells)
    if interval.ends_at is None or interval.std_error is None:
        return Tested(value, n, reason=interval.reason)
    low, high = interval.ends_at(float(stdtrit(df, UPPER_QUANTILE)))
    p_value = float(2 * stdtr(df, -abs(value) / interval.std_error))
    return Tested(value, n, max(-2.0, low), min(2.0, high), resampled=tuple(replicates.units), p_value=p_value)


def _count_units_with_rarer(counts: Floats, units: RatingUnits) -> int:
    """The number of units, of the kind with fewest, that have a rating other than the most common one.

    The other units hardly change how much raters agree, so they are no degrees of freedom.
    """
    is_rarer = np.delete(counts, counts.sum(axis=0).argmax(), axis=1).any(axis=1)
    return min(len(np.unique(np.asarray(labels)[is_rarer])) for labels in units.values())


def _alpha_replicates(counts: Floats, values: Floats, level: MeasurementLevel, units: RatingUnits) -> UnitReplicates:
    """Krippendorff's alpha without each unit; items with fewer than two ratings add nothing to its sums."""
    is_pairable = counts.sum(axis=1) >= 2
    coefficient = make_alpha(counts[is_pairable], values, level)
    moments = np.zeros((len(counts), coefficient.moments.shape[1]))
    moments[is_pairable] = coefficient.moments
    return replicate_over_units(moments, coefficient.value, units)


def _count_by_category(ratings: Floats) -> tuple[Floats, Floats]:
    """Counts, shape (items, categories), and the sorted values of the categories."""
    rater, item = np.nonzero(~np.isnan(ratings))
    values, category = np.unique(ratings[rater, item], return_inverse=True)
    n_items, n_categories = ratings.shape[1], len(values)
    counts = np.bincount(item * n_categories + category, minlength=n_items * n_categories).reshape(
        n_items, n_categories
    )
    return counts.astype(np.float64), values


def _select_units(units: RatingUnits | None, included: NDArray[np.bool_]) -> RatingUnits:
    """The units of the included items; by default each item is a unit. ValueError for labels of another shape."""
    if units is None:
        return {"item": np.arange(int(included.sum()))}
    labels_by_unit = {unit: np.asarray(labels) for unit, labels in units.items()}
    for unit, labels in labels_by_unit.items():
        if labels.shape != included.shape:
            raise ValueError(f"there must be one {unit} for each of {len(included)} items, but got {labels.shape}")
    return {unit: labels[included] for unit, labels in labels_by_unit.items()}


def _estimate_agreement(
    counts: Floats, make_coefficient: Callable[[Floats], Coefficient], units: RatingUnits | None
) -> Agreement:
    """The coefficient over items with at least two ratings, with its interval over their units.

    Args:
        counts: shape (items, categories).
        make_coefficient: from counts of items with at least two ratings.
    """
    is_pairable = counts.sum(axis=1) >= 2
    unit_labels, pairable_counts = _select_units(units, is_pairable), counts[is_pairable]
    n_items, n_ratings, n_dropped = len(pairable_counts), int(pairable_counts.sum()), int((~is_pairable).sum())
    if n_items == 0:
        return Agreement(None, 0, reason="no item has 2 ratings", n_dropped=n_dropped)
    prevalence = tuple(float(share) for share in pairable_counts.sum(axis=0) / n_ratings)
    estimate = Estimate(None, n_items, reason="all ratings are the same")
    if max(prevalence) < 1:
        coefficient = make_coefficient(pairable_counts)
        value = float(coefficient.value(coefficient.moments.sum(axis=0)[None])[0])
        estimate = _estimate_interval(coefficient, value, pairable_counts, unit_labels)
    return Agreement(
        estimate.value, n_items, estimate.ci_low, estimate.ci_high, estimate.reason, estimate.resampled,
        n_ratings=n_ratings, n_dropped=n_dropped, prevalence=prevalence,
    )  # fmt: skip


def _estimate_interval(coefficient: Coefficient, value: float, counts: Floats, units: RatingUnits) -> Estimate:
    """The coefficient with its interval over units; `counts` has shape (items, categories).

    With more than two categories, or with scores, kappa and alpha are too low in small samples. So their interval is
    around the value that is corrected for the jackknife's estimate of bias (Quenouille, Biometrika 43, 1956), and no
    variance of cells is subtracted.
    """
    n_items = len(counts)
    replicates = replicate_over_units(coefficient.moments, coefficient.value, units)
    if coefficient.scale is FISHER_Z:
        return estimate_from_replicates(value, n_items, replicates.units, FISHER_Z, BOUNDS, replicates.cells)
    if coefficient.is_share:
        rarer = counts.sum(axis=1) - counts[:, counts.sum(axis=0).argmax()]
        return estimate_two_category_agreement(value, n_items, replicates, rarer, float(counts.sum()), units)
    bias = sum((len(values) - 1) * float(values.mean() - value) for values in replicates.units.values())
    interval = jackknife_interval(value - bias, replicates.units, bounds=BOUNDS)
    if interval.low is None or interval.high is None:
        return Estimate(value, n_items, reason=interval.reason)
    low, high = min(interval.low, value), max(interval.high, value)
    return Estimate(value, n_items, low, high, resampled=tuple(units))
