"""Judges that depend on each other: correlated errors, pairs that err together more than others, and copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import Estimate, Floats, ShareEstimate, bonferroni_level
from auditor.metrics.intervals.jackknife_interval import Labels, jackknife_interval
from auditor.metrics.intervals.special_functions import stdtrit
from auditor.metrics.intervals.unit_means import ShareTable, shares_over_units

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


MIN_LABELS = 200
"""Fewest labelled traces that both judges of a pair have verdicts on."""
LABELS_FOR_SHARED_ERRORS = 400
"""Labelled traces with which two judges that share 30% of their verdicts are found in three of four cases."""
MIN_ERRORS = 10
"""Fewest errors, and fewest right verdicts, of each judge of a pair: a few shared errors may be those of all judges."""
MIN_SHARED_TRACES = 200
"""Fewest traces, labelled or not, that both judges of a pair have verdicts on to count as copies."""
COPY_AGREEMENT = 0.99
"""Share of equal verdicts from which two judges count as copies."""


@dataclass(frozen=True, slots=True)
class PairErrors:
    """The errors of two judges on labelled traces.

    Attributes:
        first, second: positions of the judges.
        n: labelled traces that both have a verdict on.
        correlation: phi of their errors within strata; None where it is undefined or nothing can be compared.
        excess: of the correlation over the other pairs'. Its 95% interval holds for all pairs together.
    """

    first: int
    second: int
    n: int
    correlation: float | None
    excess: Estimate

    @property
    def is_more_alike(self) -> bool:
        """Whether the errors are more alike than those of the other pairs: the interval of the excess lies above 0."""
        return self.excess.ci_low is not None and self.excess.ci_low > 0


def compare_errors(
    verdicts: ArrayLike, truth: ArrayLike, units: Labels, kinds: ArrayLike | None = None
) -> list[PairErrors]:
    """Compare how each pair of judges errs together with how the other pairs do.

    The variance of the excess is the jackknife's over cells, plus the spread of the other pairs below their median,
    without its sampling variance: judges differ in how much they find the same traces hard. Strata
    remove judge-by-topic effects, so cells are the units. Student's quantile is Bonferroni's for all pairs.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan without a verdict.
        truth: shape (traces,): 1, 0, or nan without a label. Labels must be random, or cover all traces.
        units: country and topic of each trace, or its item, shape (traces,).
        kinds: shape (traces,), kinds of traces that are compared only with each other, such as planted faults.

    Returns:
        One per pair, in the order of `judge_pairs`. No excess, with a reason, for pairs with fewer than 200 shared
        labels or 10 errors, and where fewer than two other pairs can be compared.

    Raises:
        ValueError: shapes do not fit.
    """
    errors, has_label = _label_errors(verdicts, truth)
    cell, stratum, unit_name = _number_groups(np.asarray(truth, dtype=np.float64), units, kinds, has_label)
    pairs = judge_pairs(len(errors))
    if not pairs:
        return []
    sums = sum_pairs(errors, cell, stratum)
    totals = sums.totals()
    n, first_errors, second_errors, _ = np.moveaxis(totals.sum(axis=0), -1, 0)
    fewest_cases = np.minimum.reduce([first_errors, n - first_errors, second_errors, n - second_errors])
    comparable = (n >= MIN_LABELS) & (fewest_cases >= MIN_ERRORS)
    phi = pooled_phi(totals)
    excesses = _estimate_excesses(sums, comparable, unit_name)
    return [
        PairErrors(
            i,
            j,
            int(n[k]),
            None if np.isnan(phi[k]) or not n[k] else float(phi[k]),
            excesses[k] if comparable[k] else Estimate(None, int(n[k]), reason=_missing_reason(n[k], fewest_cases[k])),
        )
        for k, (i, j) in enumerate(pairs)
    ]


def pair_agreement(verdicts: ArrayLike, units: Labels) -> list[ShareEstimate]:
    """Share of equal verdicts of each pair of judges on the traces that both have a verdict on, in their order.

    Args:
        verdicts, units: as for `compare_errors`.
    """
    table = np.asarray(verdicts, dtype=np.float64)
    has_verdict = ~np.isnan(table)
    labels = {unit: np.asarray(unit_labels) for unit, unit_labels in units.items()}
    cell = _number_combinations(list(labels.values()))
    first_in_cell = np.unique(cell, return_index=True)[1]
    cell_units = {unit: unit_labels[first_in_cell] for unit, unit_labels in labels.items()}

    def count_by_cell(is_counted: NDArray[np.bool_]) -> NDArray[np.intp]:
        return np.bincount(cell[is_counted], minlength=len(first_in_cell))

    tables = [
        ShareTable(count_by_cell(table[i] == table[j]), count_by_cell(has_verdict[i] & has_verdict[j]), cell_units)
        for i, j in judge_pairs(len(table))
    ]
    return shares_over_units(tables, empty_reason="no trace has verdicts of both judges")


def are_copies(agreement: ShareEstimate) -> bool:
    """Whether two judges count as copies: equal verdicts on at least 99% of at least 200 traces."""
    return agreement.n >= MIN_SHARED_TRACES and agreement.value is not None and agreement.value >= COPY_AGREEMENT


def group_judges(n_judges: int, connected_pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Groups of judges connected by pairs, directly or through others; a judge of its own is a group of one."""
    group_of = list(range(n_judges))
    for i, j in connected_pairs:
        group_of = [group_of[i] if group == group_of[j] else group for group in group_of]
    return [[judge for judge in range(n_judges) if group_of[judge] == group] for group in dict.fromkeys(group_of)]


