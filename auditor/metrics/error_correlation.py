"""Correlation of the errors of two judges, pooled over strata of traces, from sums that can be left out in turn.

Judges err together where the truth, the kind of fault or the topic is hard for both. Within strata of these, two judges
that do not copy still err together on traces that are hard for everybody. With one odds ratio for all pairs, phi would
depend on the judges' shares of errors, so there are two baselines: the median phi of the other pairs, and the phi that
a pair would have with the median odds ratio of the other pairs (Mantel & Haenszel, J. of the National Cancer Institute
22, 1959; the joint share of errors at given margins and odds ratio: Plackett, JASA 60, 1965). The larger one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics._complete_cases import Floats

Indices = NDArray[np.intp]
MAX_BLOCK_NUMBERS = 1_000_000
"""Numbers of a block of sums: 8 MB."""
N_SUMS = 4
"""Sums of a pair: traces, errors of the first judge, errors of the second, errors of both."""


class PairSums(NamedTuple):
    """Sums over the traces that both judges of a pair have a verdict on.

    Attributes:
        sums: shape (groups, pairs, 4), see `N_SUMS`; a group is a cell within a stratum.
        cell, stratum: numbers of each group's cell and stratum, shape (groups,).
    """

    sums: Floats
    cell: Indices
    stratum: Indices

    def totals(self) -> Floats:
        """Sums over all groups, shape (strata, pairs, 4)."""
        totals = np.zeros((int(self.stratum.max(initial=-1)) + 1, *self.sums.shape[1:]))
        np.add.at(totals, self.stratum, self.sums)
        return totals

    def without_each_cell(self) -> Iterator[Floats]:
        """Yield the sums without one cell, for all cells in order, in blocks of shape (cells, strata, pairs, 4)."""
        totals = self.totals()
        n_cells = int(self.cell.max(initial=-1)) + 1
        block_size = max(1, MAX_BLOCK_NUMBERS // max(totals.size, 1))
        for start in range(0, n_cells, block_size):
            stop = min(start + block_size, n_cells)
            in_block = (self.cell >= start) & (self.cell < stop)
            left = np.repeat(totals[None], stop - start, axis=0)
            # The groups of a cell are in different strata, so no place is named twice.
            left[self.cell[in_block] - start, self.stratum[in_block]] -= self.sums[in_block]
            yield left


def judge_pairs(n_judges: int) -> list[tuple[int, int]]:
    """All pairs of judges, in the order of all results on pairs."""
    return list(combinations(range(n_judges), 2))


def sum_pairs(errors: Floats, cell: Indices, stratum: Indices) -> PairSums:
    """Sum the errors of each pair of judges.

    Args:
        errors: shape (judges, traces): 1 an error, 0 none, nan without a verdict.
        cell, stratum: numbers of each trace's cell and stratum, shape (traces,), from 0 without gaps.
    """
    first, second = np.array(judge_pairs(len(errors)), dtype=np.intp).reshape(-1, 2).T
    keys, group = np.unique(np.stack([cell, stratum]), axis=1, return_inverse=True)
    has_verdict, is_error = ~np.isnan(errors), np.nan_to_num(errors)
    n_groups = keys.shape[1]
    sums = np.zeros((n_groups, len(first), N_SUMS))
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        shared = (has_verdict[i] & has_verdict[j]).astype(np.float64)
        products = (shared, is_error[i] * shared, is_error[j] * shared, is_error[i] * is_error[j])
        for column, product in enumerate(products):
            sums[:, pair, column] = np.bincount(group.ravel(), product, minlength=n_groups)
    return PairSums(sums, keys[0], keys[1])


def pooled_phi(sums: Floats) -> Floats:
    """Correlation of errors within strata, shape (..., pairs); nan where one judge errs always or never.

    Args:
        sums: shape (..., strata, pairs, 4).
    """
    n, first, second, both = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance = _sum_strata(both - first * second / n)
        variances = _sum_strata(first - first**2 / n) * _sum_strata(second - second**2 / n)
        phi: Floats = np.where(variances > 1e-12, covariance / np.sqrt(variances), np.nan)
    return phi


def pooled_odds_ratio(sums: Floats) -> Floats:
    """Mantel and Haenszel's odds ratio of errors, shape (..., pairs): 0 to infinity; nan where undefined."""
    n, first, second, both = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        concordant = _sum_strata(both * (n - first - second + both) / n)
        discordant = _sum_strata((first - both) * (second - both) / n)
        ratio: Floats = concordant / discordant
    return ratio


