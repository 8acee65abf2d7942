"""Comparisons of several models: tiers, which must not split equal models, and differences from the best one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations

import numpy as np

from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL
from auditor.metrics.intervals.two_way import paired_jackknife
from auditor.metrics.people.alignment import MAE, PEARSON, Statistic
from auditor.metrics.people.tiers import ModelTiers, model_tiers
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import SIZES
from benchmarks.coverage.worlds.ranking_worlds import RANKING_WORLDS, RankingSample


@lru_cache(maxsize=2)
def _tiers(sample: RankingSample, statistic: Statistic) -> ModelTiers:
    places = (sample.survey, sample.country, sample.topic)
    return model_tiers(statistic, list(sample.scores), *places, larger_is_better=statistic is PEARSON)


def _from_best(statistic: Statistic) -> Callable[[RankingSample], Interval]:
    """The last model's difference from the best other one."""

    def compute(sample: RankingSample) -> Interval:
        tiers = _tiers(sample, statistic)
        if tiers.from_best is None or tiers.from_best_low is None or tiers.from_best_high is None:
            return np.nan, None, None
        return float(tiers.from_best[-1]), float(tiers.from_best_low[-1]), float(tiers.from_best_high[-1])

    return compute


def _false_split(statistic: Statistic) -> Callable[[RankingSample], Interval]:
    """0 where all models are in one tier, else 1, as an interval without width: it covers 0 if no tier is false."""

    def compute(sample: RankingSample) -> Interval:
        tiers = _tiers(sample, statistic).tiers
        if tiers is None:
            return np.nan, None, None
        is_split = float(tiers.max() > 1)
        return is_split, is_split, is_split

    return compute


def _split_by_pairs(sample: RankingSample) -> Interval:
    """Whether any of the first five models differs from another by the interval of that pair alone."""
    is_split = 0.0
    for first, second in combinations(sample.scores[:5], 2):
        difference = paired_jackknife(MAE, first, second, sample.survey, sample.country, sample.topic)
        is_split = max(is_split, float((difference.p_value or 1.0) < SIGNIFICANCE_LEVEL))
    return is_split, is_split, is_split


RANKING_FIGURES = (
    Figure("r from the best", _from_best(PEARSON), has_width_rule=False),
    Figure("mae from the best", _from_best(MAE), has_width_rule=False),
    Figure("tiers of equal models by r", _false_split(PEARSON), has_width_rule=False),
    Figure(
        "tiers of equal models by mae", _false_split(MAE), _split_by_pairs, "each pair at 95%", has_width_rule=False
    ),
)

RANKING_STUDY = Study("rankings", __name__, RANKING_FIGURES, RANKING_WORLDS, SIZES)
