"""Differences between groups of people, whether a model shows them, and whether naming a group moves its answers."""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.answers.samples import share_variance
from auditor.metrics.distributions.distances import cumulate, cut_widths, read_shares, unit_points, wasserstein
from auditor.metrics.intervals.estimate import UPPER_QUANTILE, Estimate, Floats, Tested, complete_cases, is_constant
from auditor.metrics.intervals.jackknife_interval import (
    CONSTANT_REASON,
    UNDEFINED_REASON,
    UnitReplicates,
    jackknife_covariance,
    jackknife_interval,
    replicate_over_units,
    too_few_reason,
)
from auditor.metrics.intervals.special_functions import stdtrit
from auditor.metrics.intervals.unit_means import Labels

MIN_COUNTRIES, MIN_GROUP_COUNTRIES = 5, 3
"""Fewest countries of both groups together, and of each, that are resampled; with fewer, only questions are. Two show
too little of how countries differ: beside ten others, an interval over them would hold in 89%."""


def group_mean_difference(
    values: ArrayLike, is_second: ArrayLike, units: Labels, *, bounds: tuple[float, float]
) -> Tested:
    """The mean of the second group minus that of the first, with an interval over other countries and questions.

    Args:
        values: shape (n,), one for each question about a country; those with a nan are left out.
        is_second: shape (n,), whether the country is in the second group.
        units: `country` and `question` of each value. A question may be asked about several countries.
        bounds: smallest and largest possible difference.

    Returns:
        With fewer than five countries, or than three in a group, the interval is for these countries: only questions
        are resampled, as `resampled` says. `n` counts values.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (present,), is_present = complete_cases(values)
    second = np.asarray(is_second, dtype=np.float64)[is_present]
    labels = {unit: np.asarray(names)[is_present] for unit, names in units.items()}
    moments = np.stack([present * (1 - second), 1 - second, present * second, second], axis=1)
    value = float(_difference(moments.sum(axis=0)[None])[0])
    if not np.isfinite(value):
        return Tested(None, len(present), reason="a group has no value")
    n_countries = [len(set(labels["country"][second == group])) for group in (0, 1)]
    if min(n_countries) < MIN_GROUP_COUNTRIES or sum(n_countries) < MIN_COUNTRIES:
        labels = {"question": labels["question"]}
    replicates = replicate_over_units(moments, _difference, labels)
    interval = jackknife_interval(value, replicates.units, bounds=bounds, cells=replicates.cells)
    if interval.low is None or interval.high is None:
        return Tested(value, len(present), reason=interval.reason)
    return Tested(value, len(present), interval.low, interval.high, resampled=tuple(labels), p_value=interval.p_value)


def _difference(sums: Floats) -> Floats:
    """The difference of the means from sums of the moments; nan where a group has no value."""
    with np.errstate(divide="ignore", invalid="ignore"):
        difference: Floats = sums[:, 2] / sums[:, 3] - sums[:, 0] / sums[:, 1]
    return difference


MIN_RELIABILITY = 0.3
"""Least share of the variation of people's gaps that is no sampling error, for a slope."""
CONSTANT_GAPS_REASON = "people’s gaps do not vary"


def gap_slope(
    people: ArrayLike,
    model: ArrayLike,
    people_variance: ArrayLike,
    units: Labels,
    *,
    intercept: bool = False,
) -> Estimate:
    """Slope of a model's gaps on people's: 1 is the right size, above 1 a stereotype, below 0 the wrong direction.

    Through the origin, sum(people * model) / sum(people^2 - variance), a gap that is exaggerated by one factor in all
    cells is found even if people's gap is the same everywhere. With an intercept the slope is about the variation of
    gaps between cells only.

    Args:
        people, model: shape (n,), the mean of the first group minus that of the second in each cell; cells with a nan
            are left out.
        people_variance: shape (n,), sampling variance of people's gap.
        units: the country and the topic of each cell.
        intercept: centre both sides.

    Returns:
        `n` counts cells. There is no value, with a reason, without cells, where the reliability of people's gaps is
        below 0.3, or where the interval of the denominator holds 0; no interval below 5 countries or topics.

    Raises:
        ValueError: shapes differ, a value is infinite, or a variance is below 0.
    """
    (x, y, variance), is_complete = complete_cases(people, model, people_variance)
    if (variance < 0).any():
        raise ValueError("people_variance must be at least 0")
    n, fewest = len(x), 3 if intercept else 1
    if n < fewest:
        return Estimate(None, n, reason="too few cells have the gaps of people and model")
    moments = np.stack([np.ones_like(x), x, y, x * y, x * x, variance], axis=1)
    totals = moments.sum(axis=0)[None]
    numerator, denominator = (
        float(part[0]) for part in (_numerators(totals, intercept), _denominators(totals, intercept))
    )
    is_flat = intercept and is_constant(x)
    reason = CONSTANT_GAPS_REASON if is_flat else _reason_against_slope(denominator, float(variance.mean()))
    if reason is not None:
        return Estimate(None, n, reason=reason)
    included = {unit: np.asarray(labels)[is_complete] for unit, labels in units.items()}
    replicates = [
        replicate_over_units(moments, partial(part, intercept=intercept), included)
        for part in (_numerators, _denominators)
    ]
    return _fieller_estimate(numerator, denominator, n, replicates)


