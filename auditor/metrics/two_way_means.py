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

from auditor.metrics._complete_cases import Floats, complete
from auditor.metrics.bootstrap import BIAS, MIN_CLUSTERS, Interval, Statistic
from auditor.metrics.jackknife import crossed_jackknife
from auditor.metrics.resampling import MIN_QUESTIONS, Mean, bootstrap_mean, ratio_interval
from auditor.metrics.share import mean_share

CROSSED = "countries and topics"
CELLS = f"cells, for want of {MIN_CLUSTERS} countries and topics"


@dataclass(frozen=True, slots=True)
class OverCells(Mean):
    """A mean or share of `n` cases; `over` says what its 95% interval is over, and is empty where there is none."""

    over: str = ""


def crossed_share(hits: ArrayLike, totals: ArrayLike, countries: ArrayLike, topics: ArrayLike) -> OverCells:
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
    (part, whole), keep = complete(hits, totals)
    if (part < 0).any() or (part > whole).any():
        raise ValueError("hits and totals must be counts, hits at most totals")
    used = whole > 0
    n = int(whole.sum())
    if not n:
        return OverCells(None, 0, None, None, "nothing to count")
    country, topic = (np.asarray(labels)[keep][used] for labels in (countries, topics))
    value = float(part.sum() / whole.sum())
    part, whole, country, topic = _one_a_cell(part[used], whole[used], country, topic)
    sizes = [len(np.unique(labels)) for labels in (country, topic)]
    if min(sizes) >= MIN_CLUSTERS:
        return OverCells(value, n, *_over_both(value, part, whole, country, topic, min(sizes)), None, CROSSED)
    if len(part) < MIN_QUESTIONS:
        return OverCells(value, n, None, None, f"an interval needs {MIN_QUESTIONS} cells")
    ends = ratio_interval(part, whole)
    return OverCells(value, n, *ends, None, CELLS)


def crossed_mean(
    values: ArrayLike, countries: ArrayLike, topics: ArrayLike, bounds: tuple[float, float] = (-inf, inf)
) -> OverCells:
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
        return OverCells(None, 0, None, None, "no cell has a value")
    if min(found.n_countries, found.n_topics) >= MIN_CLUSTERS:
        return _cut(found, bounds)
    mean = bootstrap_mean(x, bounds=bounds)
    reason = None if mean.reason is None else mean.reason.replace("questions", "cells")
    return OverCells(mean.value, mean.n, mean.ci_low, mean.ci_high, reason, "" if reason else CELLS)


def _cut(found: Interval, bounds: tuple[float, float]) -> OverCells:
    if found.low is None or found.high is None:
        return OverCells(found.estimate, found.n_cells, None, None, found.reason)
    low, high = max(bounds[0], found.low), min(bounds[1], found.high)
    return OverCells(found.estimate, found.n_cells, low, high, None, CROSSED)


def _over_both(
    value: float, part: Floats, whole: Floats, country: NDArray[np.generic], topic: NDArray[np.generic], fewest: int
) -> tuple[float, float]:
    found = crossed_jackknife(_LOG_ODDS, part, whole, country, topic) if 0 < value < 1 else None
    if found is not None and found.low is not None and found.high is not None:
        return 1 / (1 + exp(-found.low)), 1 / (1 + exp(-found.high))
    same = mean_share(round(value * fewest, 9), fewest)
    return same.ci_low or 0.0, 1.0 if same.ci_high is None else same.ci_high


def _log_odds(sums: Floats) -> Floats:
    hits, misses = sums[:, 0], sums[:, 1] - sums[:, 0]
    inside = (hits > 0) & (misses > 0)
    odds: Floats = np.where(inside, np.log(np.where(inside, hits, 1.0)) - np.log(np.where(inside, misses, 1.0)), np.nan)
    return odds


_LOG_ODDS = Statistic(lambda hits, totals: np.stack([hits, totals], axis=1), _log_odds)


def _one_a_cell(
    part: Floats, whole: Floats, country: NDArray[np.generic], topic: NDArray[np.generic]
) -> tuple[Floats, Floats, NDArray[np.generic], NDArray[np.generic]]:
    """Cells that are there several times put together: the jackknife leaves a cell out once, with all that is in it."""
    row, column = (np.unique(labels, return_inverse=True)[1] for labels in (country, topic))
    _, first, place = np.unique(row * (int(column.max()) + 1) + column, return_index=True, return_inverse=True)
    hits, totals = (np.bincount(place, counts).astype(np.float64) for counts in (part, whole))
    return hits, totals, country[first], topic[first]
