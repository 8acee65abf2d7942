"""Negative controls: the intervals of version 0.1, which take cells, traces or cases for independent.

Each must fail in the run in which the interval that replaced it passes. They are written here, apart from the project.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import rankdata, t

from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Bools, Floats, Indices

Z_95 = 1.959963984540054


def fisher_interval(x: Floats, y: Floats) -> Interval:
    """Pearson's r with Fisher's interval over cells."""
    r = float(np.corrcoef(x, y)[0, 1])
    half_width = Z_95 / (len(x) - 3) ** 0.5
    low, high = np.tanh(np.arctanh(r) + np.array([-half_width, half_width]))
    return r, float(low), float(high)


def bonett_wright_interval(x: Floats, y: Floats) -> Interval:
    """Spearman's rho with the interval of Bonett and Wright (Psychometrika 65, 2000) over cells."""
    rho = float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
    half_width = Z_95 * ((1 + rho**2 / 2) / (len(x) - 3)) ** 0.5
    low, high = np.tanh(np.arctanh(rho) + np.array([-half_width, half_width]))
    return rho, float(low), float(high)


def means_by(labels: Indices, values: Floats) -> Floats:
    """The mean over each value's label, shape (n,)."""
    counts = np.bincount(labels)
    return np.asarray((np.bincount(labels, values) / np.maximum(counts, 1))[labels])


def student_interval(values: Floats) -> Interval:
    """A mean with Student's interval over its values."""
    mean, n = float(values.mean()), len(values)
    half_width = float(t.ppf(0.975, n - 1)) * float(values.std(ddof=1)) / n**0.5
    return mean, mean - half_width, mean + half_width


def root_mean_square_interval(errors: Floats) -> Interval:
    """RMSE, with the roots of Student's interval of the mean square over cells."""
    mean, low, high = student_interval(errors**2)
    assert low is not None
    assert high is not None
    return mean**0.5, max(0.0, low) ** 0.5, high**0.5


def welch_interval(first: Floats, second: Floats) -> Interval:
    """The mean of the first values minus that of the second, with Welch's interval over cells."""
    value = float(first.mean() - second.mean())
    half_width = Z_95 * float(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second)) ** 0.5
    return value, value - half_width, value + half_width


def fisher_difference_interval(first: Floats, second: Floats, truth: Floats, other_truth: Floats) -> Interval:
    """The difference of two correlations as if they were of independent samples, on the scale of r."""
    intervals = [fisher_interval(first, truth), fisher_interval(second, other_truth)]
    value = intervals[0][0] - intervals[1][0]
    half_width = sum(((high or 0.0) - (low or 0.0)) ** 2 for _, low, high in intervals) ** 0.5 / 2
    return value, value - half_width, value + half_width


def wilson_interval(n_hits: float, n_cases: float) -> Interval:
    """A share with Wilson's interval over cases."""
    p = n_hits / n_cases
    centre = (p + Z_95**2 / (2 * n_cases)) / (1 + Z_95**2 / n_cases)
    half_width = Z_95 * (p * (1 - p) / n_cases + Z_95**2 / (4 * n_cases**2)) ** 0.5 / (1 + Z_95**2 / n_cases)
    return p, centre - half_width, centre + half_width


def bootstrap_over_rows(
    table: Floats, statistic: Callable[[Floats, Floats], Floats], rng: np.random.Generator
) -> Interval:
    """A statistic with the percentile interval of 400 bootstrap samples of the rows, such as traces.

    Args:
        table: shape (rows, columns), with few distinct rows.
        statistic: from weights of the distinct rows, shape (samples, distinct rows), and these rows, shape (distinct
            rows, columns), to its values, shape (samples,).
    """
    patterns, frequencies = np.unique(table, axis=0, return_counts=True)
    n_rows = len(table)
    weights = np.concatenate([frequencies[None, :], rng.multinomial(n_rows, frequencies / n_rows, 400)])
    values = statistic(weights.astype(np.float64), patterns)
    low, high = np.nanquantile(values[1:], (0.025, 0.975))
    return float(values[0]), float(low), float(high)


def product_moments(x: Floats, y: Floats) -> Floats:
    """1, x, y, x², y² and xy of each cell, shape (cells, 6)."""
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def correlation(sums: Floats) -> Floats:
    """Pearson's r from sums of `product_moments`, shape (..., 6)."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    return np.asarray((xy - x * y / n) / np.sqrt((xx - x * x / n) * (yy - y * y / n)))


def sums_without(moments: Floats, labels: Indices) -> Floats:
    """Sums of moments over all cells but those of each unit, shape (units, k); units without a cell are left out."""
    by_unit = np.stack([np.bincount(labels, column) for column in moments.T], axis=1)
    return np.asarray((moments.sum(axis=0) - by_unit)[np.bincount(labels) > 0])


def subtracted_difference_interval(replicates: Sequence[Floats], value: float, smaller_side: int) -> Interval:
    """The jackknife with V_country + V_topic - V_cell, which falls short for a difference of correlations.

    Args:
        replicates: the statistic without each country, each topic and each cell.
    """
    variances = [(len(r) - 1) / len(r) * float(((r - r.mean()) ** 2).sum()) for r in replicates]
    by_country, by_topic, by_cell = variances
    variance = max(by_country + by_topic - by_cell, by_country, by_topic)
    half_width = float(t.ppf(0.975, smaller_side - 1)) * variance**0.5
    return value, value - half_width, value + half_width


def kappa_of_counts(weights: Floats, counts: Floats) -> Floats:
    """Fleiss' kappa from weights of items and their counts of two categories, as for `bootstrap_over_rows`."""
    agreement, shares = _agreement_and_shares(weights, counts)
    chance = (shares**2).sum(axis=1)
    return np.asarray((agreement - chance) / (1 - chance))


def ac1_of_counts(weights: Floats, counts: Floats) -> Floats:
    """Gwet's AC1 in the same way."""
    agreement, shares = _agreement_and_shares(weights, counts)
    chance = (shares * (1 - shares)).sum(axis=1)
    return np.asarray((agreement - chance) / (1 - chance))


def _agreement_and_shares(weights: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """The mean share of pairs of ratings that agree, shape (samples,), and the shares of categories."""
    n_ratings = counts.sum(axis=1)
    pairs = (counts * (counts - 1)).sum(axis=1) / (n_ratings * (n_ratings - 1))
    n_items = weights.sum(axis=1)
    return weights @ pairs / n_items, weights @ (counts / n_ratings[:, None]) / n_items[:, None]


def hanley_mcneil_interval(support: Floats, is_correct: Bools) -> Interval:
    """The area under the ROC curve with the interval of Hanley and McNeil (Radiology 143, 1982) over answers."""
    n_right, n_wrong = int(is_correct.sum()), int((~is_correct).sum())
    if not n_right or not n_wrong:
        return float("nan"), None, None
    area = float((rankdata(support)[is_correct].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong))
    for_right, for_wrong = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    variance = (area * (1 - area) + (n_right - 1) * for_right + (n_wrong - 1) * for_wrong) / (n_right * n_wrong)
    half_width = Z_95 * variance**0.5
    return area, area - half_width, area + half_width
