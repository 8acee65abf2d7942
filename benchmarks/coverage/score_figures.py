"""Figures that compare scores with a survey's: r, Spearman's rho, MAE, RMSE, bias, and their differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from auditor.metrics.bootstrap import BIAS, MAE, PEARSON, RMSE, Statistic, TwoWayEstimate
from auditor.metrics.jackknife import crossed_jackknife, gap_jackknife, paired_jackknife
from benchmarks.coverage import naive
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Floats
from benchmarks.coverage.worlds.real_tables import REAL_WORLDS
from benchmarks.coverage.worlds.score_worlds import SIMULATED_SCORE_WORLDS, ScoreSample

Compute = Callable[[Any], Interval]


def _to_interval(estimate: TwoWayEstimate) -> Interval:
    """The value and the ends of a two-way estimate."""
    return float("nan") if estimate.estimate is None else estimate.estimate, estimate.low, estimate.high


def _one_model(statistic: Statistic) -> Compute:
    """A statistic of one model, as in `alignment[].crossed`."""
    return lambda s: _to_interval(crossed_jackknife(statistic, s.first, s.survey, s.country, s.topic))


def _gap(statistic: Statistic) -> Compute:
    """A statistic in one group of countries minus that in the other."""
    return lambda s: _to_interval(gap_jackknife(statistic, s.uneven, s.survey, s.country, s.topic, s.in_group))


def _difference(statistic: Statistic, other: str) -> Compute:
    """A statistic of the first model minus that of the model `other`."""
    return lambda s: _to_interval(
        paired_jackknife(statistic, s.first, getattr(s, other), s.survey, s.country, s.topic)
    )


def _naive_r_difference(sample: ScoreSample) -> Interval:
    """The difference of two correlations by the jackknife with V_country + V_topic - V_cell, on the scale of r."""

    def difference(is_included: Any) -> float:
        survey = sample.survey[is_included]
        return float(
            np.corrcoef(sample.first[is_included], survey)[0, 1] - np.corrcoef(sample.worse[is_included], survey)[0, 1]
        )

    replicates = [
        np.array([difference(labels != label) for label in np.unique(labels)])
        for labels in (sample.country, sample.topic, np.arange(len(sample.country)))
    ]
    smaller_side = min(len(replicates[0]), len(replicates[1]))
    value = difference(np.ones(len(sample.country), dtype=np.bool_))
    return naive.subtracted_difference_interval((replicates[0], replicates[1], replicates[2]), value, smaller_side)


def _errors(sample: ScoreSample) -> Floats:
    return sample.first - sample.survey


def _absolute(scores: Floats, sample: ScoreSample) -> Floats:
    return np.abs(scores - sample.survey)


SCORE_FIGURES = (
    Figure("r", _one_model(PEARSON), lambda s: naive.fisher_interval(s.first, s.survey), "Fisher's, over cells"),
    Figure("mae", _one_model(MAE), lambda s: naive.student_interval(np.abs(_errors(s))), "Student's, over cells"),
    Figure("rmse", _one_model(RMSE), lambda s: naive.root_mean_square_interval(_errors(s)), "Student's, over cells"),
    Figure("bias", _one_model(BIAS), lambda s: naive.student_interval(_errors(s)), "Student's, over cells"),
    Figure("r difference", _difference(PEARSON, "worse"), _naive_r_difference, "variance of cells subtracted"),
    Figure("r difference of equal models", _difference(PEARSON, "second")),
    Figure(
        "mae difference",
        _difference(MAE, "worse"),
        lambda s: naive.student_interval(_absolute(s.first, s) - _absolute(s.worse, s)),
        "Student's, over cells",
    ),
    Figure(
        "mae gap",
        _gap(MAE),
        lambda s: naive.welch_interval(
            _absolute(s.uneven, s)[s.in_group],
            _absolute(s.uneven, s)[~s.in_group],
        ),
        "Welch's, over cells",
    ),
    Figure(
        "r gap",
        _gap(PEARSON),
        lambda s: naive.fisher_difference_interval(
            s.uneven[s.in_group], s.uneven[~s.in_group], s.survey[s.in_group], s.survey[~s.in_group]
        ),
        "Fisher's, over cells",
    ),
)

SCORE_STUDY = Study("scores", SCORE_FIGURES, (*SIMULATED_SCORE_WORLDS, *REAL_WORLDS))
