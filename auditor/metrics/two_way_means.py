"""Means and shares over a table of countries and topics whose cases hang together: traces, verdicts, answers.

What is counted lies in cells, cells in countries and topics, and any of these may go up and down together, so many
cases are worth fewer. Where there are at least five countries and five topics, both are left out in turn
(`auditor.metrics.jackknife`); with fewer of either, cells are what is drawn anew, and `over` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics.bootstrap import BIAS, MIN_CLUSTERS, Statistic, TwoWayEstimate
from auditor.metrics.jackknife import crossed_jackknife
from auditor.metrics.resampling import MIN_QUESTIONS, MeanEstimate, bootstrap_mean, ratio_interval
from auditor.metrics.share import mean_share

TWO_WAY_LABEL = "countries and topics"
CELLS_LABEL = f"cells, for want of {MIN_CLUSTERS} countries and topics"


@dataclass(frozen=True, slots=True)
class TwoWayMean(MeanEstimate):
    """A mean or share of `n` cases; `over` says what its 95% interval is over, and is empty where there is none."""

    over: str = ""


def two_way_share(hits: ArrayLike, totals: ArrayLike, countries: ArrayLike, topics: ArrayLike) -> TwoWayMean:
    """The share of all hits in all totals.

    Over countries and topics the interval is on the scale of log odds. Where no cell shows another share than the
    rest, it is Wilson's, for as many cases as there are of the fewer of countries and topics.

    Args:
        hits, totals: shape (n,), 0 <= hits <= totals; cells without a case are left out.
        countries, topics: shape (n,), labels of any kind; a cell may be there several times, and is one.

    Returns:
        In [0, 1]; `n` counts cases. No interval, with a reason, below 5 cells.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= totals.
    """
    (part, whole), keep = complete_cases(hits, totals)
    if (part < 0).any() or (part > whole).any():
        raise ValueError("hits and totals must be counts, hits at most totals")
    used = whole > 0
    n = int(whole.sum())
    if not n:
        return TwoWayMean(None, 0, None, None, "nothing to count")
    country, topic = (np.asarray(labels)[keep][used] for labels in (countries, topics))
    value = float(part.sum() / whole.sum())
    part, whole, country, topic = _merge_repeated_cells(part[used], whole[used], country, topic)
    sizes = [len(np.unique(labels)) for labels in (country, topic)]
    if min(sizes) >= MIN_CLUSTERS:
        return TwoWayMean(
            value, n, *_two_way_interval(value, part, whole, country, topic, min(sizes)), None, TWO_WAY_LABEL
        )
    if len(part) < MIN_QUESTIONS:
        return TwoWayMean(value, n, None, None, f"an interval needs {MIN_QUESTIONS} cells")
    ends = ratio_interval(part, whole)
    return TwoWayMean(value, n, *ends, None, CELLS_LABEL)


def two_way_mean(
    values: ArrayLike, countries: ArrayLike, topics: ArrayLike, bounds: tuple[float, float] = (-inf, inf)
) -> TwoWayMean:
    """The mean of one value a cell.

    Args:
        values: shape (n,); nan where there is none.
        countries, topics: shape (n,), labels of any kind.
        bounds: what a value can be at least and at most; ends are cut there.

    Returns:
        `n` counts values. No interval, with a reason, below 5 cells or where all have one value.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    x = np.asarray(values, dtype=np.float64)
    found = crossed_jackknife(BIAS, x, np.zeros_like(x), countries, topics)
    if found.estimate is None:
        return TwoWayMean(None, 0, None, None, "no cell has a value")
    if min(found.n_countries, found.n_topics) >= MIN_CLUSTERS:
        return _clip_interval(found, bounds)
    mean = bootstrap_mean(x, bounds=bounds)
    reason = None if mean.reason is None else mean.reason.replace("questions", "cells")
    return TwoWayMean(mean.value, mean.n, mean.ci_low, mean.ci_high, reason, "" if reason else CELLS_LABEL)


def _clip_interval(interval: TwoWayEstimate, bounds: tuple[float, float]) -> TwoWayMean:
    if interval.low is None or interval.high is None:
        return TwoWayMean(interval.estimate, interval.n_cells, None, None, interval.reason)
    low, high = max(bounds[0], interval.low), min(bounds[1], interval.high)
    return TwoWayMean(interval.estimate, interval.n_cells, low, high, None, TWO_WAY_LABEL)


def _two_way_interval(
    share: float,
    hits: Floats,
    totals: Floats,
    countries: NDArray[np.generic],
    topics: NDArray[np.generic],
    n_clusters: int,
) -> tuple[float, float]:
    found = crossed_jackknife(_LOG_ODDS, hits, totals, countries, topics) if 0 < share < 1 else None
    if found is not None and found.low is not None and found.high is not None:
        return 1 / (1 + exp(-found.low)), 1 / (1 + exp(-found.high))
    same = mean_share(round(share * n_clusters, 9), n_clusters)
    return same.ci_low or 0.0, 1.0 if same.ci_high is None else same.ci_high


def _log_odds(sums: Floats) -> Floats:
    hits, misses = sums[:, 0], sums[:, 1] - sums[:, 0]
    inside = (hits > 0) & (misses > 0)
    odds: Floats = np.where(inside, np.log(np.where(inside, hits, 1.0)) - np.log(np.where(inside, misses, 1.0)), np.nan)
    return odds


_LOG_ODDS = Statistic(lambda hits, totals: np.stack([hits, totals], axis=1), _log_odds)


def _merge_repeated_cells(
    case_hits: Floats, case_totals: Floats, countries: NDArray[np.generic], topics: NDArray[np.generic]
) -> tuple[Floats, Floats, NDArray[np.generic], NDArray[np.generic]]:
    """Cells that are there several times put together: the jackknife leaves a cell out once, with all that is in it."""
    row, column = (np.unique(labels, return_inverse=True)[1] for labels in (countries, topics))
    _, first, place = np.unique(row * (int(column.max()) + 1) + column, return_index=True, return_inverse=True)
    hits, totals = (np.bincount(place, counts).astype(np.float64) for counts in (case_hits, case_totals))
    return hits, totals, countries[first], topics[first]