def gap_reliability(people: ArrayLike, people_variance: ArrayLike, *, intercept: bool = False) -> float:
    """Share of the variation of people's gaps that is no sampling error: 1 - mean variance / mean square.

    Args:
        people, people_variance: as for `gap_slope`.
        intercept: the variation around the mean instead of around 0.

    Returns:
        At most 1; below 0 where gaps vary less than sampling alone makes them; nan without variation.
    """
    (x, variance), _ = complete_cases(people, people_variance)
    variation = (x.var() if intercept else (x**2).mean()) if len(x) else 0.0
    return float(1 - variance.mean() / variation) if variation > 0 else float("nan")


def _numerators(sums: Floats, intercept: bool) -> Floats:
    """Mean product of both gaps, or their covariance, from sums of the moments."""
    n = np.maximum(sums[:, 0], 1.0)
    products: Floats = sums[:, 3] / n - (sums[:, 1] / n * sums[:, 2] / n if intercept else 0.0)
    return products


def _denominators(sums: Floats, intercept: bool) -> Floats:
    """Mean square of people's gaps, or their variance, less the mean sampling variance."""
    n = np.maximum(sums[:, 0], 1.0)
    squares: Floats = (sums[:, 4] - sums[:, 5]) / n - ((sums[:, 1] / n) ** 2 if intercept else 0.0)
    return squares


def _reason_against_slope(denominator: float, noise: float) -> str | None:
    """Why people's gaps are too uncertain for a slope; None where they are not."""
    variation = denominator + noise
    if variation <= 1e-24:
        return CONSTANT_GAPS_REASON
    reliability = denominator / variation
    if reliability < MIN_RELIABILITY:
        return (
            f"the reliability of people’s gaps is {max(reliability, 0.0):.2f}, below {MIN_RELIABILITY}: "
            "most of them is sampling error"
        )
    return None


def _fieller_estimate(numerator: float, denominator: float, n: int, replicates: list[UnitReplicates]) -> Estimate:
    """The ratio with its interval, or why there is none; `replicates` of the numerator and of the denominator."""
    slope = numerator / denominator
    kinds = replicates[0].units
    reason = too_few_reason({unit: [len(values)] for unit, values in kinds.items()})
    if reason is not None:
        return Estimate(slope, n, reason=reason)
    by_kind = [np.stack([part.units[unit] for part in replicates]) for unit in kinds]
    if not all(np.isfinite(values).all() for values in by_kind):
        return Estimate(slope, n, reason=UNDEFINED_REASON)
    quantile = float(stdtrit(min(values.shape[1] for values in by_kind) - 1, UPPER_QUANTILE))
    covariances = [jackknife_covariance(values) for values in by_kind]
    # The variance of a combination of both parts is the largest of these forms, as in `combine_variances`.
    forms = [*covariances]
    if len(covariances) > 1:
        cells = [part.cells for part in replicates if part.cells is not None]
        forms.append(sum(covariances) - jackknife_covariance(np.stack(cells)) / 2)
    spread = quantile * sqrt(max(float(form[1, 1]) for form in forms))
    if denominator <= spread:
        return Estimate(None, n, reason="the interval of people’s gaps holds 0, so a slope is undetermined")
    ends = [end for form in forms for end in _fieller_ends(numerator, denominator, form, quantile)]
    if not ends or max(ends) - min(ends) <= 1e-12:
        return Estimate(slope, n, reason=CONSTANT_REASON)
    return Estimate(slope, n, min(ends), max(ends), resampled=tuple(kinds))