def split_weights(groups: Sequence[Sequence[int]]) -> Floats:
    """Weight of each judge, shape (judges,), where each group has one vote that its members share."""
    weights = np.ones(sum(map(len, groups)))
    for group in groups:
        weights[list(group)] = 1 / len(group)
    return weights


def _label_errors(verdicts: ArrayLike, truth: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Errors on the labelled traces, shape (judges, labelled), and which traces have a label."""
    table, labels = np.asarray(verdicts, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if table.ndim != 2 or labels.shape != table.shape[1:]:
        raise ValueError(f"verdicts {table.shape} and truth {labels.shape} must be (judges, traces) and (traces,)")
    has_label = ~np.isnan(labels)
    labelled = table[:, has_label]
    return np.where(np.isnan(labelled), np.nan, labelled != labels[has_label]), has_label


def _number_groups(
    truth: Floats, units: Mapping[str, ArrayLike], kinds: ArrayLike | None, has_label: NDArray[np.bool_]
) -> tuple[Indices, Indices, str]:
    """Cell and stratum of each labelled trace, and the name of the unit: a cell, or the item of a task."""
    labels = [np.asarray(unit_labels)[has_label] for unit_labels in units.values()]
    # The last unit is the topic. The items of a task have no topic: a stratum of one item has nothing to compare.
    stratum_labels = [truth[has_label], *([labels[-1]] if len(labels) > 1 else [])]
    if kinds is not None:
        stratum_labels.append(np.asarray(kinds)[has_label])
    unit_name = "cell" if len(labels) > 1 else next(iter(units))
    return _number_combinations(labels), _number_combinations(stratum_labels), unit_name


def _number_combinations(columns: Sequence[NDArray[np.generic]]) -> Indices:
    """Number the combinations of labels that occur, from 0, shape (traces,)."""
    codes = np.stack([np.unique(column, return_inverse=True)[1].ravel() for column in columns])
    numbers: Indices = np.unique(codes, axis=1, return_inverse=True)[1].ravel()
    return numbers


def _estimate_excesses(sums: PairSums, comparable: NDArray[np.bool_], unit_name: str) -> list[Estimate]:
    """Estimate the excess of each pair, with an interval for all comparable pairs together."""
    totals = sums.totals()
    n, values = totals.sum(axis=0)[:, 0], excess_correlation(totals, comparable)
    blocks = [excess_correlation(left, comparable) for left in sums.without_each_cell()]
    replicates = np.concatenate(blocks) if blocks else np.empty((0, len(values)))
    level = bonferroni_level(max(int(comparable.sum()), 1))
    intervals = [
        jackknife_interval(float(value), {unit_name: column}, confidence_level=level)
        for value, column in zip(values, replicates.T, strict=True)
    ]
    std_errors = np.array([np.nan if item.std_error is None else item.std_error for item in intervals])
    estimates = []
    for k, (value, interval) in enumerate(zip(values.tolist(), intervals, strict=True)):
        if np.isnan(value) or comparable.sum() < 3:
            reason = "fewer than two other pairs of judges have enough labels and errors to compare with"
            estimates.append(Estimate(None, int(n[k]), reason=reason))
        elif interval.std_error is None:
            estimates.append(Estimate(value, int(n[k]), reason=interval.reason))
        else:
            variance = interval.std_error**2 + _spread_of_others(values, std_errors, k)
            half_width = float(stdtrit(interval.df, (1 + level) / 2)) * variance**0.5
            ends = max(value - half_width, -2.0), min(value + half_width, 2.0)
            estimates.append(Estimate(value, int(n[k]), *ends, resampled=(unit_name,)))
    return estimates


def _spread_of_others(values: Floats, std_errors: Floats, pair: int) -> float:
    """Variance of the other pairs below their median beyond sampling; copies, which lie above it, do not count."""
    is_other = (np.arange(len(values)) != pair) & ~np.isnan(values) & ~np.isnan(std_errors)
    others = values[is_other]
    if not len(others):
        return 0.0
    is_low = others <= np.median(others)
    spread = float(np.mean((np.median(others) - others[is_low]) ** 2))
    return max(0.0, spread - float(np.median(std_errors[is_other][is_low] ** 2)))


def _missing_reason(n: float, fewest_cases: float) -> str:
    """Why a pair cannot be compared."""
    if n < MIN_LABELS:
        return f"{MIN_LABELS} labelled traces are needed, but both judges have verdicts on {int(n)}"
    return f"each judge needs {MIN_ERRORS} errors and {MIN_ERRORS} right verdicts, but one has {int(fewest_cases)}"
