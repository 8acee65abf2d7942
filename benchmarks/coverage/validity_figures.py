"""VALID of right against wrong answers within models, over items and models."""

from __future__ import annotations

import numpy as np

from auditor.metrics.intervals.items import within_model_difference
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.validity_worlds import VALIDITY_DESIGNS, VALIDITY_WORLDS, ValiditySample


def _within(sample: ValiditySample) -> Interval:
    return to_interval(within_model_difference(sample.shares, sample.is_right, sample.model, sample.item))


def _over_answers(sample: ValiditySample) -> Interval:
    """Right minus wrong answers, whoever gave them, as if all answers were independent."""
    wrong_mean = float(np.mean(sample.shares[~sample.is_right]))
    return naive.student_interval(sample.shares[sample.is_right] - wrong_mean)


VALIDITY_FIGURES = (Figure("VALID within models", _within, _over_answers, "Student's, over answers of all models"),)

VALIDITY_STUDY = Study("validity", __name__, VALIDITY_FIGURES, VALIDITY_WORLDS, VALIDITY_DESIGNS)
