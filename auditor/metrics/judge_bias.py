"""Judge bias: how far a judge's verdicts depend on what should not matter, at equal quality of the trace.

A table of verdicts has the shape (judges, traces): 1 is VALID, 0 INVALID, nan no verdict. Traces on one cell are
correlated; where `cells`, shape (traces,), gives the cell of each trace, intervals are over cells: Student's, from the
jackknife that leaves one cell out (Efron & Stein, Annals of Statistics 9, 1981).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from auditor.metrics._complete_cases import Floats
from auditor.metrics.proportion import proportion

MIN_GROUP_SIZE = 5
"""Fewest traces (or cells) on either side for an interval of a difference."""


@dataclass(frozen=True, slots=True)
class BiasEstimate:
    """A difference of means with a 95% interval; `reason` says why something is None.

    Attributes:
        n: traces that it is computed from.
        n_exposed: those of them on the first side of the difference.
    """

    value: float | None
    n: int
    n_exposed: int
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None


def difference_of_shares(hits: int, n: int, other_hits: int, other_n: int) -> BiasEstimate:
    """One share minus another, with Newcombe's interval (Statistics in Medicine 17, 1998, 873-890, method 10).

    It combines the Wilson intervals of both, so it has a width even where a share is 0 or 1.

    Raises:
        ValueError: more hits than cases, or a negative number.
    """
    first, second = proportion(hits, n), proportion(other_hits, other_n)
    bounds = [first.value, first.ci_low, first.ci_high, second.value, second.ci_low, second.ci_high]
    defined_bounds = [bound for bound in bounds if bound is not None]
    if len(defined_bounds) < len(bounds):
        return BiasEstimate(None, n + other_n, n, None, None, "one side has no verdict")
    p, low, high, q, other_low, other_high = defined_bounds  # each share with its interval
    lower_width, upper_width = (
        sqrt((p - low) ** 2 + (other_high - q) ** 2),
        sqrt((high - p) ** 2 + (q - other_low) ** 2),
    )
    return BiasEstimate(p - q, n + other_n, n, p - q - lower_width, p - q + upper_width)


def difference_of_paired_shares(both: int, first: int, second: int, neither: int) -> BiasEstimate:
    """One share minus another over the same cases (Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10).

    As `difference_of_shares`, with the correlation of the pairs taken into account.

    Args:
        both, first, second, neither: cases that count in both shares, in one only, in neither.

    Raises:
        ValueError: a number is negative.
    """
    n = both + first + second + neither
    first_share, second_share = proportion(both + first, n), proportion(both + second, n)
    bounds = [
        first_share.value,
        first_share.ci_low,
        first_share.ci_high,
        second_share.value,
        second_share.ci_low,
        second_share.ci_high,
    ]
    defined_bounds = [bound for bound in bounds if bound is not None]
    if len(defined_bounds) < len(bounds):
        return BiasEstimate(None, n, n, None, None, "no case")
    p, low, high, q, other_low, other_high = defined_bounds  # each share with its interval
    phi = _phi_coefficient(both, first, second, neither)
    lower_width, upper_width = (
        _newcombe_half_width(p - low, other_high - q, phi),
        _newcombe_half_width(high - p, q - other_low, phi),
    )
    return BiasEstimate(p - q, n, n, p - q - lower_width, p - q + upper_width)


def _phi_coefficient(a: int, b: int, c: int, d: int) -> float:
    """Phi of the table [[a, b], [c, d]], a positive one with Newcombe's continuity correction; 0 where undefined."""
    denominator = sqrt((a + b) * (c + d) * (a + c) * (b + d))
    numerator: float = a * d - b * c
    if numerator > 0:
        numerator = max(numerator - (a + b + c + d) / 2, 0)
    return numerator / denominator if denominator else 0.0


def _newcombe_half_width(x: float, y: float, phi: float) -> float:
    """Distance from a difference of two shares to one end of its interval.

    Args:
        x, y: distances from each share to the end of its own interval.
        phi: correlation of the pairs.
    """
    return sqrt(max(0.0, x * x - 2 * phi * x * y + y * y))


def verbosity_bias(
    ratings: ArrayLike, is_longer: ArrayLike, cells: ArrayLike | None = None
) -> tuple[BiasEstimate, ...]:
    """For each judge, the share of VALID among longer traces minus that among shorter ones.

    Args:
        ratings: shape (judges, traces).
        is_longer: shape (traces,), 1 for the longer half of an author's traces, 0 for the shorter, nan for neither. The
            comparison is within authors, so an author who writes longer and better traces does not look like a bias.
        cells: of the traces; without it traces are assumed independent, with Newcombe's interval.
    """
    table, longer = _as_verdict_table(ratings), np.asarray(is_longer, dtype=np.float64)
    if cells is not None:
        return tuple(_cell_jackknife(row, longer == 1, longer == 0, np.asarray(cells)) for row in table)
    return tuple(
        difference_of_shares(
            *_count_valid(row[longer == 1]), *_count_valid(row[longer == 0])
        )  # nan is in neither group
        for row in table
    )


