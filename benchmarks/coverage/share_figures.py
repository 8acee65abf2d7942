"""Shares of cases, such as refusals, with both of their intervals: for other units, and for these cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.metrics.intervals.unit_means import ShareTable, mean_over_units, shares_over_units
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.share_worlds import SHARE_WORLDS, ShareSample


@lru_cache(maxsize=1)
def _first_share(sample: ShareSample) -> ShareEstimate:
    """The share of the first row, with the design effect pooled over all rows."""
    units = {"country": sample.country, "topic": sample.topic}
    shares: Sequence[ShareEstimate] = shares_over_units(
        [ShareTable(hits, sample.totals, units) for hits in sample.hits]
    )
    return shares[0]


def _share(sample: ShareSample) -> Interval:
    return to_interval(_first_share(sample))


def _share_of_these_cells(sample: ShareSample) -> Interval:
    share = _first_share(sample)
    return share.value or 0.0, share.cells_ci_low, share.cells_ci_high


def _cell_mean(sample: ShareSample) -> Interval:
    return to_interval(mean_over_units(sample.means, {"country": sample.country, "topic": sample.topic}, (0.0, 1.0)))


SHARE_FIGURES = (
    Figure(
        "share",
        _share,
        lambda s: naive.wilson_interval(float(s.hits[0].sum()), float(s.totals.sum())),
        "Wilson's, over cases",
    ),
    Figure("share of these cells", _share_of_these_cells),
    Figure("cell mean", _cell_mean, lambda s: naive.student_interval(s.means), "Student's, over cells"),
)

SHARE_STUDY = Study("shares", __name__, SHARE_FIGURES, SHARE_WORLDS)
