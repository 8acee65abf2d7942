"""Means and shares over a table of countries and topics with correlated cases: traces, verdicts, answers.

Cases lie in cells, cells in countries and topics, and cases that share any of these are correlated, so they carry less
information than independent ones. With at least five countries and five topics, both are left out in turn
(`auditor.metrics.jackknife`); with fewer of either, cells are resampled, and `over` says so.
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

# What an interval is over, as `TwoWayMean.over` says it.
TWO_WAY_LABEL = "countries and topics"
CELLS_LABEL = f"cells, because there are fewer than {MIN_CLUSTERS} clusters"


@dataclass(frozen=True, slots=True)
class TwoWayMean(MeanEstimate):
    """A mean or share of `n` cases; `over` says what its 95% interval is over, and is empty where there is none."""

    over: str = ""


def two_way_share(hits: ArrayLike, totals: ArrayLike, countries: ArrayLike, topics: ArrayLike) -> TwoWayMean:
    """The share of all hits in all totals, with its interval.

    Over countries and topics the interval is on the log-odds scale. Where all cells have the same share, it is
    Wilson's, with the smaller of the numbers of countries and topics as the number of cases.

    Args:
        hits, totals: shape (n,), per cell the cases counted and all cases, 0 <= hits <= totals; cells without a case
            are left out.
        countries, topics: shape (n,), labels of any kind; repeated cells are merged.

    Returns:
        In [0, 1]; `n` counts cases. No interval, with a reason, below 5 cells.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= totals.
    """
    (hit_counts, total_counts), is_complete = complete_cases(hits, totals)
    if (hit_counts < 0).any() or (hit_counts > total_counts).any():
        raise ValueError("hits and totals must be counts, hits at most totals")
    has_cases = total_counts > 0
    n_cases = int(total_counts.sum())
    if not n_cases:
        return TwoWayMean(None, 0, None, None, "nothing to count")
    country, topic = (np.asarray(labels)[is_complete][has_cases] for labels in (countries, topics))
    value = float(hit_counts.sum() / total_counts.sum())
    hit_counts, total_counts, country, topic = _merge_repeated_cells(
        hit_counts[has_cases], total_counts[has_cases], country, topic
    )
    n_clusters = [len(np.unique(labels)) for labels in (country, topic)]
    if min(n_clusters) >= MIN_CLUSTERS:
        return TwoWayMean(
            value,
            n_cases,
            *_two_way_interval(value, hit_counts, total_counts, country, topic, min(n_clusters)),
            None,
            TWO_WAY_LABEL,
        )
    if len(hit_counts) < MIN_QUESTIONS:
        return TwoWayMean(value, n_cases, None, None, f"an interval needs {MIN_QUESTIONS} cells")
    interval = ratio_interval(hit_counts, total_counts)
    return TwoWayMean(value, n_cases, *interval, None, CELLS_LABEL)


def two_way_mean(
    values: ArrayLike, countries: ArrayLike, topics: ArrayLike, bounds: tuple[float, float] = (-inf, inf)
) -> TwoWayMean:
    """The mean over cells of one value per cell, with its interval.

    Args:
        values: shape (n,); nan where there is none.
        countries, topics: shape (n,), labels of any kind.
        bounds: smallest and largest possible value; the ends of the interval are clipped to them.

    Returns:
        `n` counts values. No interval, with a reason, below 5 cells or where all have one value.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    x = np.asarray(values, dtype=np.float64)
    # The mean of x is its bias against a truth of 0.
    jackknifed = crossed_jackknife(BIAS, x, np.zeros_like(x), countries, topics)
    if jackknifed.estimate is None:
        return TwoWayMean(None, 0, None, None, "no cell has a value")
    if min(jackknifed.n_countries, jackknifed.n_topics) >= MIN_CLUSTERS:
        return _clip_interval(jackknifed, bounds)
    mean = bootstrap_mean(x, bounds=bounds)
    reason = None if mean.reason is None else mean.reason.replace("questions", "cells")
    return TwoWayMean(mean.value, mean.n, mean.ci_low, mean.ci_high, reason, "" if reason else CELLS_LABEL)


def _clip_interval(interval: TwoWayEstimate, bounds: tuple[float, float]) -> TwoWayMean:
    """Convert a two-way estimate to a `TwoWayMean`, with its interval clipped to the bounds.

    Args:
        interval: the estimate of a mean, with its interval over countries and topics.
        bounds: smallest and largest possible value.
    """
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
    """The interval (low, high) of a share: the two-way jackknife on the log-odds scale, or else Wilson's.

    Wilson's interval over `n_clusters` cases is used where the log odds have no jackknife interval, as for a share of
    0 or 1.

    Args:
        share: sum of hits over sum of totals.
        hits, totals, countries, topics: shape (n,), one value per cell; no cell is repeated.
        n_clusters: the smaller of the numbers of countries and topics.
    """
    log_odds = crossed_jackknife(_LOG_ODDS, hits, totals, countries, topics) if 0 < share < 1 else None
    if log_odds is not None and log_odds.low is not None and log_odds.high is not None:
        return 1 / (1 + exp(-log_odds.low)), 1 / (1 + exp(-log_odds.high))
    wilson = mean_share(round(share * n_clusters, 9), n_clusters)
    return wilson.ci_low or 0.0, 1.0 if wilson.ci_high is None else wilson.ci_high


def _log_odds(sums: Floats) -> Floats:
    """Log odds from sums of hits (column 0) and totals (column 1); nan without a hit or without a miss."""
    hits, misses = sums[:, 0], sums[:, 1] - sums[:, 0]
    defined = (hits > 0) & (misses > 0)
    log_odds: Floats = np.where(
        defined, np.log(np.where(defined, hits, 1.0)) - np.log(np.where(defined, misses, 1.0)), np.nan
    )
    return log_odds


# Scores and truth of this statistic are hits and totals.
_LOG_ODDS = Statistic(lambda hits, totals: np.stack([hits, totals], axis=1), _log_odds)


def _merge_repeated_cells(
    case_hits: Floats, case_totals: Floats, countries: NDArray[np.generic], topics: NDArray[np.generic]
) -> tuple[Floats, Floats, NDArray[np.generic], NDArray[np.generic]]:
    """Add up the counts of repeated cells, since the jackknife must leave out all of a cell at once.

    Returns:
        Hits, totals, countries and topics, one value per distinct cell.
    """
    country_index, topic_index = (np.unique(labels, return_inverse=True)[1] for labels in (countries, topics))
    # A cell's number is unique for its country and topic; first_index is where it occurs first.
    _, first_index, cell_index = np.unique(
        country_index * (int(topic_index.max()) + 1) + topic_index, return_index=True, return_inverse=True
    )
    hits, totals = (np.bincount(cell_index, counts).astype(np.float64) for counts in (case_hits, case_totals))
    return hits, totals, countries[first_index], topics[first_index]