def leniency(ratings: ArrayLike, cells: ArrayLike | None = None) -> tuple[BiasEstimate, ...]:
    """For each judge, the mean over traces of its verdict minus the mean verdict of the other judges.

    Above 0 the judge is more lenient than the rest of the panel. Student's interval over cells, or over traces if no
    cells are given.
    """
    table = _as_verdict_table(ratings)
    excess = table - _mean_of_other_judges(table, np.ones(table.shape, dtype=np.bool_))
    if cells is not None:
        all_traces = np.ones(table.shape[1], dtype=np.bool_)
        return tuple(_cell_jackknife(row, all_traces, None, np.asarray(cells)) for row in excess)
    return tuple(_mean_estimate(row[~np.isnan(row)]) for row in excess)


def self_preference(
    ratings: ArrayLike, is_same_kind: ArrayLike, cells: ArrayLike | None = None
) -> tuple[BiasEstimate, ...]:
    """How much more lenient each judge is with authors of its own kind than with others, at equal quality.

    On each trace a judge is compared with the judges that are not of the author's kind. The estimate is the mean of
    these differences over traces of the judge's own kind minus that over all others. Welch's interval if no cells are
    given.

    Args:
        ratings: shape (judges, traces).
        is_same_kind: shape (judges, traces), whether the trace's author is of the judge's kind.
        cells: shape (traces,), the cell of each trace.
    """
    table, same_kind = _as_verdict_table(ratings), np.asarray(is_same_kind, dtype=np.bool_)
    excess = table - _mean_of_other_judges(table, ~same_kind)
    if cells is not None:
        return tuple(
            _cell_jackknife(row, is_kin, ~is_kin, np.asarray(cells))
            for row, is_kin in zip(excess, same_kind, strict=True)
        )
    return tuple(
        _welch_difference(*_split_by_exposure(row, is_kin)) for row, is_kin in zip(excess, same_kind, strict=True)
    )


def order_effect(
    ratings: ArrayLike, verdict_times: ArrayLike, cells: ArrayLike | None = None
) -> tuple[BiasEstimate, ...]:
    """How much more lenient each judge is in the later half of its verdicts than in the earlier half.

    Leniency is relative to the other judges on the same trace.

    Args:
        ratings: shape (judges, traces).
        verdict_times: shape (judges, traces), when each verdict was given, in any unit; nan where unknown.
        cells: shape (traces,), the cell of each trace; without it Welch's interval over traces.
    """
    table, times = _as_verdict_table(ratings), np.asarray(verdict_times, dtype=np.float64)
    excess = table - _mean_of_other_judges(table, np.ones(table.shape, dtype=np.bool_))
    effects = []
    for row, row_times in zip(excess, times, strict=True):
        has_time = ~np.isnan(row) & ~np.isnan(row_times)
        rank = np.argsort(np.argsort(row_times[has_time], kind="stable"), kind="stable")
        is_late = rank >= has_time.sum() / 2
        if cells is None:
            effects.append(_welch_difference(row[has_time][is_late], row[has_time][~is_late]))
        else:
            effects.append(_cell_jackknife(row[has_time], is_late, ~is_late, np.asarray(cells)[has_time]))
    return tuple(effects)


def verdict_drift(before: ArrayLike, after: ArrayLike) -> BiasEstimate:
    """How much more lenient a judge is in a second run on the same traces; paired, so trace quality cancels out.

    Args:
        before, after: shape (traces,), 1, 0 or nan.
    """
    first_run, second_run = (np.asarray(x, dtype=np.float64) for x in (before, after))
    judged_twice = ~np.isnan(first_run) & ~np.isnan(second_run)
    valid_before, valid_after = first_run[judged_twice] == 1, second_run[judged_twice] == 1
    outcome_masks = (
        (valid_after & valid_before),
        (valid_after & ~valid_before),
        (~valid_after & valid_before),
        (~valid_after & ~valid_before),
    )
    return difference_of_paired_shares(*(int(mask.sum()) for mask in outcome_masks))


def _as_verdict_table(ratings: ArrayLike) -> Floats:
    """Verdicts as a float array, shape (judges, traces); ValueError for another shape or an infinite value."""
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("verdicts must be a table (judges, traces) of 1, 0 and nan")
    return table


def _mean_of_other_judges(verdicts: Floats, eligible: NDArray[np.bool_]) -> Floats:
    """Mean verdict of the other eligible judges on each trace, shape (judges, traces); nan where there is none."""
    is_counted = ~np.isnan(verdicts) & eligible
    counted_verdicts = np.where(is_counted, verdicts, 0.0)
    n_others = is_counted.sum(axis=0) - is_counted
    return np.where(n_others > 0, (counted_verdicts.sum(axis=0) - counted_verdicts) / np.maximum(n_others, 1), np.nan)


