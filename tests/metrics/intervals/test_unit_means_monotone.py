"""The ends of a share's intervals rise with its hits: for these cells always, for other units where it is claimed."""

from __future__ import annotations

from itertools import pairwise
from math import lcm

import numpy as np
from hypothesis import given, settings, strategies as st

from auditor.metrics.intervals.jackknife_interval import clopper_pearson
from auditor.metrics.intervals.unit_means import ShareTable, pooled_design_effect, share_over_units, shares_over_units

COUNTRY, TOPIC = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
UNITS = {"country": COUNTRY, "topic": TOPIC}
CASES = np.full(200, 5)


@given(
    st.floats(1, 5000),
    st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted),
)
def test_ends_rise_with_the_hits_at_one_effective_size(n: float, shares: list[float]) -> None:
    smaller, larger = (clopper_pearson(share, n) for share in shares)
    assert smaller[0] <= larger[0] + 1e-9
    assert smaller[1] <= larger[1] + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=2, max_size=8), st.integers(0, 2**32 - 1), st.floats(0.3, 3.0))
def test_ends_rise_with_the_hits_over_the_rows_of_a_figure(n_hits: list[int], seed: int, spread: float) -> None:
    """Whatever the hits' places: rows of 0 to 1,000 hits in 1,000 cases, spread unevenly over topics."""
    rng = np.random.default_rng(seed)
    weights = np.exp(spread * rng.standard_normal(10))[TOPIC]
    tables = []
    for k in n_hits:
        hits = np.zeros(200)
        drawn = rng.permuted(np.repeat(np.arange(200), 5))
        chosen = drawn[np.argsort(rng.exponential(size=1000) / weights[drawn])][:k]
        np.add.at(hits, chosen, 1)
        tables.append(ShareTable(hits, CASES, UNITS))
    rows = sorted(shares_over_units(tables), key=lambda share: share.value or 0.0)
    shown = [row for row in rows if row.ci_low is not None and row.ci_high is not None]
    assert all((a.ci_low or 0) <= (b.ci_low or 0) and (a.ci_high or 0) <= (b.ci_high or 0) for a, b in pairwise(shown))
    for row, table in zip(shares_over_units(tables), tables, strict=True):
        single = share_over_units(*table[:3], design_effect=pooled_design_effect(tables))
        assert (row.ci_low is None) == (single.ci_low is None)
        if single.ci_low is not None and single.ci_high is not None:  # intervals are only ever widened
            assert (row.ci_low or 0) <= single.ci_low + 1e-12
            assert (row.ci_high or 0) >= single.ci_high - 1e-12


@settings(max_examples=15, deadline=None)
@given(st.integers(5, 9), st.integers(5, 9), st.integers(1, 3))
def test_ends_rise_with_scattered_hits_of_one_row(n_countries: int, n_topics: int, n_cases: int) -> None:
    """One row alone, from 5 hits to 5 misses, where each hit is in another country and topic as far as there are any.

    Without a hit nothing shows how hits cluster, so that the interval is wider than that of a few; likewise for misses.
    """
    scattered = np.array(
        [
            ((i + shift) % n_countries, i % n_topics)
            for shift in range(n_countries)
            for i in range(lcm(n_countries, n_topics))
        ]
    )
    cells = np.array(list(dict.fromkeys(map(tuple, scattered))))
    assert len(cells) == n_countries * n_topics
    units, totals = {"country": cells[:, 0], "topic": cells[:, 1]}, np.full(len(cells), n_cases)
    n = int(totals.sum())
    hits = [k // len(cells) + (np.arange(len(cells)) < k % len(cells)) for k in range(n + 1)]
    shares = [share_over_units(row, totals, units) for row in hits]
    shown = [(share.ci_low or 0.0, share.ci_high or 1.0) for share in shares[5 : n - 4]]
    assert all(share.ci_low is not None for share in shares[5 : n - 4])
    assert all(low <= next_low and high <= next_high for (low, high), (next_low, next_high) in pairwise(shown))
    assert (shares[0].ci_high or 0) > shown[0][1]
    assert (shares[n].ci_low or 1) < shown[-1][0]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_ends_for_these_cells_rise_with_each_hit_wherever_it_is(seed: int, is_verdicts: bool) -> None:
    rng = np.random.default_rng(seed)
    totals = rng.integers(0, 9, 35)
    units = {"country": np.repeat(np.arange(7), 5), "topic": np.tile(np.arange(5), 7)}
    n_traces = np.minimum(totals, 2) if is_verdicts else None
    hits, intervals = np.zeros(35), []
    for cell in [-1, *rng.permutation(np.repeat(np.arange(35), totals))]:
        hits[cell] += cell >= 0
        share = share_over_units(hits, totals, units, independent_cases=n_traces)
        assert share.cells_ci_low is not None
        assert share.cells_ci_high is not None
        intervals.append((share.cells_ci_low, share.cells_ci_high))
    assert (intervals[0][0], intervals[-1][1]) == (0.0, 1.0)
    assert all(low <= next_low and high <= next_high for (low, high), (next_low, next_high) in pairwise(intervals))
