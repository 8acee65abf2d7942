"""What a judge leans to: how far its verdicts move with what should not move them, the quality of a trace held.

A table of verdicts has the shape (judges, traces): 1 is VALID, 0 INVALID, nan no verdict. Traces on one cell hang
together; where `cells` says which those are, shape (traces,), intervals are over cells: Student's, from the jackknife
that leaves one cell out (Efron & Stein, Annals of Statistics 9, 1981).
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
"""Traces on either side below which a difference has no interval."""


@dataclass(frozen=True, slots=True)
class BiasEstimate:
    """A difference of means with a 95% interval; `reason` says why something is None.

    Attributes:
        n: traces that it rests on, `n_exposed` of them on the side that is looked at.
    """

    value: float | None
    n: int
    n_exposed: int
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None


def difference_of_shares(hits: int, n: int, other_hits: int, other_n: int) -> BiasEstimate:
    """One share less another, with Newcombe's interval (Statistics in Medicine 17, 1998, 873-890, method 10).

    It joins the Wilson intervals of both, so it has a width even where a share is 0 or 1.

    Raises:
        ValueError: more hits than cases, or a negative number.
    """
    first, second = proportion(hits, n), proportion(other_hits, other_n)
    ends = [first.value, first.ci_low, first.ci_high, second.value, second.ci_low, second.ci_high]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return BiasEstimate(None, n + other_n, n, None, None, "one side has no verdict")
    p, low, high, q, other_low, other_high = known
    down, up = sqrt((p - low) ** 2 + (other_high - q) ** 2), sqrt((high - p) ** 2 + (q - other_low) ** 2)
    return BiasEstimate(p - q, n + other_n, n, p - q - down, p - q + up)


def difference_of_paired_shares(both: int, first: int, second: int, neither: int) -> BiasEstimate:
    """One share less another over the same cases (Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10).

    As `difference_of_shares`, with the correlation of the pairs taken into account, and shrunk as there.

    Args:
        both, first, second, neither: cases that count in both shares, in one only, in neither.

    Raises:
        ValueError: a number is negative.
    """
    n = both + first + second + neither
    one, other = proportion(both + first, n), proportion(both + second, n)
    ends = [one.value, one.ci_low, one.ci_high, other.value, other.ci_low, other.ci_high]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return BiasEstimate(None, n, n, None, None, "no case")
    p, low, high, q, other_low, other_high = known
    phi = _phi_coefficient(both, first, second, neither)
    down, up = _newcombe_half_width(p - low, other_high - q, phi), _newcombe_half_width(high - p, q - other_low, phi)
    return BiasEstimate(p - q, n, n, p - q - down, p - q + up)


def _phi_coefficient(a: int, b: int, c: int, d: int) -> float:
    below = sqrt((a + b) * (c + d) * (a + c) * (b + d))
    above: float = a * d - b * c
    if above > 0:
        above = max(above - (a + b + c + d) / 2, 0)
    return above / below if below else 0.0


def _newcombe_half_width(x: float, y: float, phi: float) -> float:
    return sqrt(max(0.0, x * x - 2 * phi * x * y + y * y))


def verbosity_bias(
    ratings: ArrayLike, is_longer: ArrayLike, cells: ArrayLike | None = None
) -> tuple[BiasEstimate, ...]:
    """For each judge its share of VALID among longer traces less that among shorter ones.

    Args:
        ratings: shape (judges, traces).
        longer: shape (traces,), 1 for the longer half of an author's own traces, 0 for the shorter, nan for neither;
            compared within authors, so that an author who writes more, and better, does not pass for a judge's taste.
        cells: of the traces; without it they are taken for independent, by Newcombe's interval.
    """
    table, side = _as_verdict_table(ratings), np.asarray(is_longer, dtype=np.float64)
    if cells is not None:
        return tuple(_cell_jackknife(row, side == 1, side == 0, np.asarray(cells)) for row in table)
    return tuple(
        difference_of_shares(*_count_valid(row[side == 1]), *_count_valid(row[side == 0]))  # nan is on neither side
        for row in table
    )


def leniency(ratings: ArrayLike, cells: ArrayLike | None = None) -> tuple[BiasEstimate, ...]:
    """For each judge the mean over its traces of its verdict less the mean of the others' on the same trace.

    Above 0 is milder than the rest of the panel. Student's interval over cells, or over traces where none are given.
    """
    table = _as_verdict_table(ratings)
    excess = table - _mean_of_other_judges(table, np.ones(table.shape, dtype=np.bool_))
    if cells is not None:
        every = np.ones(table.shape[1], dtype=np.bool_)
        return tuple(_cell_jackknife(row, every, None, np.asarray(cells)) for row in excess)
    return tuple(_mean_estimate(row[~np.isnan(row)]) for row in excess)


def self_preference(
    ratings: ArrayLike, is_same_kind: ArrayLike, cells: ArrayLike | None = None
) -> tuple[BiasEstimate, ...]:
    """How much milder each judge is with its own kind than with others, the quality of a trace held.

    On each trace a judge is compared with the judges that are not of the author's kind; the mean of these differences
    over its own kind's traces, less that over all others. Welch's interval where no cells are given.

    Args:
        ratings: shape (judges, traces).
        own: shape (judges, traces), whether the trace's author is of the judge's own kind.
    """
    table, kin = _as_verdict_table(ratings), np.asarray(is_same_kind, dtype=np.bool_)
    excess = table - _mean_of_other_judges(table, ~kin)
    if cells is not None:
        return tuple(
            _cell_jackknife(row, mine, ~mine, np.asarray(cells)) for row, mine in zip(excess, kin, strict=True)
        )
    return tuple(_welch_difference(*_split_by_exposure(row, mine)) for row, mine in zip(excess, kin, strict=True))


def order_effect(
    ratings: ArrayLike, verdict_times: ArrayLike, cells: ArrayLike | None = None
) -> tuple[BiasEstimate, ...]:
    """How much milder each judge is in the later half of its verdicts than in the earlier, beside the others.

    Args:
        ratings: shape (judges, traces).
        moments: shape (judges, traces), when each verdict was given, in any unit; nan where that is not known.
    """
    table, times = _as_verdict_table(ratings), np.asarray(verdict_times, dtype=np.float64)
    excess = table - _mean_of_other_judges(table, np.ones(table.shape, dtype=np.bool_))
    found = []
    for row, when in zip(excess, times, strict=True):
        known = ~np.isnan(row) & ~np.isnan(when)
        rank = np.argsort(np.argsort(when[known], kind="stable"), kind="stable")
        late = rank >= known.sum() / 2
        if cells is None:
            found.append(_welch_difference(row[known][late], row[known][~late]))
        else:
            found.append(_cell_jackknife(row[known], late, ~late, np.asarray(cells)[known]))
    return tuple(found)


def verdict_drift(before: ArrayLike, after: ArrayLike) -> BiasEstimate:
    """How much milder a judge is in a second run on the same traces; paired, so the traces' quality is held.

    Args:
        before, after: shape (traces,), 1, 0 or nan.
    """
    old, new = (np.asarray(x, dtype=np.float64) for x in (before, after))
    known = ~np.isnan(old) & ~np.isnan(new)
    was, is_ = old[known] == 1, new[known] == 1
    cells = ((is_ & was), (is_ & ~was), (~is_ & was), (~is_ & ~was))
    return difference_of_paired_shares(*(int(cell.sum()) for cell in cells))


def _as_verdict_table(ratings: ArrayLike) -> Floats:
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("verdicts must be a table (judges, traces) of 1, 0 and nan")
    return table


def _mean_of_other_judges(verdicts: Floats, eligible: NDArray[np.bool_]) -> Floats:
    """The mean verdict of the other judges that count on each trace, shape (judges, traces); nan where none does."""
    there = ~np.isnan(verdicts) & eligible
    given = np.where(there, verdicts, 0.0)
    n = there.sum(axis=0) - there
    return np.where(n > 0, (given.sum(axis=0) - given) / np.maximum(n, 1), np.nan)


def _split_by_exposure(verdicts: Floats, exposed: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    known = ~np.isnan(verdicts)
    return verdicts[known & exposed], verdicts[known & ~exposed]


def _count_valid(verdicts: Floats) -> tuple[int, int]:
    known = verdicts[~np.isnan(verdicts)]
    return int(known.sum()), len(known)


def _mean_estimate(values: Floats) -> BiasEstimate:
    n = len(values)
    if n == 0:
        return BiasEstimate(None, 0, 0, None, None, "no trace has a verdict of this judge and of another")
    value = float(values.mean())
    if n < MIN_GROUP_SIZE:
        return BiasEstimate(value, n, n, None, None, f"fewer than {MIN_GROUP_SIZE} traces")
    error = float(values.std(ddof=1)) / sqrt(n)
    if error == 0:
        return BiasEstimate(value, n, n, None, None, "the same on every trace: no interval")
    half = float(stdtrit(n - 1, 0.975)) * error
    return BiasEstimate(value, n, n, value - half, value + half)


def _cell_jackknife(
    values: Floats, first: NDArray[np.bool_], second: NDArray[np.bool_] | None, cells: NDArray[np.generic]
) -> BiasEstimate:
    """The mean over one side less that over the other (or the one alone), with the interval over cells."""
    known = ~np.isnan(values)
    sides = [first & known] if second is None else [first & known, second & known]
    place = np.unique(cells, return_inverse=True)[1]
    k = int(place.max(initial=-1)) + 1
    sums = [np.bincount(place[side], values[side], minlength=k) for side in sides]
    counts = [np.bincount(place[side], minlength=k) for side in sides]
    n, exposed = int(sum(c.sum() for c in counts)), int(counts[0].sum())
    if any(not c.sum() for c in counts):
        alone = "no trace has a verdict of this judge and of another"
        return BiasEstimate(
            None, n, exposed, None, None, alone if second is None else "one side has no verdict to compare"
        )
    means = [s.sum() / c.sum() for s, c in zip(sums, counts, strict=True)]
    value = float(means[0] - (means[1] if second is not None else 0.0))
    fewest = min(int((c > 0).sum()) for c in counts)
    if fewest < MIN_GROUP_SIZE:
        where = "" if second is None else " on one side"
        return BiasEstimate(value, n, exposed, None, None, f"fewer than {MIN_GROUP_SIZE} cells{where}")
    there = sum(counts) > 0
    left = [(s.sum() - s[there]) / (c.sum() - c[there]) for s, c in zip(sums, counts, strict=True)]
    without = left[0] - (left[1] if second is not None else 0.0)
    m = len(without)
    error = sqrt((m - 1) / m * float(((without - without.mean()) ** 2).sum()))
    if error <= 1e-12:
        return BiasEstimate(value, n, exposed, None, None, "the same in every cell: no interval")
    half = float(stdtrit(fewest - 1, 0.975)) * error
    return BiasEstimate(value, n, exposed, value - half, value + half)


def _welch_difference(first: Floats, second: Floats) -> BiasEstimate:
    a, b = len(first), len(second)
    if not a or not b:
        return BiasEstimate(None, a + b, a, None, None, "one side has no trace that another judge has ruled on")
    value = float(first.mean() - second.mean())
    if min(a, b) < MIN_GROUP_SIZE:
        return BiasEstimate(value, a + b, a, None, None, f"fewer than {MIN_GROUP_SIZE} traces on one side")
    u, v = float(first.var(ddof=1)) / a, float(second.var(ddof=1)) / b
    if u + v == 0:
        return BiasEstimate(value, a + b, a, None, None, "the same on every trace: no interval")
    freedom = (u + v) ** 2 / (u * u / (a - 1) + v * v / (b - 1))
    half = float(stdtrit(freedom, 0.975)) * sqrt(u + v)
    return BiasEstimate(value, a + b, a, value - half, value + half)
