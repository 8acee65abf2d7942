"""Judges that depend on each other: pairs that err together more than the other pairs, and copies.

From verdicts alone, copies and judges that are both right look alike. So errors are compared on labelled traces: traces
drawn at random whose truth is known, or traces with a planted fault. The errors of a pair are compared with those of
the other pairs within strata of the truth and the topic, so that neither topics that are hard for two judges nor traces
that are hard for all make them alike (compare Yen's Q3 in item response theory, Applied Psychological Measurement 8,
1984, and its excess over the mean, Christensen, Makransky & Horton, same journal 41, 2017). Errors that are more alike
are no proof of copying: judges that were trained on the same data err together too. Only judges with equal verdicts on
at least 99% of 200 traces count as copies, which share one vote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._special import stdtrit
from auditor.metrics._unit_counts import Labels
from auditor.metrics.confidence import bonferroni_level
from auditor.metrics.error_correlation import (
    Indices,
    PairSums,
    excess_correlation,
    judge_pairs,
    pooled_phi,
    sum_pairs,
)
from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.metrics.jackknife_interval import jackknife_interval
from auditor.metrics.unit_means import ShareTable, shares_over_units

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