def _fieller_ends(numerator: float, denominator: float, covariance: Floats, quantile: float) -> list[float]:
    """Both slopes b at which numerator - b * denominator is `quantile` standard errors from 0; none where no slope is.

    Args:
        covariance: of numerator and denominator, shape (2, 2).
    """
    critical = quantile**2
    a = denominator**2 - critical * covariance[1, 1]
    b = numerator * denominator - critical * covariance[0, 1]
    c = numerator**2 - critical * covariance[0, 0]
    discriminant = b * b - a * c
    if discriminant < 0:
        return []
    return [float((b + sign * sqrt(discriminant)) / a) for sign in (-1, 1)]


def specificity(first: tuple[ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike], points: ArrayLike) -> Floats:
    """How much closer the answers for each of two groups are to this group's people than to the other group's.

    Half of d(Q1, P2) + d(Q2, P1) - d(Q1, P1) - d(Q2, P2), in which all sampling variances cancel. It equals the sum
    over cuts of the product of the model's and of people's difference between the groups.

    Args:
        first, second: people's and the model's shares of each group, shape (..., K) each.
        points: shape (K,), increasing.

    Returns:
        Shape (...), in [-1, 1]: above 0 only if naming a group moves answers towards it; 0 for a model that ignores
        the group; below 0 if it moves away.

    Raises:
        ValueError: invalid shares or points, or shapes that do not match.
    """
    people_gap = cumulate(first[0]) - cumulate(second[0])
    model_gap = cumulate(first[1]) - cumulate(second[1])
    products: Floats = (people_gap * model_gap) @ cut_widths(points, people_gap.shape[-1] + 1)
    return products


def steering_gain(
    country_to_group: ArrayLike, group_to_group: ArrayLike, country_to_all: ArrayLike, placebo_to_all: ArrayLike
) -> Floats:
    """By how much naming a group reduces the distance to it, less what naming an irrelevant attribute reduces.

    [d(Q_country, P_group) - d(Q_group, P_group)] - [d(Q_country, P_all) - d(Q_placebo, P_all)], each shape (...).

    Args:
        country_to_group: squared distance of the answers for the country from people of the group.
        group_to_group: that of the answers for the group from people of the group.
        country_to_all, placebo_to_all: those of the answers for the country, and for the country with the irrelevant
            attribute, from all people of the country.

    Returns:
        Above 0 where the group's name tells the model something.
    """
    parts = [
        np.asarray(a, dtype=np.float64) for a in (country_to_group, group_to_group, country_to_all, placebo_to_all)
    ]
    gains: Floats = (parts[0] - parts[1]) - (parts[2] - parts[3])
    return gains


def coherence_distance(groups: ArrayLike, weights: ArrayLike, country: ArrayLike, points: ArrayLike) -> Floats:
    """Distance of the groups' answers, put together by the groups' shares among people, from those for the country.

    Args:
        groups: shape (..., groups, K), the model's shares for each group.
        weights: shape (..., groups), the groups' shares of people, at least 0.
        country: shape (..., K), the model's shares for the whole country.
        points: shape (K,), increasing.

    Returns:
        Wasserstein distance, shape (...), in [0, 1]; 0 for a model whose groups add up to its country.

    Raises:
        ValueError: invalid shares, weights or points.
    """
    portions = read_shares(weights)
    total = (portions[..., None] * read_shares(groups)).sum(axis=-2)
    return wasserstein(total, country, points)


def group_variances(
    groups: ArrayLike, weights: ArrayLike, points: ArrayLike, n: ArrayLike = np.inf
) -> tuple[Floats, Floats]:
    """Variance of answers within groups and between them, on the scale rescaled to [0, 1].

    Args:
        groups: shape (..., groups, K), shares of each group.
        weights: shape (..., groups), the groups' shares of people.
        points: shape (K,), increasing.
        n: answers of each group, or the effective number, shape (..., groups) or a number; inf for stated shares.

    Returns:
        Both unbiased, shape (...) each: the mean variance within groups, and the variance of the groups' means, from
        which their sampling error is subtracted, so that it may be below 0. Divide the sums of a model's by those of
        people's with `VARIANCE_RATIO`: little within and much between is a caricature.
    """
    portions, shares = read_shares(weights), read_shares(groups)
    within = share_variance(shares, points, n)
    means = shares @ unit_points(points, shares.shape[-1])
    centre = (portions * means).sum(axis=-1, keepdims=True)
    # The variance of a mean counts with 1 - its weight, since it also moves the centre.
    noise = (portions * (1 - portions) * within / np.asarray(n, dtype=np.float64)).sum(axis=-1)
    between: Floats = (portions * (means - centre) ** 2).sum(axis=-1) - noise
    return (portions * within).sum(axis=-1), between