def _split_by_exposure(verdicts: Floats, exposed: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The recorded verdicts of the exposed traces, and those of the others."""
    has_verdict = ~np.isnan(verdicts)
    return verdicts[has_verdict & exposed], verdicts[has_verdict & ~exposed]


def _count_valid(verdicts: Floats) -> tuple[int, int]:
    """Number of VALID verdicts, and of all verdicts."""
    recorded = verdicts[~np.isnan(verdicts)]
    return int(recorded.sum()), len(recorded)


def _mean_estimate(values: Floats) -> BiasEstimate:
    """The mean of one value per trace with Student's interval; None, with a reason, without any value."""
    n = len(values)
    if n == 0:
        return BiasEstimate(None, 0, 0, None, None, "no trace has a verdict of this judge and of another")
    value = float(values.mean())
    if n < MIN_GROUP_SIZE:
        return BiasEstimate(value, n, n, None, None, f"fewer than {MIN_GROUP_SIZE} traces")
    std_error = float(values.std(ddof=1)) / sqrt(n)
    if std_error == 0:
        return BiasEstimate(value, n, n, None, None, "the same on every trace: no interval")
    half_width = float(stdtrit(n - 1, 0.975)) * std_error
    return BiasEstimate(value, n, n, value - half_width, value + half_width)


def _cell_jackknife(
    values: Floats, first: NDArray[np.bool_], second: NDArray[np.bool_] | None, cells: NDArray[np.generic]
) -> BiasEstimate:
    """Difference of the means of two groups of traces, with a jackknife interval over cells.

    Args:
        values: shape (traces,); nan is left out.
        first, second: masks of the two groups, shape (traces,); without a second group, the mean of the first.
        cells: shape (traces,), labels.
    """
    has_value = ~np.isnan(values)
    masks = [first & has_value] if second is None else [first & has_value, second & has_value]
    cell_index = np.unique(cells, return_inverse=True)[1]
    n_cells = int(cell_index.max(initial=-1)) + 1
    sums = [np.bincount(cell_index[mask], values[mask], minlength=n_cells) for mask in masks]
    counts = [np.bincount(cell_index[mask], minlength=n_cells) for mask in masks]
    n, exposed = int(sum(side_counts.sum() for side_counts in counts)), int(counts[0].sum())
    if any(not side_counts.sum() for side_counts in counts):
        no_comparison = "no trace has a verdict of this judge and of another"
        return BiasEstimate(
            None, n, exposed, None, None, no_comparison if second is None else "one side has no verdict to compare"
        )
    means = [side_sums.sum() / side_counts.sum() for side_sums, side_counts in zip(sums, counts, strict=True)]
    value = float(means[0] - (means[1] if second is not None else 0.0))
    min_cells = min(int((side_counts > 0).sum()) for side_counts in counts)
    if min_cells < MIN_GROUP_SIZE:
        side_note = "" if second is None else " on one side"
        return BiasEstimate(value, n, exposed, None, None, f"fewer than {MIN_GROUP_SIZE} cells{side_note}")
    is_used = sum(counts) > 0
    means_without = [
        (side_sums.sum() - side_sums[is_used]) / (side_counts.sum() - side_counts[is_used])
        for side_sums, side_counts in zip(sums, counts, strict=True)
    ]
    replicates = means_without[0] - (means_without[1] if second is not None else 0.0)
    n_used = len(replicates)
    std_error = sqrt((n_used - 1) / n_used * float(((replicates - replicates.mean()) ** 2).sum()))
    if std_error <= 1e-12:
        return BiasEstimate(value, n, exposed, None, None, "the same in every cell: no interval")
    half_width = float(stdtrit(min_cells - 1, 0.975)) * std_error
    return BiasEstimate(value, n, exposed, value - half_width, value + half_width)


def _welch_difference(first: Floats, second: Floats) -> BiasEstimate:
    """The mean of the first values minus that of the second, with Welch's interval."""
    n_first, n_second = len(first), len(second)
    if not n_first or not n_second:
        return BiasEstimate(
            None, n_first + n_second, n_first, None, None, "one side has no trace that another judge has ruled on"
        )
    value = float(first.mean() - second.mean())
    if min(n_first, n_second) < MIN_GROUP_SIZE:
        return BiasEstimate(
            value, n_first + n_second, n_first, None, None, f"fewer than {MIN_GROUP_SIZE} traces on one side"
        )
    # Squared standard errors of both means.
    u, v = float(first.var(ddof=1)) / n_first, float(second.var(ddof=1)) / n_second
    if u + v == 0:
        return BiasEstimate(value, n_first + n_second, n_first, None, None, "the same on every trace: no interval")
    df = (u + v) ** 2 / (u * u / (n_first - 1) + v * v / (n_second - 1))
    half_width = float(stdtrit(df, 0.975)) * sqrt(u + v)
    return BiasEstimate(value, n_first + n_second, n_first, value - half_width, value + half_width)