def phi_at_odds_ratio(sums: Floats, odds_ratio: Floats) -> Floats:
    """Correlation within strata that a pair would have with these shares of errors and this odds ratio.

    Args:
        sums: shape (..., strata, pairs, 4).
        odds_ratio: shape (..., pairs), from 0 to infinity.
    """
    n, first, second, _ = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = first / n, second / n
        covariance = _sum_strata(n * (joint_share(p, q, odds_ratio[..., None, :]) - p * q))
        variances = _sum_strata(n * p * (1 - p)) * _sum_strata(n * q * (1 - q))
        is_known = (variances > 1e-12) & ~np.isnan(odds_ratio)
        phi: Floats = np.where(is_known, covariance / np.sqrt(variances), np.nan)
    return phi


def joint_share(p: Floats, q: Floats, odds_ratio: Floats) -> Floats:
    """Share of traces on which both judges err, from their shares of errors and the odds ratio (Plackett 1965)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        b = 1 + (p + q) * (odds_ratio - 1)
        # The root in a form without a division by odds_ratio - 1, which is 0 for independent errors.
        root = np.sqrt(np.maximum(b**2 - 4 * odds_ratio * (odds_ratio - 1) * p * q, 0.0))
        share: Floats = np.where(np.isinf(odds_ratio), np.minimum(p, q), 2 * odds_ratio * p * q / (b + root))
    return share


def median_of_others(values: Floats) -> Floats:
    """For each pair the median over the other pairs, nan left out.

    Args:
        values: shape (..., pairs).

    Returns:
        The same shape; nan where no other pair has a value.
    """
    ordered = np.sort(values, axis=-1)  # nan comes last
    ranks = np.argsort(np.argsort(values, axis=-1, kind="stable"), axis=-1, kind="stable")
    is_known = ~np.isnan(values)
    n_others = is_known.sum(axis=-1, keepdims=True) - is_known
    middle = [np.maximum(n_others - 1, 0) // 2, n_others // 2]
    # Leaving out the value of rank r moves all later values one place forward.
    ends = [
        np.take_along_axis(ordered, np.minimum(place + (is_known & (place >= ranks)), values.shape[-1] - 1), axis=-1)
        for place in middle
    ]
    with np.errstate(invalid="ignore"):
        medians: Floats = np.where(n_others > 0, (ends[0] + ends[1]) / 2, np.nan)
    return medians


def excess_correlation(sums: Floats, comparable: NDArray[np.bool_] | Sequence[bool]) -> Floats:
    """Correlation of errors in excess of the other pairs', shape (..., pairs); nan where it has no value.

    Args:
        sums: shape (..., strata, pairs, 4).
        comparable: shape (pairs,), the pairs that have enough verdicts and errors; others count for nothing.
    """
    phi = np.where(comparable, pooled_phi(sums), np.nan)
    odds_ratio = np.where(comparable, pooled_odds_ratio(sums), np.nan)
    baselines = median_of_others(phi), phi_at_odds_ratio(sums, median_of_others(odds_ratio))
    with np.errstate(invalid="ignore"):
        excess: Floats = phi - np.fmax(*baselines)
    return excess


def _sum_strata(terms: Floats) -> Floats:
    """Sum over strata, the second last axis; a stratum without traces, whose terms are nan, counts for nothing."""
    total: Floats = np.nansum(terms, axis=-2)
    return total
