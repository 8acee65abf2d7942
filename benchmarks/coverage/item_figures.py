"""Figures over the items of a task, questions, item sets or instances: only they are resampled."""

from __future__ import annotations

import numpy as np

from auditor.metrics.intervals.correlation import correlate_over_units, correlation_difference_over_units
from auditor.metrics.intervals.items import (
    area_under_curve,
    area_under_curve_within_items,
    averaged_share,
    correlation_over_items,
    share_difference_over_items,
)
from auditor.metrics.intervals.paired import paired_difference
from auditor.metrics.intervals.unit_means import ShareTable, mean_over_units, shares_over_units
from auditor.metrics.people.conflict import third_quartile
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.item_worlds import ITEM_DESIGNS, ITEM_WORLDS, ItemSample


def _item_units(sample: ItemSample) -> dict[str, np.ndarray[tuple[int], np.dtype[np.intp]]]:
    return {"item": np.arange(len(sample.counts))}


def _share(sample: ItemSample) -> Interval:
    """The first condition's share, with the design effect pooled over both, as for the models of a task."""
    tables = [ShareTable(hits, sample.counts, _item_units(sample)) for hits in (sample.hits, sample.second_hits)]
    return to_interval(shares_over_units(tables)[0])


def _share_difference(sample: ItemSample) -> Interval:
    counts = sample.counts
    return to_interval(share_difference_over_items(sample.hits, counts, sample.second_hits, counts))


def _mean(sample: ItemSample) -> Interval:
    return to_interval(mean_over_units(sample.means, _item_units(sample), (0.0, 1.0)))


def _mean_difference(sample: ItemSample) -> Interval:
    return to_interval(paired_difference(sample.means, sample.second_means, _item_units(sample), bounds=(-1.0, 1.0)))


def _third_quartile(sample: ItemSample) -> Interval:
    return to_interval(third_quartile(sample.differences, _item_units(sample)))


def _set_mean(sample: ItemSample) -> Interval:
    sets = {"set": np.arange(len(sample.counts))}
    return to_interval(averaged_share(sample.hits, sample.counts, sets, "instances"))


def _pooled_share(sample: ItemSample) -> Interval:
    sets = {"set": np.arange(len(sample.counts))}
    return to_interval(averaged_share(sample.hits, sample.counts, sets, "pooled"))


def _area(sample: ItemSample) -> Interval:
    return to_interval(area_under_curve(sample.support, sample.is_correct == 1, sample.item))


def _area_within(sample: ItemSample) -> Interval:
    return to_interval(area_under_curve_within_items(sample.support, sample.is_correct == 1, sample.item))


def _rank_correlation(sample: ItemSample) -> Interval:
    return to_interval(correlation_over_items(sample.support, sample.closeness, sample.item, ranks=True))


def _correlation(sample: ItemSample) -> Interval:
    return to_interval(correlation_over_items(sample.support, sample.closeness, sample.item))


def _naive_share(sample: ItemSample) -> Interval:
    return naive.wilson_interval(float(sample.hits.sum()), float(sample.counts.sum()))


def _correlation_over_questions(sample: ItemSample) -> Interval:
    questions = {"question": sample.item}
    return to_interval(correlate_over_units(sample.support, sample.closeness, questions))


def _correlation_difference(sample: ItemSample) -> Interval:
    questions = {"question": sample.item}
    difference = correlation_difference_over_units(sample.closeness, sample.support, sample.weaker_support, questions)
    return to_interval(difference)


OVER_ANSWERS = "Wilson's, over answers"

ITEM_FIGURES = (
    Figure("item share", _share, _naive_share, OVER_ANSWERS),
    Figure("mean of shares over sets", _set_mean, _naive_share, OVER_ANSWERS),
    Figure("pooled share over sets", _pooled_share, _naive_share, OVER_ANSWERS),
    Figure("item share difference", _share_difference),
    Figure("item mean", _mean),
    Figure("item mean difference", _mean_difference),
    Figure("third quartile over items", _third_quartile),
    Figure(
        "area under the curve",
        _area,
        lambda s: naive.hanley_mcneil_interval(s.support, s.is_correct == 1),
        "Hanley and McNeil's, over answers",
    ),
    Figure("area within items", _area_within),
    Figure(
        "rank correlation of answers",
        _rank_correlation,
        lambda s: naive.bonett_wright_interval(s.support, s.closeness),
        "Bonett and Wright's, over answers",
    ),
    Figure(
        "correlation of answers",
        _correlation,
        lambda s: naive.fisher_interval(s.support, s.closeness),
        "Fisher's, over answers",
    ),
    Figure("correlation over questions", _correlation_over_questions),
    Figure("difference of correlations over questions", _correlation_difference),
)

ITEM_STUDY = Study("items", __name__, ITEM_FIGURES, ITEM_WORLDS, ITEM_DESIGNS, n_unit_kinds=1)
